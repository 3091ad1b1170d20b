"""GW-020."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.http import BAD_REQUEST, EVENTS_TYPE, accepts, media_type
from pactgate.conformance.message import RESPONSES, ExchangeView, RecordedMessage
from pactgate.conformance.rule import HttpRule, LegacyRule

_REFUSALS: Final = frozenset({401, 403, 404, 405, 409, 429})


class GetWithoutStream(LegacyRule, HttpRule):
    """A GET opens an event stream or is refused, and carries no answers unless it resumes one.

    What it checks
        A GET that accepts `text/event-stream` is answered with such a stream or with 405. Other refusals that HTTP itself
        provides for (401, 403, 404, 409, 429) are accepted. On its stream there are no answers, unless the client sent
        `Last-Event-ID`.

    Why
        Clients open the stream for what the server says on its own; an answer there is one they no longer wait for.

    How to fix
        Answer GET with 405 if there is no such stream, and send each answer on the stream of its request.

    Reference
        Transports, Listening for Messages from the Server; revisions 2025-03-26 to 2025-11-25.
    """

    code = "GW-020"
    spec = "basic/transports#listening-for-messages-from-the-server"
    selects = RESPONSES

    def on_exchange(self, view: ExchangeView) -> None:
        http = view.exchange.http
        if http is None or http.verb != "GET" or http.status is None:
            return
        self.seen += 1
        if http.status < BAD_REQUEST and media_type(http.response_headers) != EVENTS_TYPE:
            self.fault(view, "/http/response_headers", "GET was answered with something else than an event stream.")
        elif http.status >= BAD_REQUEST and http.status not in _REFUSALS and accepts(http.request_headers, EVENTS_TYPE):
            self.fault(view, "/http/status", f"GET was refused with the status {http.status}, not 405.")

    def on_message(self, message: RecordedMessage) -> None:
        http = message.view.exchange.http
        is_on_get = http is not None and http.verb == "GET" and "last-event-id" not in http.request_headers
        if is_on_get:
            self.fault(message, "", "There is an answer on a stream that was opened by GET and resumes none.")
