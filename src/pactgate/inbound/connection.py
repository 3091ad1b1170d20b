"""One client's connection: requests strictly in order, one running at a time.

Bounds everything a client can make us hold or wait for: time for head and body, idle time, requests sent ahead, answers not taken, and
its part in the sum over all connections. What is no request is answered once, then the connection ends; before it ends, what still
comes in is read and thrown away for a moment, so that the answer is not lost to a reset. Must not: know what a request means.
Closing after any parse error leaves no room for request smuggling; the bounds hold against slow, endless and idle peers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol, cast

from pactgate.core.events import Emit, RequestRefused
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.http_grammar import BadRequestError
from pactgate.inbound.request_reader import Ready, RequestHeadCache, RequestReader
from pactgate.inbound.server_limits import MIB, ServerLimits
from pactgate.protocol import messages
from pactgate.protocol.framing import KEEPALIVE

_AHEAD_BYTES: Final = 64 * 1024
_SMALL_BODY_BYTES: Final = 64 * 1024
_DISCARD_BYTES: Final = 16 * MIB
_WRITE_FLOOR_BYTES: Final = 16 * 1024
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_IDENTITY: Final = ["identity"]
_NEVER: Final = math.inf
_EXTRA_HEADS: Final = {405: b"Allow: GET, POST, DELETE, OPTIONS\r\n", 503: b"Retry-After: 1\r\n"}


Handle = Callable[[HttpExchange], None]
"""Answers an exchange, or sees that it is answered. Does not wait."""


class ConnectionHub(Protocol):
    """What all connections of a server share."""

    limits: ServerLimits
    is_closing: bool
    emit: Emit
    handle: Handle
    barrier: FaultBarrier

    def enter(self, connection: InboundConnection) -> bool:
        """Whether there is room for one more."""

    def leave(self, connection: InboundConnection) -> None:
        """The connection is no more."""

    def hold(self, size_bytes: int) -> bool:
        """Count bytes held for clients; False, and not counted, where it would be too many."""


class InboundConnection(asyncio.Protocol):
    """Holds at most one exchange. `deadline` is looked at by the server's sweep; there is no timer per connection."""

    __slots__ = (
        "_ahead",
        "_body_since",
        "_discarded",
        "_held_bytes",
        "_hub",
        "_is_lingering",
        "_is_lost",
        "_is_reading",
        "_is_stalled",
        "_limits",
        "_loop",
        "_reader",
        "_stalled_bytes",
        "_stalled_until",
        "deadline",
        "exchange",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(self, hub: ConnectionHub, loop: asyncio.AbstractEventLoop) -> None:
        self._hub = hub
        self._limits = hub.limits
        self._loop = loop
        self._reader = RequestReader(hub.limits, RequestHeadCache())
        self._ahead = bytearray()
        self._body_since = 0.0
        self._held_bytes = 0
        self._discarded = 0
        self._is_lingering = self._is_lost = self._is_stalled = False
        self._is_reading = True
        self._stalled_until = _NEVER
        self._stalled_bytes = 0
        self.exchange: HttpExchange | None = None
        self.deadline = loop.time() + self._limits.head_timeout_s

    # -- what the event loop tells us

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if not self._hub.enter(self):
            self._refuse(503, "The gateway has as many connections as it may hold; try again.")

    def data_received(self, data: bytes) -> None:
        try:
            if self.exchange is not None or self._ahead or self._is_lingering or self._is_stalled:
                self._keep_for_later(data)
            else:
                self._read(data)
        except BadRequestError as problem:
            self._refuse(problem.status, problem.reason)

    def eof_received(self) -> bool:
        self._client_gone()
        self._watch_writing(self._loop.time())  # the transport closes itself now, once it has written what is left
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._ahead.clear()
        self._release()
        self._hub.leave(self)
        self._client_gone()

    def pause_writing(self) -> None:
        self._is_stalled = True
        self._watch_writing(self._loop.time())

    def resume_writing(self) -> None:
        self._is_stalled = False
        if not self._is_lingering:
            self._stalled_until = _NEVER
            self._next()

    # -- what the server asks

    def sweep(self, now: float) -> None:
        """Look after the deadlines."""
        if now >= self._stalled_until:
            if self.transport.get_write_buffer_size() > self._stalled_bytes - _WRITE_FLOOR_BYTES:
                self.abort()
                return
            self._watch_writing(now)
        if self.transport.is_closing():
            return
        if now >= self.deadline:
            self._expire(now)
        elif self.exchange is not None and self.exchange.stream is not None:
            stream = self.exchange.stream
            if now - stream.last_write >= self._limits.stream_keepalive_s:
                stream.write(KEEPALIVE)

    def close_idle(self) -> None:
        """The server stops: end at once unless somebody works on an answer."""
        exchange = self.exchange
        if exchange is None:
            self.transport.close()
        elif exchange.work is None and exchange.stream is not None:
            exchange.stream.close()

    def abort(self) -> None:
        """End without waiting for what is unsent. Whoever works on an answer learns it at once: nothing can be written any more."""
        self.transport.abort()
        self._client_gone()

    def _expire(self, now: float) -> None:
        if self._is_lingering:
            if self.transport.get_write_buffer_size():
                self.deadline = now + self._limits.linger_s  # how long that may go on is watched besides
            else:
                self.abort()
        elif self._reader.is_empty:
            self._linger()
        else:
            self._refuse(408, "The request did not come in time.")

    # -- reading

    def _read(self, data: bytes) -> None:
        reader = self._reader
        was_empty, was_in_body = reader.is_empty, reader.head is not None
        ready = reader.feed(data)
        if ready is not None:
            if len(ready.body) > _SMALL_BODY_BYTES:
                self._hold(len(data))
            self._dispatch(ready)
            return
        self._hold(len(data))
        limits = self._limits
        if reader.head is not None:
            if not was_in_body:
                self._body_since = self._loop.time()
                if reader.head.expects_continue and not reader.received_bytes:
                    self.transport.write(_CONTINUE)
            earned_s = reader.received_bytes / limits.body_floor_bytes_per_s
            self.deadline = self._body_since + limits.body_timeout_s + earned_s
        elif was_empty:
            self.deadline = self._loop.time() + limits.head_timeout_s

    def _keep_for_later(self, data: bytes) -> None:
        if self._is_lingering:
            self._discarded += len(data)
            if self._discarded > _DISCARD_BYTES:
                self.abort()
            return
        self._hold(len(data))
        self._ahead += data
        if len(self._ahead) > _AHEAD_BYTES and self._is_reading:
            self._is_reading = False
            self.transport.pause_reading()

    def _hold(self, size_bytes: int) -> None:
        """Count what is held for this client in the sum over all clients."""
        if not self._hub.hold(size_bytes):
            raise BadRequestError(503, "The gateway holds as many bytes of requests as it may; try again.")
        self._held_bytes += size_bytes

    def _release(self) -> None:
        self._hub.hold(-self._held_bytes)
        self._held_bytes = 0

    # -- answering

    def _dispatch(self, ready: Ready) -> None:
        head = ready.head
        if head.mcp is None and head.headers.get("content-encoding", _IDENTITY) != _IDENTITY:
            raise BadRequestError(415, "Send the body without a Content-Encoding.")
        exchange = self.exchange = HttpExchange(head, ready.body, self, self._limits.max_unsent_bytes)
        self.deadline = _NEVER
        if ready.rest:
            self._ahead += ready.rest
        try:
            self._hub.handle(exchange)
        except Exception as fault:  # noqa: BLE001 - a fault stays with its exchange
            self._hub.barrier.report("inbound", fault)
            self._hub.barrier.run("inbound", exchange.fail, None)

    def may_keep(self, exchange: HttpExchange) -> bool:
        return exchange.keep_alive and not self._hub.is_closing

    def answered(self, exchange: HttpExchange) -> None:
        self._settle(exchange)

    def _settle(self, exchange: HttpExchange) -> None:
        """The exchange is over: the connection ends, or waits for the next request."""
        keeps = exchange.keep_alive and not self._hub.is_closing
        self.exchange = None
        exchange.close()
        if self._held_bytes:
            self._release()
        if self._is_lost:
            return
        if not keeps:
            self._linger()
            return
        self.deadline = self._loop.time() + self._limits.idle_timeout_s
        if self._ahead or not self._is_reading:
            self._loop.call_soon(self._next)  # not here: as many may have been sent ahead as the stack has no room for

    def _next(self) -> None:
        """Go on with what was sent ahead, unless an answer is still being written to a client that does not take it."""
        if self.exchange is not None or self._is_lingering or self._is_lost or self._is_stalled:
            return
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()
        if self._ahead:
            data = bytes(self._ahead)
            self._ahead.clear()
            self.data_received(data)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer what never became a request, once, and end."""
        self._hub.emit(RequestRefused(status, messages.INVALID_REQUEST, reason))
        if self.exchange is not None:
            self.abort()  # another answer is being written: there is no place for this one
            return
        self.transport.write(refusal(status, reason))
        self._linger()

    def _linger(self) -> None:
        """Close our half; the client sees the answer and its end, and closes the other."""
        if self.transport.is_closing():
            return
        self._is_lingering = True
        self._ahead.clear()
        self._release()
        if self._hub.is_closing or not self.transport.can_write_eof():
            self.transport.close()
            return
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()
        now = self._loop.time()
        self.deadline = now + self._limits.linger_s
        self._watch_writing(now)
        self.transport.write_eof()

    def _watch_writing(self, now: float) -> None:
        """What is unsent now must have shrunk when this is looked at again."""
        self._stalled_bytes = self.transport.get_write_buffer_size()
        self._stalled_until = now + self._limits.write_timeout_s

    def _client_gone(self) -> None:
        exchange = self.exchange
        if exchange is not None and exchange.is_connected:
            if exchange.work is None:
                self.exchange = None
            exchange.disconnected()


def refusal(status: int, reason: str) -> bytes:
    """A whole answer for bytes that never became an exchange."""
    body = _error_body(reason)
    head = b"HTTP/1.1 %d %b\r\n%b%bConnection: close\r\nContent-Length: %d\r\n\r\n"
    return (
        head % (status, HTTPStatus(status).phrase.encode(), JSON_HEAD, _EXTRA_HEADS.get(status, b""), len(body)) + body
    )


def _error_body(reason: str) -> bytes:
    return messages.encode_error(None, messages.INVALID_REQUEST, reason)
