"""GW-053."""

from __future__ import annotations

from typing import Any, Final

from pactgate.capture.format import Body
from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage, log_rank
from pactgate.conformance.methods import LISTS
from pactgate.conformance.rule import RequirementLevel, SessionRule, quoted
from pactgate.protocol.messages import HEADER_MISMATCH, INVALID_PARAMS

_TYPES: Final[dict[str, dict[str, type]]] = {
    "tools/call": {"name": str, "arguments": dict},
    "prompts/get": {"name": str, "arguments": dict},
    "resources/read": {"uri": str},
    "logging/setLevel": {"level": str},
    **{method: {"cursor": str} for method in LISTS},
}
_REQUIRED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "logging/setLevel": "level"}


class InvalidParamsServed(SessionRule):
    """A request whose params break the schema of its method gets the error -32602.

    What it checks
        Requests whose `name`, `arguments`, `uri`, `cursor` or `level` is missing or has another type than the schema of the
        method says, and levels that do not exist, are answered with an error. The code is -32602, or -32020 where a mirrored
        header can't be right either.

    Why
        A server that takes such a request guesses what was meant. With another code, as -32603, the client blames the server
        and tries again.

    How to fix
        Validate params against the schema of the method before the handler runs, and answer -32602 where they do not fit.

    Reference
        JSON-RPC 2.0, section 5.1; schema of each method; Logging, Error Handling; all revisions.
    """

    code = "GW-053"
    spec = "https://www.jsonrpc.org/specification#error_object"
    category = "errors"
    level = RequirementLevel.SHOULD
    if_nothing = "No request had invalid params."
    selects = RESPONSES & FROM_SERVER
    methods = frozenset(_TYPES)

    def on_message(self, message: RecordedMessage) -> None:
        wrong = _wrong_member(message.method, message.request_params())
        if message.request is None or wrong is None:
            return
        self.seen += 1
        if message.is_success and message.result.get("isError") is not True:
            self.fault(message, "/result", f"{message.method} is served, though its {wrong} is invalid.")
        elif message.is_success:
            text = f"{message.method} with an invalid {wrong} gets a tool result, not the error -32602."
            self.fault(message, "/result", text)
        elif message.code not in (INVALID_PARAMS, *((HEADER_MISMATCH,) if message.is_modern else ())):
            text = f"{message.method} with an invalid {wrong} gets the code {quoted(message.code)}, not -32602."
            self.fault(message, "/error/code", text)


def _wrong_member(method: str, params: Body) -> str | None:
    """The first member that breaks the schema of the method."""
    required = _REQUIRED.get(method)
    if required is not None and required not in params:
        return required
    for member, wanted in _TYPES[method].items():
        value: Any = params.get(member)
        if value is not None and not isinstance(value, wanted):
            return member
    is_no_level = method == "logging/setLevel" and log_rank(params.get("level")) is None
    return "level" if is_no_level else None
