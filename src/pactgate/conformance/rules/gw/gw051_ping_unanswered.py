"""GW-051."""

from __future__ import annotations

from pactgate.conformance.message import META, RESPONSES, RecordedMessage
from pactgate.conformance.rule import LegacyRule, quoted


class PingUnanswered(LegacyRule):
    """A ping is answered with an empty result.

    What it checks
        Each answer to `ping`, of either side, is a result without members; `_meta` is allowed. Requests that HTTP
        refused are not looked at, and missing answers are reported by GW-006.

    Why
        The other side takes an error for a dead connection, and closes it.

    How to fix
        Answer `ping` with `{}`, in every state of the session and whatever the capabilities are.

    Reference
        Ping, Behavior Requirements; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-051"
    spec = "basic/utilities/ping#behavior-requirements"
    category = "lifecycle"
    if_nothing = "No ping was answered."
    selects = RESPONSES
    methods = frozenset({"ping"})

    def on_message(self, message: RecordedMessage) -> None:
        if message.view.is_refused_by_http:
            return  # the request did not get as far
        self.seen += 1
        if not message.is_success:
            self.fault(message, "", f"The ping is answered with the error {quoted(message.code)}.")
        elif set(message.result) - {META}:
            self.fault(message, "/result", "The result of the ping is not empty.")
