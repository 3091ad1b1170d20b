"""GW-021."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict, digest
from pactgate.conformance.message import FROM_SERVER, RecordedMessage, Role
from pactgate.conformance.rule import HttpRule, LegacyRule, quoted

_AT_ONCE = 2


class EventRepeated(LegacyRule, HttpRule):
    """Event ids are unique in a session, and no message of the server travels on two streams.

    What it checks
        No id of a server-sent event stands twice; no request of the server is sent on two streams, and no notification on two
        streams at once. What a stream repeats after `Last-Event-ID` is exempt.

    Why
        A client resumes after the last id it saw: with ids that stand for several places it misses events or gets others'.
        A message on two streams is acted upon twice.

    How to fix
        Number events across the streams of a session, and choose one stream for each message.

    Reference
        Transports, Resumability and Redelivery; Multiple Connections; revisions 2025-03-26 to 2025-11-25.
    """

    code = "GW-021"
    spec = "basic/transports#resumability-and-redelivery"
    selects = FROM_SERVER

    def prepare(self) -> None:
        self._events: BoundedDict[bool] = BoundedDict()
        self._asked: BoundedDict[str] = BoundedDict()
        self._last: tuple[str, str, int] | None = None

    def on_message(self, message: RecordedMessage) -> None:
        exchange = message.view.exchange
        if exchange.http is not None and "last-event-id" in exchange.http.request_headers:
            return
        if message.event_id is not None:
            self.seen += 1
            if message.event_id in self._events:
                self.fault(message, "", f"The event id {quoted(message.event_id)} stands for two events.")
            self._events[message.event_id] = True
        if exchange.stream is not None and message.role is not Role.RESPONSE:
            self._check_streams(message, exchange.stream)

    def _check_streams(self, message: RecordedMessage, stream: str) -> None:
        self.seen += 1
        if message.role is Role.REQUEST:
            if self._asked.get(message.key, stream) != stream:
                self.fault(message, "/id", f"The request {quoted(message.body['id'])} was sent on two streams.")
            self._asked[message.key] = stream
        elif message.seq is not None:
            said = digest(message.body)
            before, elsewhere, seq = self._last or ("", stream, 0)
            if before == said and elsewhere != stream and message.seq - seq <= _AT_ONCE:
                self.fault(message, "", "The same notification was sent on two streams at once.")
            self._last = (said, stream, message.seq)
