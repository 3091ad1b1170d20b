"""GW-025."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.message import FROM_CLIENT, FROM_SERVER, REQUESTS, RESPONSES, RecordedMessage, Role
from pactgate.conformance.rule import ModernRule, RequirementLevel
from pactgate.protocol.messages import HEADER_MISMATCH, INVALID_PARAMS
from pactgate.protocol.modern import CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY

_RIGHT_ANSWERS: Final = frozenset({INVALID_PARAMS, HEADER_MISMATCH})


class EnvelopeMissing(ModernRule):
    """Every modern request carries its protocol version and the client's capabilities in _meta.

    What it checks
        `_meta` of each request has `io.modelcontextprotocol/protocolVersion`, a string, and `.../clientCapabilities`, an
        object; `.../clientInfo` should be there too. A server answers a request without them with -32602.

    Why
        A modern server knows nothing but the request itself. It must not fill in what another request said.

    How to fix
        Client: stamp every request. Server: check `_meta` before anything else.

    Reference
        Base protocol, _meta; revision 2026-07-28.
    """

    code = "GW-025"
    spec = "basic#_meta"
    category = "envelope"
    selects = (REQUESTS & FROM_CLIENT) | (RESPONSES & FROM_SERVER)

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.RESPONSE:
            request = message.request
            if request is not None and _lacks(request) is not None:
                self._check_answer(message)
        else:
            self.seen += 1
            lacking = _lacks(message)
            if lacking is not None:
                self.fault(message, "/params/_meta", f"The request has no {lacking}.")
            if not isinstance(message.meta.get(CLIENT_INFO_KEY), dict):
                self.fault(message, "/params/_meta", f"The request has no {CLIENT_INFO_KEY}.", RequirementLevel.SHOULD)

    def _check_answer(self, message: RecordedMessage) -> None:
        if message.is_success:
            self.fault(message, "/result", "The server answered a request without envelope with a result.")
        elif message.code is not None and message.code not in _RIGHT_ANSWERS:
            self.fault(message, "/error/code", f"A request without envelope gets -32602, not {message.code}.")


def _lacks(request: RecordedMessage) -> str | None:
    if not isinstance(request.meta.get(PROTOCOL_VERSION_KEY), str):
        return PROTOCOL_VERSION_KEY
    return None if isinstance(request.meta.get(CAPABILITIES_KEY), dict) else CAPABILITIES_KEY
