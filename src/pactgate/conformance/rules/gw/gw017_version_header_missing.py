"""GW-017."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.http import has_legacy_session, header, is_success
from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, LegacyRule, RequirementLevel, quoted
from pactgate.protocol.headers import VERSION_HEADER
from pactgate.protocol.versions import KNOWN_VERSIONS


class VersionHeaderMissing(LegacyRule, HttpRule):
    """After the handshake every HTTP request names the negotiated revision in MCP-Protocol-Version, or is refused.

    What it checks
        Each HTTP request of the client after `initialize` has the header, and its value is the negotiated revision (the
        latter is a SHOULD). A request with a value that is no revision at all is not served: the server answers 400.

    Why
        Without it a server has to assume 2025-03-26 and may answer in that form.

    How to fix
        Client: set the header on the connection as soon as the handshake is over. Server: answer 400 to a value that you do
        not support.

    Reference
        Transports, Protocol Version Header; revisions 2025-06-18 and 2025-11-25.
    """

    code = "GW-017"
    spec = "basic/transports#protocol-version-header"
    since = "2025-06-18"

    def on_exchange(self, view: ExchangeView) -> None:
        http, session = view.exchange.http, self.session
        is_later = has_legacy_session(view.exchange) and session.negotiated is not None
        if http is None or not is_later or view.exchange.sender is not Side.CLIENT:
            return
        self.seen += 1
        named = header(http.request_headers, VERSION_HEADER)
        if named is None:
            self.fault(view, "/http/request_headers", "The request has no MCP-Protocol-Version.", by=Side.CLIENT)
        elif named != session.negotiated:
            text = f"MCP-Protocol-Version is {quoted(named)}, but {session.negotiated} was negotiated."
            self.fault(view, "/http/request_headers", text, RequirementLevel.SHOULD, by=Side.CLIENT)
            if named not in KNOWN_VERSIONS and is_success(http.status):
                text = f"The server serves a request with the unknown MCP-Protocol-Version {quoted(named)}."
                self.fault(view, "/http/status", text)
