"""GW-037."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.bounded import BoundedDict, Key, id_key
from pactgate.conformance.message import RecordedMessage, Role, as_object
from pactgate.conformance.rule import ModernRule, RequiredEvidence, quoted
from pactgate.conformance.subscriptions import FILTER_OF, UPDATED, RecordedSubscription
from pactgate.protocol.modern import SUBSCRIPTION_ID_KEY

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class SubscriptionBreach(ModernRule):
    """A listen begins with its acknowledgement, delivers what was granted under its own id, and ends with it.

    What it checks
        Per `subscriptions/listen`: the first message is `notifications/subscriptions/acknowledged` with no more than was
        requested; every message carries the id of the listen, type included, in its `_meta`; nothing comes that was not
        granted, no progress and no logs; nothing follows the end; and the final result carries the id too.

    Why
        Several listens share a connection. A client can tell them apart by the id only.

    How to fix
        Tag whatever you send on a listen, and keep the granted filter with it.

    Reference
        Subscriptions; revision 2026-07-28.
    """

    code = "GW-037"
    spec = "basic/patterns/subscriptions"
    category = "subscriptions"
    needs = RequiredEvidence.SERVER_MESSAGES

    def prepare(self) -> None:
        self._listens: BoundedDict[RecordedSubscription] = BoundedDict()

    def on_message(self, message: RecordedMessage) -> None:
        if message.method == "subscriptions/listen" and message.role is Role.REQUEST and message.key is not None:
            self._listens[self._place(message, message.key)] = RecordedSubscription(message.params.get("notifications"))
        elif message.method == "subscriptions/listen" and message.role is Role.RESPONSE:
            self._on_end(message)
        elif message.role is Role.NOTIFICATION and not message.is_from_client:
            self._on_notice(message)

    def _on_end(self, message: RecordedMessage) -> None:
        request = message.request
        listen = self._listens.get(self._place(request, request.key)) if request is not None else None
        if listen is None or request is None:
            return
        self.seen += 1
        listen.has_ended = True
        if message.is_success and as_object(message.result.get("_meta")).get(SUBSCRIPTION_ID_KEY) != request.body["id"]:
            self.fault(message, "/result/_meta", f"The result that ends the listen has no {SUBSCRIPTION_ID_KEY}.")

    def _on_notice(self, message: RecordedMessage) -> None:
        on_listen = message.frame is not None and message.view.messages[0].method == "subscriptions/listen"
        if SUBSCRIPTION_ID_KEY not in message.meta:
            if on_listen:
                self.fault(message, "", f"{quoted(message.method)} on a listen has no {SUBSCRIPTION_ID_KEY}.")
            elif message.method in FILTER_OF or message.method == UPDATED:
                self.fault(message, "/method", f"{message.method} was sent outside of any listen.")
            return
        self.seen += 1
        tag = message.meta[SUBSCRIPTION_ID_KEY]
        listen = self._listens.get(self._place(message, id_key(tag)))
        if listen is None or (on_listen and message.view.messages[0].key != id_key(tag)):
            self.fault(message, "/params/_meta", f"There is no such listen as {quoted(tag)} here.")
        elif listen.has_ended:
            self.fault(message, "", f"The listen {quoted(tag)} had ended.")
        elif message.method == _ACKNOWLEDGED:
            self._on_acknowledged(message, listen)
        elif not listen.is_granted:
            self.fault(message, "/method", f"{quoted(message.method)} came before the acknowledgement.")
        elif not listen.covers(message):
            self.fault(message, "/method", f"{quoted(message.method)} was not granted on this listen.")

    def _place(self, message: RecordedMessage, key: Key | None) -> tuple[Key | None, str | None]:
        """Clients that share a capture may use the same ids; their streams differ."""
        return key, message.view.exchange.stream if self.session.head.is_shared else None

    def _on_acknowledged(self, message: RecordedMessage, listen: RecordedSubscription) -> None:
        for name in listen.grant(message.params.get("notifications")):
            self.fault(message, "/params/notifications", f"{quoted(name)} was granted beyond what was requested.")
