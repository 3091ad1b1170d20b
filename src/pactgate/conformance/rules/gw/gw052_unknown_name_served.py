"""GW-052."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage
from pactgate.conformance.methods import MADE_UP
from pactgate.conformance.rule import RequirementLevel, SessionRule, quoted
from pactgate.protocol.messages import INVALID_PARAMS, RESOURCE_NOT_FOUND
from pactgate.protocol.versions import LATEST_MODERN

_LISTED_BY: Final = {
    "tools/call": ("tools/list", "name"),
    "prompts/get": ("prompts/list", "name"),
    "resources/read": ("resources/list", "uri"),
}


class UnknownNameServed(SessionRule):
    """A request for an unknown tool, prompt or resource gets a JSON-RPC error with the right code.

    What it checks
        A probe calls a tool, gets a prompt and reads a resource that do not exist. Each answer is an error. Its code is -32602;
        for a resource -32002 before 2026-07-28. A result that says `isError` is a breach too: errors in finding a tool are
        protocol errors. Outside of a probe only names that no complete list had are looked at, and no resources, which need
        not be listed.

    Why
        A client tells "there is no such tool" from "the tool failed" by the kind of the answer, and lists again or gives up.

    How to fix
        Look the name up before anything else, and answer with a JSON-RPC error of the code -32602, or -32002 for a resource.

    Reference
        Tools, Prompts, Resources: Error Handling; schema, CallToolResult; all revisions, for resources a MUST since 2026-07-28.
    """

    code = "GW-052"
    spec = "server/tools#error-handling"
    category = "errors"
    level = RequirementLevel.SHOULD
    if_nothing = "Nothing was asked for that does not exist."
    selects = RESPONSES & FROM_SERVER
    methods = frozenset(_LISTED_BY)

    def on_message(self, message: RecordedMessage) -> None:
        listing, member = _LISTED_BY[message.method]
        name = message.request_params().get(member)
        if not isinstance(name, str) or not self._is_unknown(message.method, listing, name):
            return
        self.seen += 1
        is_resource = message.method == "resources/read"
        level = RequirementLevel.MUST if is_resource and message.version == LATEST_MODERN else RequirementLevel.SHOULD
        if message.is_success:
            said = " that says isError" if message.result.get("isError") is True else ""
            text = f"{message.method} of {quoted(name)}, which does not exist, is answered with a result{said}."
            self.fault(message, "/result", text, level)
            return
        wanted = RESOURCE_NOT_FOUND if is_resource and not message.is_modern else INVALID_PARAMS
        if message.code != wanted:
            text = (
                f"{message.method} of {quoted(name)}, which does not exist, gets the code {message.code}, not {wanted}."
            )
            self.fault(message, "/error/code", text, level)

    def _is_unknown(self, method: str, listing: str, name: str) -> bool:
        listed = self.session.lists[listing]
        if name in listed.ever:
            return False
        if method == "resources/read":
            return self.session.head.is_probe and name.startswith(
                MADE_UP
            )  # one that is not listed may exist all the same
        return listed.is_whole
