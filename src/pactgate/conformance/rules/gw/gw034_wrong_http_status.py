"""GW-034."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.http import BAD_REQUEST, NOT_FOUND
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, ModernRule
from pactgate.protocol.messages import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
)

_STATUS: Final = {
    HEADER_MISMATCH: BAD_REQUEST,
    MISSING_CLIENT_CAPABILITY: BAD_REQUEST,
    UNSUPPORTED_VERSION: BAD_REQUEST,
    METHOD_NOT_FOUND: NOT_FOUND,
}


class WrongHttpStatus(ModernRule, HttpRule):
    """The protocol's own errors come with their HTTP status.

    What it checks
        -32020, -32021 and -32022 come with 400, and -32601 with 404. Which origins a server refuses with 403 can't be seen
        in a capture.

    Why
        Clients and proxies that don't read the body go by the status; so does the choice between the eras.

    How to fix
        Decide on these errors before the answer begins, and set the status from the code.

    Reference
        Streamable HTTP, Responses; revision 2026-07-28.
    """

    code = "GW-034"
    spec = "basic/transports/streamable-http#protocol-version-header"

    def on_exchange(self, view: ExchangeView) -> None:
        http, answer = view.exchange.http, view.first_response
        if http is None or http.status is None or answer is None or answer.code not in _STATUS:
            return
        self.seen += 1
        if http.status != _STATUS[answer.code]:
            self.fault(view, "/http/status", f"{answer.code} came with {http.status}, not {_STATUS[answer.code]}.")
