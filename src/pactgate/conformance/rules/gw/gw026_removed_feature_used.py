"""GW-026."""

from __future__ import annotations

from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.methods import REVISIONS
from pactgate.conformance.rule import ModernRule, quoted
from pactgate.protocol.versions import LATEST_MODERN


class RemovedFeatureUsed(ModernRule):
    """Modern servers send no requests, modern clients no answers, and no removed method succeeds.

    What it checks
        In modern traffic the server sends no request and the client no answer; a method that 2026-07-28 removed
        (`initialize`, `ping`, `logging/setLevel`, `resources/subscribe`, ...) is not answered with a result.

    Why
        A modern client is not listening for requests, and one request is not a conversation.

    How to fix
        Ask by an `input_required` result, signal on a `subscriptions/listen`, and answer removed methods with -32601.

    Reference
        Patterns; Transports; changes in revision 2026-07-28.
    """

    code = "GW-026"
    spec = "basic/patterns"
    category = "envelope"

    def on_message(self, message: RecordedMessage) -> None:
        self.seen += 1
        if message.role is Role.REQUEST and not message.is_from_client:
            self.fault(message, "/method", f"A modern server sends the request {quoted(message.method)}.")
        elif message.role is Role.RESPONSE and message.is_from_client:
            self.fault(message, "", "A modern client sends an answer.")
        elif message.role is Role.RESPONSE and message.is_success and _is_removed(message.method):
            self.fault(message, "/result", f"{message.method}, which was removed, was answered with a result.")


def _is_removed(method: str) -> bool:
    return method in REVISIONS and LATEST_MODERN not in REVISIONS[method]
