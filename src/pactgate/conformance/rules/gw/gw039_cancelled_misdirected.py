"""GW-039."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict, id_key
from pactgate.conformance.message import NOTIFICATIONS, REQUESTS, RecordedMessage, Role
from pactgate.conformance.rule import ModernRule, quoted


class CancelledMisdirected(ModernRule):
    """A modern server cancels only listens, and a modern client cancels over HTTP by closing the stream.

    What it checks
        `notifications/cancelled` of the server names a `subscriptions/listen`; none of the client comes over HTTP.

    Why
        Over HTTP the notification would arrive elsewhere than the request; and a server has no requests to cancel.

    How to fix
        Close the response stream instead.

    Reference
        Cancellation; revision 2026-07-28.
    """

    code = "GW-039"
    spec = "basic/patterns/cancellation"
    category = "cancellation"
    selects = REQUESTS | NOTIFICATIONS
    methods = frozenset({"notifications/cancelled", "subscriptions/listen"})

    def prepare(self) -> None:
        self._listens: BoundedDict[bool] = BoundedDict()

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST:
            if message.key is not None:
                self._listens[message.key] = True
            return
        self.seen += 1
        named = message.params.get("requestId")
        if message.is_from_client:
            if message.view.exchange.http is not None:
                self.fault(message, "/method", "A modern client cancels over HTTP by a message.")
        elif id_key(named) not in self._listens:
            self.fault(message, "/params/requestId", f"The server cancels {quoted(named)}, which is no listen.")
