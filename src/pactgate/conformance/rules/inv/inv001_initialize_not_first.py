"""INV-001."""

from __future__ import annotations

from pactgate.conformance.message import FROM_CLIENT, REQUESTS, RecordedMessage
from pactgate.conformance.rule import LegacyRule, quoted
from pactgate.protocol.versions import Era


class InitializeNotFirst(LegacyRule):
    """initialize is the first request the client sends.

    What it checks
        The first message of the client with an id has the method `initialize`. Notifications before it don't matter. Requests
        that carry a protocol version of their own are modern and are passed over; a modern session has no handshake, and a
        session without any request says nothing.

    Why
        Before the handshake neither side knows the other's revision and capabilities, so a server may refuse or misread
        whatever comes.

    How to fix
        Send `initialize` and wait for its answer before anything else. A `ping` may come earlier by the specification, but
        not by this invariant.

    Reference
        Lifecycle, Initialization; revisions 2024-11-05 to 2025-11-25.
    """

    code = "INV-001"
    spec = "basic/lifecycle#initialization"
    category = "lifecycle"
    selects = REQUESTS & FROM_CLIENT

    def prepare(self) -> None:
        self._first: RecordedMessage | None = None

    def on_message(self, message: RecordedMessage) -> None:
        self._first = self._first or message

    def at_end(self) -> None:
        first = self._first
        if first is None or self.session.era is Era.MODERN:
            return
        self.seen = 1
        if first.method != "initialize":
            self.fault(first, "/method", f"The first request is {quoted(first.body['method'])}, not initialize.")
        if first.method == "ping":
            self.note("The specification allows a ping before the handshake; this invariant does not.")

    def not_applicable(self) -> str:
        if self.session.era is Era.MODERN:
            return "A modern session has no handshake."
        return "The client sent no request."
