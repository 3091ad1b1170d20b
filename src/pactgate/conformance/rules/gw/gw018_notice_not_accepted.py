"""GW-018."""

from __future__ import annotations

from pactgate.conformance.http import ACCEPTED, BAD_REQUEST
from pactgate.conformance.message import ExchangeView, Role
from pactgate.conformance.rule import HttpRule


class NoticeNotAccepted(HttpRule):
    """A posted notification or answer gets 202 without a body, or an HTTP error.

    What it checks
        Where the client posts a notification, or an answer to a request of the server, the status is 202 and the body is
        empty, or the status is 400 or more.

    Why
        A client that gets 200 looks for a message in the body, and some fail because there is none.

    How to fix
        Answer with 202 and no body.

    Reference
        Transports, Sending Messages to the Server; revisions 2025-03-26 to 2026-07-28.
    """

    code = "GW-018"
    spec = "basic/transports#sending-messages-to-the-server"

    def on_exchange(self, view: ExchangeView) -> None:
        http, message = view.exchange.http, view.from_client
        if (
            http is None
            or http.status is None
            or http.verb != "POST"
            or message is None
            or message.role is Role.REQUEST
        ):
            return
        if isinstance(view.exchange.request, list):
            return  # a batch may hold requests as well
        self.seen += 1
        if http.status != ACCEPTED and http.status < BAD_REQUEST:
            self.fault(view, "/http/status", f"A posted {message.role} got the status {http.status}, not 202.")
        elif http.status == ACCEPTED and http.response_bytes:
            self.fault(view, "/http/response_bytes", f"A posted {message.role} got 202 with a body.")
