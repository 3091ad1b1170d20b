"""GW-019."""

from __future__ import annotations

from pactgate.capture.format import Side
from pactgate.conformance.http import EVENTS_TYPE, JSON_TYPE, accepts, is_success, media_type
from pactgate.conformance.message import ExchangeView, Role
from pactgate.conformance.rule import HttpRule, quoted


class WrongMediaType(HttpRule):
    """A posted request is answered as application/json or text/event-stream, and the client accepts both.

    What it checks
        Where a request was posted, its Accept header covers both media types; and where the status is a success, the
        Content-Type of the answer is one of them.

    Why
        The client decides by the media type whether to read one message or a stream.

    How to fix
        Server: set the Content-Type. Client: always send `Accept: application/json, text/event-stream`.

    Reference
        Transports, Sending Messages to the Server; revisions 2025-03-26 to 2026-07-28.
    """

    code = "GW-019"
    spec = "basic/transports#sending-messages-to-the-server"

    def on_exchange(self, view: ExchangeView) -> None:
        http, message = view.exchange.http, view.from_client
        if http is None or http.verb != "POST" or message is None or message.role is not Role.REQUEST:
            return
        if http.request_headers:
            self.seen += 1
            text = f"Accept does not cover both {JSON_TYPE} and {EVENTS_TYPE}."
            if not (accepts(http.request_headers, JSON_TYPE) and accepts(http.request_headers, EVENTS_TYPE)):
                self.fault(view, "/http/request_headers", text, by=Side.CLIENT)
        kind = media_type(http.response_headers)
        if is_success(http.status) and http.response_headers:
            self.seen += 1
            if kind not in (JSON_TYPE, EVENTS_TYPE):
                self.fault(view, "/http/response_headers", f"The Content-Type of the answer is {quoted(kind)}.")
