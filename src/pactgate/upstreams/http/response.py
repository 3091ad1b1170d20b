"""HTTP responses: a whole one, or an event stream that is read while it arrives, with back-pressure.

Must not: know sockets or the parser; the connection behind a stream is only paused, resumed, drained or aborted.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from msgspec import Struct

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.request_message import media_type
from pactgate.upstreams.pending import Resumable

JSON_TYPE: Final = b"application/json"
_HIGH_BYTES: Final = 256 * 1024
"""With more unread bytes than this, reading from the connection pauses."""


class StreamSource(Protocol):
    """The connection behind a stream."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def drain(self) -> None: ...

    def abort(self) -> None: ...


class ResponseSource(Protocol):
    """The connection that a response comes on."""

    def give_up(self, pending: PendingResponse) -> None:
        """Close it, unless the whole response has come."""


class HttpResponse(Struct):
    """A response with a `body`, or with a `stream` of events. Header names are lower case; the first value of a name counts."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes = b""
    stream: ResponseStream | None = None

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def is_json(self) -> bool:
        return media_type(self.headers.get(b"content-type", b"")) == JSON_TYPE


class PendingResponse(Resumable[HttpResponse]):
    """The request of one exchange, until its response has come."""

    source: ResponseSource | None = None

    def abandon(self) -> None:
        """Nobody waits any more: the connection is closed. A stream that had been handed over a moment before is ended here."""
        if self.source is not None:
            self.source.give_up(self)
        if self.done() and not self.cancelled() and self.exception() is None:
            stream = self.result().stream
            if stream is not None:
                stream.close()
        super().abandon()


class ResponseStream:
    """The body of an event stream. Its reader must end it with `close` or `let_finish`."""

    __slots__ = ("_buffer", "_failure", "_is_paused", "_source", "_waiter")

    def __init__(self, source: StreamSource) -> None:
        self._source: StreamSource | None = source
        self._buffer = bytearray()
        self._failure: GatewayFailure | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False

    async def read(self) -> bytes:
        """The bytes since the last read; waits for at least one. b"" at the end. Raises the failure that broke the stream."""
        if not self._buffer and self._source is not None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._buffer and self._failure is not None:
            raise self._failure
        data = bytes(self._buffer)
        self._buffer.clear()
        if self._is_paused and self._source is not None:
            self._is_paused = False
            self._source.resume()
        return data

    def close(self) -> None:
        """End the stream now. The server sees its connection close."""
        if self._source is not None:
            self._source.abort()

    def let_finish(self) -> None:
        """Discard the rest; the connection returns to the pool if the stream ends soon."""
        if self._source is not None:
            self._source.drain()

    # For the connection.

    def take(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _HIGH_BYTES and not self._is_paused and self._source is not None:
            self._is_paused = True
            self._source.pause()
        self._wake()

    def end(self, failure: GatewayFailure | None) -> None:
        self._source = None
        self._failure = failure
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
