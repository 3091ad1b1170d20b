"""GW-032."""

from __future__ import annotations

from pactgate.capture.format import RecordedHttp
from pactgate.conformance.http import header
from pactgate.conformance.message import ExchangeView, RecordedMessage, Role
from pactgate.conformance.rule import HttpRule, ModernRule
from pactgate.protocol.headers import METHOD_HEADER, NAME_HEADER, VERSION_HEADER, decode_value
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY
from pactgate.protocol.versions import NAMED_BY


class HeaderBodyMismatch(ModernRule, HttpRule):
    """The headers of a modern request say what its body says, or the server refuses it.

    What it checks
        `MCP-Protocol-Version`, `Mcp-Method` and, where a name or URI is asked for, `Mcp-Name` (decoded) equal the body. If
        one does not, the answer is the status 400 with the error -32020.

    Why
        Proxies decide by the headers and servers by the body. Where the two differ, one of them was deceived.

    How to fix
        Client: write the headers from the body. Server: compare before you look at anything else.

    Reference
        Streamable HTTP, Server Validation; revision 2026-07-28.
    """

    code = "GW-032"
    spec = "basic/transports/streamable-http#server-validation"

    def on_exchange(self, view: ExchangeView) -> None:
        http, message = view.exchange.http, view.from_client
        if http is None or message is None or message.role is not Role.REQUEST or not message.is_from_client:
            return
        if PROTOCOL_VERSION_KEY not in message.meta:
            return  # GW-025 looks at requests without envelope
        self.seen += 1
        wrong = _differs(http, message)
        if wrong is not None and not view.is_refused_for_headers:
            self.fault(view, "/http/request_headers", f"{wrong}, and the server did not refuse it with 400 and -32020.")


def _differs(http: RecordedHttp, message: RecordedMessage) -> str | None:
    if header(http.request_headers, VERSION_HEADER) != message.meta[PROTOCOL_VERSION_KEY]:
        return "MCP-Protocol-Version differs from the body"
    if header(http.request_headers, METHOD_HEADER) != message.body["method"]:
        return "Mcp-Method differs from the body"
    named = message.params.get(NAMED_BY.get(message.method, ""))
    if isinstance(named, str):
        value = header(http.request_headers, NAME_HEADER)
        if value is None or decode_value(value) != named:
            return "Mcp-Name differs from the body"
    return None
