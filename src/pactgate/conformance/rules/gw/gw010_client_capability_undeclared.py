"""GW-010."""

from __future__ import annotations

from typing import Any

from pactgate.capture.format import Body
from pactgate.conformance.capabilities import has
from pactgate.conformance.message import FROM_SERVER, REQUESTS, RESPONSES, RecordedMessage, Role, as_object
from pactgate.conformance.methods import INPUT_METHODS
from pactgate.conformance.rule import RequirementLevel, SessionRule, pointer
from pactgate.protocol.modern import CAPABILITIES_KEY


class ClientCapabilityUndeclared(SessionRule):
    """A server asks a client only for what the client has declared.

    What it checks
        `sampling/createMessage`, `roots/list` and `elicitation/create` need the capability of that name: declared in the
        handshake, or, for the questions in a modern `input_required` result, in the request that is answered. Elicitation
        by URL needs `elicitation.url`, sampling with tools `sampling.tools`; other context than none should have
        `sampling.context`.

    Why
        A client that can't ask its user leaves the call hanging, or ends it with an error.

    How to fix
        Look at the declared capabilities before you ask, and do without, or fail with a sentence that says what is missing.

    Reference
        Lifecycle, Operation; Multi Round-Trip Requests; all revisions, a MUST since 2025-06-18.
    """

    code = "GW-010"
    spec = "basic/lifecycle#operation"
    category = "capability"
    must_since = "2025-06-18"
    selects = (REQUESTS | RESPONSES) & FROM_SERVER

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST and message.method in INPUT_METHODS:
            declared = self.session.client_capabilities
            if declared is None:
                self.unjudged("The capture does not tell what the client declared.")
                return
            self._check(message, "", message.method, message.params, declared)
        elif message.is_modern and message.result.get("resultType") == "input_required":
            for name, question in as_object(message.result.get("inputRequests")).items():
                place = pointer("result", "inputRequests", name)
                params = as_object(as_object(question).get("params"))
                declared = as_object(message.request_meta().get(CAPABILITIES_KEY))
                self._check(message, place, as_object(question).get("method"), params, declared)

    def _check(self, message: RecordedMessage, place: str, method: Any, params: Body, declared: Body) -> None:
        if not isinstance(method, str) or method not in INPUT_METHODS:
            return
        self.seen += 1
        kind = method.partition("/")[0]
        if not has(declared, kind):
            self.fault(message, place, f"The server sends {method}, but the client did not declare {kind}.")
        elif method == "elicitation/create" and not _takes_mode(declared[kind], params.get("mode", "form")):
            self.fault(message, place, "The server elicits in a mode the client did not declare.")
        elif method == "sampling/createMessage":
            self._check_sampling(message, place, params, declared)

    def _check_sampling(self, message: RecordedMessage, place: str, params: Body, declared: Body) -> None:
        if ("tools" in params or "toolChoice" in params) and not has(declared, "sampling", "tools"):
            self.fault(message, place, "The server samples with tools, but the client did not declare them.")
        if params.get("includeContext") not in (None, "none") and not has(declared, "sampling", "context"):
            text = "The server asks for context, but the client did not declare sampling.context."
            self.fault(message, place, text, RequirementLevel.SHOULD)


def _takes_mode(elicitation: Any, mode: Any) -> bool:
    """An empty declaration means forms only."""
    if mode == "form":
        return not as_object(elicitation) or has(elicitation, "form")
    return has(elicitation, "url") if mode == "url" else False
