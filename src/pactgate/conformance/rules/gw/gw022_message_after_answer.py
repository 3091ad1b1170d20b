"""GW-022."""

from __future__ import annotations

from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import HttpRule, RequirementLevel


class MessageAfterAnswer(HttpRule):
    """Nothing follows the answer on the stream of a request.

    What it checks
        No message that travelled on the stream of a posted request was sent after the answer to it. Needs the order of
        messages (`seq`).

    Why
        Clients close the stream when the answer has arrived; what follows is lost.

    How to fix
        Send what belongs to a request before its answer, and end the stream with the answer.

    Reference
        Transports, Sending Messages to the Server; revisions 2025-03-26 to 2026-07-28.
    """

    code = "GW-022"
    spec = "basic/transports#sending-messages-to-the-server"
    level = RequirementLevel.SHOULD

    def on_exchange(self, view: ExchangeView) -> None:
        exchange = view.exchange
        if exchange.http is None or exchange.http.verb != "POST" or exchange.response is None or not exchange.frames:
            return
        if exchange.response_seq is None:
            self.unjudged("The capture does not tell the order of the messages on a stream.")
            return
        self.seen += 1
        for number, frame in enumerate(exchange.frames):
            if frame.seq is not None and frame.seq > exchange.response_seq:
                self.fault(view, f"/notifications/{number}", "A message follows the answer on the same stream.")
