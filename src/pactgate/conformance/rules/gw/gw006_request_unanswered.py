"""GW-006."""

from __future__ import annotations

from pactgate.conformance.message import REQUESTS, RecordedMessage
from pactgate.conformance.rule import RequirementLevel, SessionRule, quoted


class RequestUnanswered(SessionRule):
    """Every request is answered or cancelled, unless its stream or connection ended.

    What it checks
        At the end of the capture no request is open, except those that were cancelled, that HTTP refused, whose stream was
        closed, or whose connection had ended (`closed`). A probe waits for every answer before it ends the connection.
        `subscriptions/listen` stays open by design.

    Why
        A request without an answer is a client that waits until its timeout.

    How to fix
        Answer in every path of the code, the failing ones above all.

    Reference
        Transports, Sending Messages; Cancellation; all revisions.
    """

    code = "GW-006"
    spec = "basic/transports#sending-messages-to-the-server"
    category = "messages"
    level = RequirementLevel.SHOULD
    selects = REQUESTS

    def on_message(self, message: RecordedMessage) -> None:
        self.seen += 1

    def at_end(self) -> None:
        session = self.session
        if session.head.is_closed and not session.head.is_probe:
            return
        for place, request in session.open.items():
            view = request.view
            has_ended = view.exchange.closed_by is not None or view.is_refused_by_http
            if not has_ended and request.method != "subscriptions/listen" and place not in session.cancelled:
                text = f"The request {quoted(request.method)} was never answered."
                self.fault(request, "", text, by=request.sender.other)
