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
    _session: LegacySession
    _dropped: DroppedNotifications
    _may_stream: bool
    _stream: ResumableStream | None = None

    @property
    def is_streaming(self) -> bool:
        return self._stream is not None

    def notify(self, method: str, params: bytes) -> None:
        stream = self._open()
        if stream is None or (stream.sink is not None and stream.sink.unsent_bytes > MAX_WAITING_BYTES):
            self._dropped.count += 1
            return
        stream.push(messages.encode_notification(method, params))

    @property
    def can_ask(self) -> bool:
        return self._may_stream or self._session.is_listening

    async def ask(self, method: str, params: bytes) -> bytes:
        if self._session.questions is None:
            self._session.questions = PendingClientRequests()
        return await self._session.questions.ask(method, params, self._put)

    def _put(self, message: bytes) -> bool:
        """On the stream of its own request; on the standing one where the client takes no stream as an answer."""
        stream = self._open()
        if stream is None and self._session.is_listening:
            stream = self._session.log.standing()
        if stream is None:
            return False
        stream.push(message)
        return True

    def _open(self) -> ResumableStream | None:
        """The stream of this exchange, begun if need be; None where there is none or it has ended."""
        if self._stream is None:
            if not self._may_stream or self.exchange.is_answered or not self.exchange.is_connected:
                return None
            sink: EventStream = self.exchange.open_stream()
            self._stream = self._session.log.open(sink, self.exchange.cancel)
        return None if self._stream.is_ended else self._stream

    def finish(self, body: bytes, status: int = 200) -> None:
        if self._stream is None:
            self.exchange.respond(status, JSON_HEAD, body)
        else:
            self._stream.push(body)
            self._stream.end()

    def end(self, status: int, body: bytes) -> None:
        """End without an answer of the kernel's: a stream just ends."""
        if self._stream is None:
            self.exchange.respond(status, JSON_HEAD, body)
        else:
            self._stream.end()

    def fail(self, id_: bytes | None) -> None:
        """An answer could not be written. Whoever takes up the stream again sees that it has ended."""
        self.exchange.fail(id_)
        if self._stream is not None:
            self._stream.end()

    def client_gone(self) -> None:
        if self._stream is None:
            self.exchange.cancel()
        elif self.exchange.stream is not None:
            self._stream.lost(self.exchange.stream)
