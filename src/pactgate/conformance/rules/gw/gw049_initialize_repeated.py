"""GW-049."""

from __future__ import annotations

from pactgate.conformance.http import SESSION_HEADER
from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.rule import LegacyRule


class InitializeRepeated(LegacyRule):
    """A session is initialized once.

    What it checks
        After `initialize` was answered with a result, none follows on the same connection. Over HTTP a further `initialize`
        without a session id opens a new session, which is fine.

    Why
        Both sides have agreed on a revision and on capabilities; changing them under running requests breaks those.

    How to fix
        Open a new connection to negotiate anew.

    Reference
        Lifecycle, Initialization; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-049"
    spec = "basic/lifecycle#initialization"
    category = "lifecycle"
    methods = frozenset({"initialize"})

    def prepare(self) -> None:
        self._is_done = False

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.RESPONSE:
            self._is_done = self._is_done or message.is_success
        elif message.role is Role.REQUEST and message.is_from_client:
            self.seen += 1
            http = message.view.exchange.http
            opens_new = http is not None and SESSION_HEADER not in http.request_headers
            if self._is_done and not opens_new:
                self.fault(message, "/method", "The client initializes the session again.")
