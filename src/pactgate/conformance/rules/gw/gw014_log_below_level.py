"""GW-014."""

from __future__ import annotations

from pactgate.conformance.message import RecordedMessage, Role, log_rank
from pactgate.conformance.rule import LegacyRule, RequiredEvidence, RequirementLevel, quoted
from pactgate.protocol.modern import LOG_LEVELS


class LogBelowLevel(LegacyRule):
    """After logging/setLevel a server sends no log message of a lower level, and levels have one of the eight names.

    What it checks
        Each `notifications/message` has a known level, and one that is not below what `logging/setLevel` asked for last.

    Why
        A client that asked for errors only is flooded otherwise, and so may be its context.

    How to fix
        Compare levels by their order, debug to emergency, before sending.

    Reference
        Logging, Setting Log Level; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-014"
    spec = "server/utilities/logging#setting-log-level"
    category = "logging"
    level = RequirementLevel.SHOULD
    needs = RequiredEvidence.SERVER_MESSAGES
    methods = frozenset({"notifications/message", "logging/setLevel"})

    def prepare(self) -> None:
        self._least = 0

    def on_message(self, message: RecordedMessage) -> None:
        if message.method == "logging/setLevel":
            rank = log_rank(message.request_params().get("level"))
            if message.role is Role.RESPONSE and message.is_success and rank is not None:
                self._least = rank
        elif not message.is_from_client:
            self.seen += 1
            level = message.params.get("level")
            rank = log_rank(level)
            if rank is None:
                self.fault(message, "/params/level", f"{quoted(level)} is no log level.")
            elif rank < self._least:
                wanted = LOG_LEVELS[self._least]
                self.fault(message, "/params/level", f"The level {level} is below {wanted}, which was asked for.")
