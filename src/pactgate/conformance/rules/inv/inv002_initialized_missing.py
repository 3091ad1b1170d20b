"""INV-002."""

from __future__ import annotations

from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.rule import LegacyRule, quoted
from pactgate.protocol.versions import Era

_NOTICE = "notifications/initialized"


class InitializedMissing(LegacyRule):
    """The notifications/initialized notification follows the initialize response.

    What it checks
        After the successful answer to `initialize` the client sends `notifications/initialized` before any request other
        than `ping`. It is missing as soon as such a request comes without it. Where the handshake failed, or the session
        ends with it, there is nothing to follow.

    Why
        The server may hold back its own requests and notifications until the client says that it is ready.

    How to fix
        Send the notification right after the answer to `initialize` has arrived, and only then. `--allow-missing-initialized`
        turns its absence into a note, for captures of clients that never send it.

    Reference
        Lifecycle, Initialization; revisions 2024-11-05 to 2025-11-25.
    """

    code = "INV-002"
    spec = "basic/lifecycle#initialization"
    category = "lifecycle"

    def prepare(self) -> None:
        self._handshake: RecordedMessage | None = None
        self._early: RecordedMessage | None = None
        self._notice: RecordedMessage | None = None
        self._between: RecordedMessage | None = None

    def on_message(self, message: RecordedMessage) -> None:
        if self._handshake is None and self.session.handshake is message:
            self._handshake = message
        elif message.is_from_client and message.role is Role.NOTIFICATION and message.method == _NOTICE:
            self._on_notice(message)
        elif message.is_from_client and message.role is Role.REQUEST:
            self._on_request(message)

    def _on_notice(self, message: RecordedMessage) -> None:
        if self._handshake is None:
            self._early = self._early or message
        elif self._notice is None:
            self._notice = message
        else:
            self.note(f"{_NOTICE} was sent again in exchange {message.index}.")

    def _on_request(self, message: RecordedMessage) -> None:
        is_free = message.method in ("ping", "initialize")
        if self._handshake is not None and self._notice is None and self._between is None and not is_free:
            self._between = message

    def at_end(self) -> None:
        if self._handshake is None or self.session.era is Era.MODERN:
            return
        if self._notice is None and self._between is None and self._early is None:
            return
        self.seen = 1
        if self._between is not None and self._notice is not None:
            method = quoted(self._between.body["method"])
            self.fault(self._between, "/method", f"{method} was sent before {_NOTICE}.")
        elif self._notice is None and self._early is not None:
            self.fault(self._early, "/method", f"{_NOTICE} was sent before initialize was answered.")
        elif self._between is not None and self.session.options.allow_missing_initialized:
            self.note(f"{_NOTICE} was never sent; this run allows that.")
        elif self._between is not None:
            self.fault(self._between, "/method", f"{_NOTICE} was never sent after the answer to initialize.")

    def not_applicable(self) -> str:
        if self.session.era is Era.MODERN:
            return "A modern session has no handshake."
        if self._handshake is None:
            return "No initialize was answered with a result."
        return "The session ends with the handshake."
