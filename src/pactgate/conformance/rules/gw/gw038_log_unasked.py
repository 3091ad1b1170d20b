"""GW-038."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict, Key
from pactgate.conformance.message import RecordedMessage, Role, log_rank
from pactgate.conformance.rule import ModernRule, RequiredEvidence, quoted
from pactgate.protocol.modern import LOG_LEVEL_KEY, LOG_LEVELS


class LogUnasked(ModernRule):
    """A modern server logs only for a request that asked for it, at that level or above, before its answer.

    What it checks
        Each `notifications/message` belongs to an open request with `io.modelcontextprotocol/logLevel`, and its level is not
        below that: the request whose stream it travels on, or, on stdio, any that is open.

    Why
        There is no session to set a level for; logs nobody asked for are noise at best.

    How to fix
        Take the level from each request, and log nothing without one.

    Reference
        Logging; revision 2026-07-28.
    """

    code = "GW-038"
    spec = "server/utilities/logging"
    category = "logging"
    needs = RequiredEvidence.SERVER_MESSAGES

    def prepare(self) -> None:
        self._asked: BoundedDict[int] = BoundedDict(limit=1000)

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.REQUEST and message.is_from_client:
            rank = log_rank(message.meta.get(LOG_LEVEL_KEY))
            if rank is not None and message.key is not None:
                self._asked[self._owner(message)] = rank
        elif message.role is Role.RESPONSE and message.request is not None:
            self._asked.pop(self._owner(message.request), None)
        elif message.method == "notifications/message" and not message.is_from_client:
            self._on_log(message)

    def _on_log(self, message: RecordedMessage) -> None:
        self.seen += 1
        level = message.params.get("level")
        rank = log_rank(level)
        least = self._least(message)
        if rank is None:
            self.fault(message, "/params/level", f"{quoted(level)} is no log level.")
        elif least is None:
            self.fault(message, "/method", "A log message was sent, and no open request had asked for one.")
        elif rank < least:
            self.fault(
                message, "/params/level", f"The level {level} is below {LOG_LEVELS[least]}, which was asked for."
            )

    def _least(self, message: RecordedMessage) -> int | None:
        if message.frame is None:
            return min(self._asked.values(), default=None)
        return self._asked.get(self._owner(message.view.messages[0]))

    def _owner(self, request: RecordedMessage) -> Key | tuple[int] | None:
        """Clients that share a capture may use the same ids."""
        return (request.index,) if self.session.head.is_shared else request.key
