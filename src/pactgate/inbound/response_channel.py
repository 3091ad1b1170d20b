"""The way back of one POST of a legacy session: one body, or a stream that can be taken up again; notices and questions on the way.

Must not: decide what is said; it only finds the stream to say it on.
"""

from __future__ import annotations

from msgspec import Struct

from pactgate.inbound.client_requests import PendingClientRequests
from pactgate.inbound.http_exchange import JSON_HEAD, EventStream, HttpExchange
from pactgate.inbound.replies import MAX_WAITING_BYTES, DroppedNotifications
from pactgate.inbound.resumable_streams import ResumableStream
from pactgate.inbound.sessions import LegacySession
from pactgate.protocol import messages


class ResponseChannel(Struct, eq=False):
    """The way back of one POST: one body, or a stream that can be taken up again."""

    exchange: HttpExchange
    session: LegacySession
    _dropped: DroppedNotifications
    _may_stream: bool
    stream: ResumableStream | None = None
    """What the answer became when something had to be said before it."""

    def notify(self, method: str, params: bytes) -> None:
        stream = self._open()
        if stream is None or (stream.sink is not None and stream.sink.unsent_bytes > MAX_WAITING_BYTES):
            self._dropped.count += 1
            return
        stream.push(messages.encode_notification(method, params))

    @property
    def can_ask(self) -> bool:
        return self._may_stream or self.session.is_listening

    async def ask(self, method: str, params: bytes) -> bytes:
        if self.session.questions is None:
            self.session.questions = PendingClientRequests()
        return await self.session.questions.ask(method, params, self._put)

    def _put(self, message: bytes) -> bool:
        """On the stream of its own request; on the standing one where the client takes no stream as an answer."""
        stream = self._open()
        if stream is None and self.session.is_listening:
            stream = self.session.log.standing()
        if stream is None:
            return False
        stream.push(message)
        return True

    def _open(self) -> ResumableStream | None:
        """The stream of this exchange, begun if need be; None where there is none or it has ended."""
        if self.stream is None:
            if not self._may_stream or self.exchange.is_answered or not self.exchange.is_connected:
                return None
            sink: EventStream = self.exchange.open_stream()
            self.stream = self.session.log.open(sink, self.exchange.cancel)
        return None if self.stream.is_ended else self.stream

    def finish(self, body: bytes, status: int = 200) -> None:
        if self.stream is None:
            self.exchange.respond(status, JSON_HEAD, body)
        else:
            self.stream.push(body)
            self.stream.end()

    def end(self, status: int, body: bytes) -> None:
        """End without an answer of the kernel's: a stream just ends."""
        if self.stream is None:
            self.exchange.respond(status, JSON_HEAD, body)
        else:
            self.stream.end()

    def fail(self, id_: bytes | None) -> None:
        """An answer could not be written. Whoever takes up the stream again sees that it has ended."""
        self.exchange.fail(id_)
        if self.stream is not None:
            self.stream.end()

    def client_gone(self) -> None:
        if self.stream is None:
            self.exchange.cancel()
        elif self.exchange.stream is not None:
            self.stream.lost(self.exchange.stream)
