"""One HTTP request and the one answer to it, for the handlers.

A handler answers an `HttpExchange` once: by `respond`, which is a single write, or by `open_stream`. After the client has gone, or after
the answer, writing does nothing, so a handler never has to check. Header blocks are bytes of the gateway's own text, each line ending in
CRLF. Must not: parse, route, or keep anything beyond its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from msgspec import Struct

from pactgate.core.principal import Principal
from pactgate.core.recording import HttpExchangeRecorder
from pactgate.inbound.error_data import encode_internal, encode_refusal
from pactgate.inbound.http_grammar import RequestHead
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection

JSON_HEAD: Final = b"Content-Type: application/json\r\n"
STREAM_HEAD: Final = b"Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n"

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BEFORE_RESULT: Final = messages.RESULT.removesuffix(b"%b}")
_COPIED_BYTES: Final = 32 * 1024
"""Up to here one buffer is cheaper than two."""
_BODILESS: Final = frozenset({204, 304})
_REFUSAL_HEADS: Final = {405: b"Allow: GET, POST, DELETE, OPTIONS\r\n", 503: b"Retry-After: 1\r\n"}


class Work(Protocol):
    """A task or call that works on an answer."""

    def cancel(self) -> object:
        """Stop, and tell the client so."""


class ExchangeConnection(Protocol):
    """What an exchange needs of its connection. `user` is the user id at the other end of a Unix socket."""

    transport: asyncio.Transport
    user: int | None

    def client_of(self, head: RequestHead) -> str:
        """The address of the client that sent this head."""

    def may_serve(self, subject: str) -> bool:
        """Note whose request it is; False where this principal has too many connections at work."""

    def may_keep(self, exchange: HttpExchange) -> bool:
        """Whether the connection goes on after this answer."""

    def answered(self, exchange: HttpExchange) -> None:
        """The whole answer has been written."""

    def abort(self) -> None:
        """End the connection without waiting for what is unsent."""


class HttpExchange(Struct, eq=False):
    """`path` is the raw path of the target; `headers` has lower-case names, one value for each time a header was sent."""

    head: RequestHead
    body: bytes
    line: ExchangeConnection | None
    max_unsent_bytes: int
    keep_alive: bool
    is_answered: bool = False
    is_refused: bool = False
    is_forwarded: bool = False
    """Whether another replica has handed it over, so that it is served here or nowhere."""
    stream: EventStream | None = None
    work: Work | None = None
    hop: HttpExchangeRecorder | None = None
    """Where the answer is noted too, if the exchange is recorded."""
    principal: Principal | None = None
    """Whose request it is, where `head.mcp` does not say so."""
    extra_head: bytes = b""
    """Header lines every answer to this request carries."""
    ended_because: str = ""
    """Why nobody works on the answer any more: the connection can be spared."""
    on_disconnect: Callable[[], None] | None = None
    """Called once if the client goes away before the answer is complete."""

    @property
    def method(self) -> str:
        return self.head.method

    @property
    def path(self) -> str:
        return self.head.path

    @property
    def headers(self) -> dict[str, list[str]]:
        return self.head.headers

    @property
    def is_http10(self) -> bool:
        return self.head.is_http10

    @property
    def is_connected(self) -> bool:
        return self.line is not None

    @property
    def peer(self) -> str:
        """The address of the client, or nothing where it is not known."""
        return "" if self.line is None else self.line.client_of(self.head)

    @property
    def user(self) -> int | None:
        """The user id of the client, where it came through the Unix socket."""
        return None if self.line is None else self.line.user

    def respond(self, status: int, head: bytes = JSON_HEAD, *body: bytes) -> None:
        """Write the whole answer at once. The parts of a large body are not copied together."""
        line = self.line
        if line is None or self.is_answered:
            return
        size = sum(map(len, body))
        if not size:
            head = head.replace(JSON_HEAD, b"")
        if self.hop is not None:
            self.hop.answered(status, head + self.extra_head, b"".join(body))
        length = b"\r\n" if status in _BODILESS else b"Content-Length: %d\r\n\r\n" % size
        keeps = line.may_keep(self)
        ends = b"" if keeps and not self.head.is_http10 else self._connection_head(keeps)
        top = (_STATUS_LINES[status], head, self.extra_head, ends, length)
        self.is_answered = True
        if self.head.method == "HEAD":
            line.transport.write(b"".join(top))
        elif size < _COPIED_BYTES:
            line.transport.write(b"".join((*top, *body)))
        else:
            line.transport.writelines((b"".join(top), *body))
        line.answered(self)

    def respond_result(self, id_: bytes, result: bytes) -> None:
        """Answer a JSON-RPC request with its result."""
        self.respond(200, JSON_HEAD, _BEFORE_RESULT % id_, result, b"}")

    def fail(self, id_: bytes | None) -> None:
        """Answer with an internal error if nothing of the answer is written yet, else end the connection."""
        self.work = None
        line = self.line
        if line is None:
            return
        if self.is_answered:
            line.abort()
        else:
            self.respond(500, JSON_HEAD, encode_internal(id_))

    def open_stream(self, status: int = 200, head: bytes = STREAM_HEAD) -> EventStream:
        """Begin an answer of unknown length. The stream of a finished exchange is closed from the start."""
        line = self.line
        if line is None or self.is_answered:
            return EventStream(self, None)
        self.is_answered = True
        if self.is_http10:
            self.keep_alive = False  # HTTP/1.0 knows no chunks: the end of the connection ends the answer
        coding = b"" if self.is_http10 else b"Transfer-Encoding: chunked\r\n"
        ends = self._connection_head(line.may_keep(self))
        line.transport.write(b"".join((_STATUS_LINES[status], head, self.extra_head, ends, coding, b"\r\n")))
        if self.hop is not None:
            self.hop.streaming(status, head + self.extra_head)
        self.stream = EventStream(self, line)
        return self.stream

    def cancel(self) -> None:
        """Stop whoever works on the answer."""
        if self.work is not None:
            self.work.cancel()

    def end(self, reason: str) -> None:
        """Stop whoever works on the answer, and end a stream that nobody works on. The client is told why where there is a place for it."""
        self.ended_because = reason
        if self.work is not None:
            self.work.cancel()
        elif self.stream is not None:
            self.stream.close()

    def disconnected(self) -> None:
        """The client has gone. Called by the connection."""
        self.line = None
        if self.hop is not None:
            self.hop.ended(by_client=True)
        if self.stream is not None:
            self.stream.detach()
        hook, self.on_disconnect = self.on_disconnect, None
        if hook is not None:
            hook()

    def close(self) -> None:
        """The answer is complete. Drops all references in a cycle, so that nothing waits for the garbage collector."""
        self.line = self.stream = self.on_disconnect = None

    def _connection_head(self, keeps: bool) -> bytes:
        if not keeps:
            return b"Connection: close\r\n"
        return b"Connection: keep-alive\r\n" if self.is_http10 else b""


class EventStream:
    """The body of a streamed answer. If the client leaves too many bytes untaken, the connection is aborted."""

    __slots__ = ("_exchange", "_line", "last_write")

    def __init__(self, exchange: HttpExchange, line: ExchangeConnection | None) -> None:
        self._exchange = exchange
        self._line = line
        self.last_write = asyncio.get_running_loop().time()

    @property
    def is_open(self) -> bool:
        return self._line is not None

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._line is None else self._line.transport.get_write_buffer_size()

    def write(self, data: bytes) -> bool:
        """Whether the data was written or buffered. One write may be of any size, if few bytes wait before it."""
        line = self._line
        if line is None:
            return False
        if line.transport.get_write_buffer_size() > self._exchange.max_unsent_bytes:
            line.abort()
            return False
        self.last_write = asyncio.get_running_loop().time()
        if self._exchange.hop is not None:
            self._exchange.hop.events(data)
        line.transport.write(data if self._exchange.is_http10 else b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def close(self) -> None:
        """End the answer in good order."""
        line, self._line = self._line, None
        if line is None:
            return
        if self._exchange.hop is not None:
            self._exchange.hop.ended(by_client=False)
        if not self._exchange.is_http10:
            line.transport.write(b"0\r\n\r\n")
        line.answered(self._exchange)

    def detach(self) -> None:
        self._line = None


def refusal(status: int, reason: str) -> bytes:
    """A whole answer for bytes that never became an exchange. The connection ends with it."""
    body = encode_refusal(Rejection(messages.INVALID_REQUEST, reason), status)
    length = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    return b"".join((_STATUS_LINES[status], JSON_HEAD, _REFUSAL_HEADS.get(status, b""), length, body))
