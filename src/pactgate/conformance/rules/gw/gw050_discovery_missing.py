"""GW-050."""

from __future__ import annotations

from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage, as_list
from pactgate.conformance.rule import ModernRule
from pactgate.protocol.messages import METHOD_NOT_FOUND
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY


class DiscoveryMissing(ModernRule):
    """A modern server answers server/discover, and lists the versions it serves.

    What it checks
        A server that answers other modern requests with results does not answer `server/discover` with -32601. Its answer
        has `supportedVersions` and `capabilities`, and every version that a request was served in is listed.

    Why
        Clients find out by it which era a server speaks, before they send anything that matters.

    How to fix
        Implement `server/discover`; it needs no state.

    Reference
        Versioning, server/discover; revision 2026-07-28.
    """

    code = "GW-050"
    spec = "server/discover"
    category = "lifecycle"
    if_nothing = "server/discover was not asked."
    selects = RESPONSES & FROM_SERVER

    def prepare(self) -> None:
        self._refused: RecordedMessage | None = None
        self._served: dict[str, RecordedMessage] = {}

    def on_message(self, message: RecordedMessage) -> None:
        if message.method == "server/discover":
            self._on_discovery(message)
        elif message.is_success:
            version = message.request_meta().get(PROTOCOL_VERSION_KEY)
            if isinstance(version, str) and len(self._served) < 100:
                self._served.setdefault(version, message)

    def _on_discovery(self, message: RecordedMessage) -> None:
        if message.code == METHOD_NOT_FOUND:
            self._refused = message
        elif message.is_success:
            self.seen += 1
            if not as_list(message.result.get("supportedVersions")):
                self.fault(message, "/result", "The answer to server/discover lists no supportedVersions.")
            if not isinstance(message.result.get("capabilities"), dict):
                self.fault(message, "/result", "The answer to server/discover has no capabilities.")

    def at_end(self) -> None:
        if self._refused is not None and self._served:
            self.fault(self._refused, "/error", "The server serves modern requests, but not server/discover.")
        discovery = self.session.discovery
        listed = None if discovery is None else as_list(discovery.result.get("supportedVersions"))
        for version, message in self._served.items():
            if listed and version not in listed:
                self.fault(message, "/result", f"A request in {version} was served, which discovery does not list.")
