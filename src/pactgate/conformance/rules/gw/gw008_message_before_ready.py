"""GW-008."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.message import NOTIFICATIONS, REQUESTS, RecordedMessage, Role
from pactgate.conformance.rule import SHOWN_EVIDENCE, LegacyRule, RequirementLevel, quoted

_OF_SERVER = frozenset({"ping", "notifications/message", "notifications/progress"})


class MessageBeforeReady(LegacyRule):
    """Before the handshake is over the client sends only pings, and the server only pings and log messages.

    What it checks
        No request of the client but `ping` and `initialize` comes before the answer to `initialize`; nothing of the server
        but `ping`, log messages and progress comes before `notifications/initialized`.

    Why
        Until then the other side has not said what it can do.

    How to fix
        Queue what is due until the handshake is over.

    Reference
        Lifecycle, Initialization; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-008"
    spec = "basic/lifecycle#initialization"
    category = "lifecycle"
    level = RequirementLevel.SHOULD
    selects = REQUESTS | NOTIFICATIONS

    def prepare(self) -> None:
        self._early: BoundedDict[str] = BoundedDict(SHOWN_EVIDENCE)

    def on_message(self, message: RecordedMessage) -> None:
        session, method = self.session, quoted(message.method)
        if message.method == "initialize":
            self.seen += 1
        elif message.is_from_client:
            if message.role is Role.REQUEST and message.method != "ping" and session.handshake is None:
                self._early[message] = f"The client sends {method} before initialize was answered."
        elif message.method not in _OF_SERVER and not session.is_initialized:
            self._early[message] = f"The server sends {method} before the client is initialized."

    def at_end(self) -> None:
        if self._early and self.session.initialize is None:
            self.unjudged("The capture has no handshake.")
            return
        for message, text in self._early.items():
            self.fault(message, "/method", text)
