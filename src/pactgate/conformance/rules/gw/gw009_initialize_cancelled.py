"""GW-009."""

from __future__ import annotations

from pactgate.conformance.bounded import id_key
from pactgate.conformance.message import FROM_CLIENT, NOTIFICATIONS, RecordedMessage
from pactgate.conformance.rule import LegacyRule


class InitializeCancelled(LegacyRule):
    """The client never cancels initialize.

    What it checks
        No `notifications/cancelled` of the client names the id of an `initialize` request.

    Why
        A half-made session helps nobody; a client that has enough closes the connection.

    How to fix
        Exempt `initialize` from whatever cancels requests after a timeout.

    Reference
        Cancellation, Behavior Requirements; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-009"
    spec = "basic/utilities/cancellation#behavior-requirements"
    category = "lifecycle"
    selects = NOTIFICATIONS & FROM_CLIENT
    methods = frozenset({"notifications/cancelled"})

    def on_message(self, message: RecordedMessage) -> None:
        self.seen += 1
        opening = self.session.initialize
        key = id_key(message.params.get("requestId"))
        if opening is not None and key is not None and key == opening.key:
            self.fault(message, "/params/requestId", "The client cancels initialize.")
