"""One client's connection: requests strictly in order, one running at a time.

A connection bounds everything a client can make the gateway hold or wait for: time for a head and for progress of a body, idle time,
requests sent ahead, answers not taken, and its part in the sum over all connections. A request is judged when its head is complete; if
it is refused, its body is not read. The gateway answers malformed bytes once and then ends the connection; before that, it reads and
discards for a moment what still comes in, so that the answer is not lost to a reset. Must not: know what a request means.
Closing after any parse error leaves no room for request smuggling; the bounds hold against slow, endless and idle peers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, Protocol, cast

from pactgate.core.events import Emit, RequestRefused
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.held_bytes import HeldBytes, Hold
from pactgate.inbound.http_exchange import HttpExchange, refusal
from pactgate.inbound.http_grammar import BadRequestError, RequestHead
from pactgate.inbound.peer_address import LOCAL, TrustedProxies, counted_address, host_of
from pactgate.inbound.request_reader import Ready, RequestHeadCache, RequestReader
from pactgate.inbound.server_limits import MIB, ServerLimits
from pactgate.inbound.unix_socket import user_of
from pactgate.protocol import messages
from pactgate.protocol.framing import KEEPALIVE

_AHEAD_BYTES: Final = 64 * 1024
_SMALL_BODY_BYTES: Final = 64 * 1024
_DISCARD_BYTES: Final = 16 * MIB
_WRITE_FLOOR_BYTES: Final = 16 * 1024
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_IDENTITY: Final = ["identity"]
_NEVER: Final = math.inf
_ENDING: Final = 0
_UNKNOWN: Final = 1
IDLE: Final = 2


Handle = Callable[[HttpExchange], None]
"""Answers an exchange, or sees that it is answered. Does not wait."""

Admit = Callable[[HttpExchange], bool]
"""Whether the body of a request is worth reading; if not, the exchange is answered as `Handle` says."""


class ConnectionHub(Protocol):
    """What all connections of a server share."""

    limits: ServerLimits
    held: HeldBytes
    is_closing: bool
    emit: Emit
    admit: Admit
    handle: Handle
    barrier: FaultBarrier
    proxies: TrustedProxies

    @property
    def is_crowded(self) -> bool:
        """Whether idle connections should end sooner than usual."""

    def enter(self, connection: InboundConnection) -> None:
        """One more connection."""

    def leave(self, connection: InboundConnection) -> None:
        """The connection is no more."""

    def may_serve(self, connection: InboundConnection, subject: str) -> bool:
        """Whether a connection beyond the limits may serve a request of this principal."""


class InboundConnection(asyncio.Protocol):
    """Holds at most one exchange. `deadline` is looked at by the server's sweep; there is no timer per connection."""

    __slots__ = (
        "_ahead",
        "_discarded",
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
        "_unanswered",
        "_unsent",
        "_window_start",
        "address",
        "deadline",
        "exchange",
        "is_guest",
        "peer",
        "subject",
        "transport",
        "user",
    )

    transport: asyncio.Transport

    def __init__(self, hub: ConnectionHub, loop: asyncio.AbstractEventLoop) -> None:
        self._hub = hub
        self._limits = hub.limits
        self._loop = loop
        self._reader = RequestReader(hub.limits, RequestHeadCache())
        self._ahead = bytearray()
        self._window_start = 0
        self._unanswered = Hold(hub.held)
        self._unsent = Hold(hub.held)
        self._discarded = 0
        self._is_lingering = self._is_lost = self._is_stalled = False
        self._is_reading = True
        self._stalled_until = _NEVER
        self._stalled_bytes = 0
        self.exchange: HttpExchange | None = None
        self.deadline = loop.time() + self._limits.head_timeout_s
        self.peer = ""
        """The host at the other end."""
        self.address = ""
        """What connections of that host are counted by."""
        self.user: int | None = None
        """The user id at the other end of a Unix socket."""
        self.subject: str | None = None
        """The principal that was identified on this connection last; None if none was."""
        self.is_guest = False
        """Whether it is beyond the limits: it may serve one request, of a principal with few others."""

    # -- what the event loop tells us

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.user = user_of(transport)
        self.peer = host_of(transport.get_extra_info("peername")) if self.user is None else LOCAL
        self.address = counted_address(self.peer)
        self._hub.enter(self)

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
        self._unanswered.clear()
        self._unsent.clear()
        self._hub.leave(self)
        self._client_gone()

    def pause_writing(self) -> None:
        self._is_stalled = True
        self._watch_writing(self._loop.time())
        self._hold_unsent()

    def resume_writing(self) -> None:
        self._is_stalled = False
        self._unsent.clear()
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
        if self._is_stalled:
            self._hold_unsent()
        if self._is_idle and self._hub.is_crowded:
            self.deadline = min(self.deadline, now + self._limits.crowded_idle_timeout_s)
        if now >= self.deadline:
            self._expire(now)
        elif self.exchange is not None and self.exchange.stream is not None:
            stream = self.exchange.stream
            if now - stream.last_write >= self._limits.stream_keepalive_s:
                stream.write(KEEPALIVE)

    def spare_rank(self) -> int | None:
        """How easily this connection can be spared for a new one, the lowest first; None while it is at work."""
        if (self.exchange is not None and not self.exchange.ended_because) or self._is_stalled:
            return None
        if self._is_lingering:
            return _ENDING
        if self.subject is None:
            return _UNKNOWN
        return IDLE if self._is_idle else None

    @property
    def _is_idle(self) -> bool:
        return self.exchange is None and self._reader.is_empty and not (self._is_lingering or self._is_stalled)

    def close_idle(self) -> None:
        """The server stops: end at once unless a request is under way."""
        exchange = self.exchange
        if exchange is None:
            self.transport.close()
        elif exchange.work is None and exchange.stream is not None:
            exchange.stream.close()

    def abort(self) -> None:
        """End without waiting for unsent bytes. The handler of a request under way is told at once."""
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
        was_in_body = reader.head is not None
        ready = reader.feed(data)
        if ready is not None:
            if len(ready.body) > _SMALL_BODY_BYTES:
                if not was_in_body and not self._admit(ready.head):
                    return
                self._hold(len(data))
            self._dispatch(ready)
        elif reader.head is not None:
            self._read_body(reader.head, data, is_first=not was_in_body)
        else:
            self._hold(len(data))
            if reader.has_begun_now:
                self.deadline = self._loop.time() + self._limits.head_timeout_s

    def _read_body(self, head: RequestHead, data: bytes, *, is_first: bool) -> None:
        """Note a part of a body. Each `body_progress_bytes` of it have a time limit of their own."""
        received = self._reader.received_bytes
        if is_first:
            if not self._admit(head):
                return
            self._unanswered.clear()  # the pieces of its head were nobody's
            if head.expects_continue and not received:
                self.transport.write(_CONTINUE)
        self._hold(len(data))
        if is_first or received - self._window_start >= self._limits.body_progress_bytes:
            self._window_start = received
            self.deadline = self._loop.time() + self._limits.body_timeout_s

    def _admit(self, head: RequestHead) -> bool:
        """Whether to read the body of this request. If not, the connection ends with the answer, which the frontend gives at once."""
        _check_coding(head)
        exchange = self.exchange = HttpExchange(
            head=head, body=b"", line=self, max_unsent_bytes=self._limits.max_unsent_bytes, keep_alive=False
        )
        self.deadline = _NEVER
        try:
            if not self._hub.admit(exchange):
                return False
        except Exception as fault:  # noqa: BLE001 - a fault stays with its exchange
            self._fail(exchange, fault)
            return False
        self.exchange = None
        exchange.close()
        return True

    def _keep_for_later(self, data: bytes) -> None:
        if self._is_lingering or (self.exchange is not None and not self.exchange.keep_alive):
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
        """Count bytes of requests."""
        if not self._unanswered.resize(self._unanswered.size + size_bytes, self.subject):
            raise BadRequestError(503, "The gateway holds as many bytes of requests as it may; try again.")

    def _hold_unsent(self) -> None:
        """Count the part of an answer that the client has not taken."""
        if not self._unsent.resize(self.transport.get_write_buffer_size(), self.subject):
            self._loop.call_soon(self.abort)  # not here: whoever writes the answer has not finished

    # -- answering

    def _dispatch(self, ready: Ready) -> None:
        head = ready.head
        if head.mcp is None:
            _check_coding(head)
        if ready.rest:
            self._hold(len(ready.rest))
            self._ahead += ready.rest
        exchange = self.exchange = HttpExchange(
            head=head,
            body=ready.body,
            line=self,
            max_unsent_bytes=self._limits.max_unsent_bytes,
            keep_alive=head.keep_alive,
        )
        self.deadline = _NEVER
        try:
            self._hub.handle(exchange)
        except Exception as fault:  # noqa: BLE001 - a fault stays with its exchange
            self._fail(exchange, fault)

    def _fail(self, exchange: HttpExchange, fault: Exception) -> None:
        self._hub.barrier.report("inbound", fault)
        self._hub.barrier.run("inbound", exchange.fail, None)

    def may_serve(self, subject: str) -> bool:
        self.subject = subject
        if self.is_guest and self.exchange is not None:
            self.exchange.keep_alive = self.exchange.head.keep_alive = False
        return not self.is_guest or self._hub.may_serve(self, subject)

    def client_of(self, head: RequestHead) -> str:
        return self._hub.proxies.client_of(self.peer, head.headers) if self.user is None else self.peer

    def may_keep(self, exchange: HttpExchange) -> bool:
        return exchange.keep_alive and not self._hub.is_closing

    def answered(self, exchange: HttpExchange) -> None:
        """The exchange is over: the connection ends, or waits for the next request."""
        keeps = exchange.keep_alive and not self._hub.is_closing
        self.exchange = None
        exchange.close()
        if self._unanswered.size:
            self._unanswered.clear()
        if self._is_lost:
            return
        if not keeps:
            self._linger()
            return
        self.deadline = self._loop.time() + self._limits.idle_timeout_s
        if self._ahead or not self._is_reading:
            self._loop.call_soon(self._next)  # not here: as many may have been sent ahead as the stack has no room for

    def _next(self) -> None:
        """Read the requests that were sent ahead, unless the client does not take the last answer."""
        if self.exchange is not None or self._is_lingering or self._is_lost or self._is_stalled:
            return
        if self._ahead:
            data = bytes(self._ahead)
            self._ahead.clear()
            self.data_received(data)
        if len(self._ahead) <= _AHEAD_BYTES:  # else all that a client sends would be kept, and copied for each request
            self._go_on_reading()

    def _go_on_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.transport.resume_reading()

    def _refuse(self, status: int, reason: str) -> None:
        """Answer what never became a request, once, and end."""
        self._hub.emit(RequestRefused(status, messages.INVALID_REQUEST, reason, self.peer))
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
        self._unanswered.clear()
        if self._hub.is_closing or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._go_on_reading()
        now = self._loop.time()
        self.deadline = now + self._limits.linger_s
        self._watch_writing(now)
        self.transport.write_eof()

    def _watch_writing(self, now: float) -> None:
        """Note the unsent bytes: the sweep checks that they have become fewer."""
        self._stalled_bytes = self.transport.get_write_buffer_size()
        self._stalled_until = now + self._limits.write_timeout_s

    def _client_gone(self) -> None:
        exchange = self.exchange
        if exchange is not None and exchange.is_connected:
            if exchange.work is None:
                self.exchange = None
            exchange.disconnected()


def _check_coding(head: RequestHead) -> None:
    if head.headers.get("content-encoding", _IDENTITY) != _IDENTITY:
        raise BadRequestError(415, "Send the body without a Content-Encoding.")
