"""One keep-alive connection to an HTTP/1.1 server: one request at a time, parsed by httptools, with bounds in every direction.

A whole response costs one write and one wake-up; an event stream is handed over at its head. Must not: repeat a request, follow a redirect,
or take unrequested bytes for the next response. A connection returns to its pool only after a response that ended where it said it would.
Encodings are refused; heads, bodies and the bytes between chunks are bounded, so that a server can't exhaust the gateway.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Final, cast
from urllib.parse import urlsplit

import httptools

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.proxy import credentials_refused
from pactgate.upstreams.http.request_message import HttpTarget, media_type
from pactgate.upstreams.http.response import HttpResponse, PendingResponse, ResponseStream
from pactgate.upstreams.http.response_head_cache import MemoisedHead, ResponseHeadCache, keep_alive_s
from pactgate.upstreams.http.tls import certificate_refused

MAX_HEAD_BYTES: Final = 32 * 1024
_MAX_PIECES: Final = 100_000
"""The most pieces of one response: 8 MiB in chunks of one byte would block the event loop for seconds."""
_DRAIN_BYTES: Final = 64 * 1024
_DRAIN_S: Final = 1.0
_NOT_PROCESSED: Final = frozenset({301, 302, 307, 308})


class ResponseMode(Enum):
    """Which responses a request accepts: those MCP allows, any HTTP allows, or any without a body (HEAD)."""

    MCP = 0
    ANY = 1
    HEAD = 2


_HEAD: Final = ResponseMode.HEAD


class ClientConnection(asyncio.Protocol):
    """`on_free` is called when a response has ended and another request can begin, `on_lost` once when the connection is gone."""

    def __init__(
        self,
        target: HttpTarget,
        on_free: Callable[[ClientConnection], None],
        on_lost: Callable[[ClientConnection], None],
        heads: ResponseHeadCache,
    ) -> None:
        self.target = target
        self.expires_at = 0.0
        self.idle_since = 0.0
        self.hint_s: float | None = None
        self._on_free = on_free
        self._on_lost = on_lost
        self._heads = heads
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pending: PendingResponse | None = None
        self._stream: ResponseStream | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._is_busy = False
        self._max_body_bytes = 0
        self._takes = ResponseMode.MCP
        self._reset()

    def _reset(self) -> None:
        self._is_clean = True
        self._headers: dict[bytes, bytes] = {}
        self._status = 0
        self._body: list[bytes | memoryview] = []
        self._known: MemoisedHead | None = None
        self._first = b""
        """The first piece of an answer, for what may be learnt from its head."""
        self._body_bytes = 0
        self._idle_bytes = 0
        self._head_bytes = 0
        self._is_complete = False
        self._is_kept = False
        self._is_dirty = False
        self._drain_left = -1
        self._problem: GatewayFailure | None = None

    # For the pool.

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def begin(
        self,
        pending: PendingResponse,
        target: HttpTarget,
        request: bytes,
        max_body_bytes: int,
        takes: ResponseMode = ResponseMode.MCP,
    ) -> None:
        """Write a request. The pending gets the answer; one that is not there any more must be taken back by `give_up`."""
        assert self._transport is not None
        if not self._is_clean:
            self._reset()
        self.target = target
        self._max_body_bytes = max_body_bytes
        self._takes = takes
        self._is_busy = True
        self._pending = pending
        self._transport.write(request)

    def give_up(self, pending: PendingResponse) -> None:
        """The caller is gone: close the connection, unless a whole response has freed it in the meantime."""
        if self._pending is pending:
            self._pending = None
            self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def fail(self, failure: GatewayFailure) -> None:
        """End the request and the connection with this failure."""
        self.abort()
        pending, self._pending = self._pending, None
        stream, self._stream = self._stream, None
        if pending is not None:
            pending.refuse(failure)
        if stream is not None:
            stream.end(failure)

    # For the stream.

    def pause(self) -> None:
        if self.is_open and self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self.is_open and self._transport is not None:
            self._transport.resume_reading()

    def drain(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end(None)
        self._drain_left = _DRAIN_BYTES
        self._drain_timer = self.loop.call_later(_DRAIN_S, self.abort)
        self.resume()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            self.abort()  # unrequested bytes must not become the next response
            return
        if self._is_clean:
            known = self._heads.find(data) if self._takes is not _HEAD else None
            if known is not None and known.length <= self._max_body_bytes:
                self._take_known(known, data)
                return
            self._is_clean = False
            self._first = data
        elif self._known is not None:
            self._take_more(self._known, data)
            return
        self._idle_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            if not self._is_complete:
                self.fail(self._problem or self._invalid(f"sent what is not HTTP/1.1: {problem}"))
                return
            self._is_dirty = True
        if self._is_complete:
            self._finish()
        elif self._idle_bytes > MAX_HEAD_BYTES:
            self.fail(self._invalid(f"sent more than {MAX_HEAD_BYTES} bytes of headers"))

    def _take_known(self, known: MemoisedHead, data: bytes) -> None:
        """An answer whose head needs no reading: what follows is its body, now or in further pieces."""
        self.hint_s = known.keep_alive_s
        if known.end + known.length == len(data):
            self._free(is_reusable=True, response=HttpResponse(200, known.headers, data[known.end :]))
            return
        self._is_clean = False
        self._known, self._status, self._headers = known, 200, known.headers
        self._body = [memoryview(data)[known.end :]]
        self._body_bytes = len(data) - known.end

    def _take_more(self, known: MemoisedHead, data: bytes) -> None:
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes < known.length:
            if len(self._body) > _MAX_PIECES:
                self.fail(self._oversized())
            return
        body = b"".join(self._body)
        is_exact = self._body_bytes == known.length
        self._free(is_reusable=is_exact, response=HttpResponse(200, known.headers, body[: known.length]))

    def eof_received(self) -> None:
        """The transport closes itself; `connection_lost` follows."""

    def connection_lost(self, exc: Exception | None) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        self._transport = None
        if self._pending is not None or self._stream is not None:
            if exc is None and self._ends_with_the_connection():
                self._deliver()
            else:
                self.fail(self._lost(exc))
        self._on_lost(self)

    # httptools

    def on_message_begin(self) -> None:
        if self._is_complete:
            self._is_dirty = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._status:
            return  # a trailer
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(self._invalid(f"sent more than {MAX_HEAD_BYTES} bytes of headers"))
        self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        if self._is_complete:
            return  # a second response in the same bytes; the connection is closed after this feed
        status = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()
            return
        self._status = status
        headers = self._headers
        if b"content-encoding" in headers or b"transfer-encoding" in headers:
            self._refuse_encodings(headers)
        if status >= 300:
            self._check_refusal(status, headers)
        if self._takes is not ResponseMode.MCP:
            if self._takes is ResponseMode.HEAD:
                self._is_complete = self._is_dirty = True  # the parser would wait for a body of the stated length
            return
        if status == 200:
            kind = headers.get(b"content-type", b"")
            if kind != b"application/json" and media_type(kind) == b"text/event-stream":
                self._hand_over_stream(status)
        elif status == 202 and self._ends_with_the_connection():
            self._is_complete = self._is_dirty = True  # MCP gives this status no body; do not wait for one

    def on_body(self, data: bytes) -> None:
        if self._is_complete:
            return
        self._idle_bytes = 0
        if self._stream is not None:
            self._stream.take(data)
        elif self._drain_left >= 0:
            self._drain_left -= len(data)
            if self._drain_left < 0:
                self.abort()
        else:
            self._body.append(data)
            self._body_bytes += len(data)
            if self._body_bytes > self._max_body_bytes or len(self._body) > _MAX_PIECES:
                self._refuse(self._oversized())

    def on_message_complete(self) -> None:
        if self._status and not self._is_complete:  # without a status it was an interim response (1xx)
            self._is_complete = True
            self._is_kept = self._parser.should_keep_alive()

    # Inside.

    def _hand_over_stream(self, status: int) -> None:
        self._stream = stream = ResponseStream(self)
        pending, self._pending = self._pending, None
        if pending is None:
            self.abort()
        else:
            pending.fulfil(HttpResponse(status, self._headers, b"", stream))

    def _deliver(self) -> None:
        """Deliver a response whose end was the end of the connection."""
        pending, self._pending = self._pending, None
        stream, self._stream = self._stream, None
        if pending is not None:
            pending.fulfil(HttpResponse(self._status, self._headers, b"".join(self._body)))
        if stream is not None:
            stream.end(None)

    def _finish(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None
        stream, self._stream = self._stream, None
        response = HttpResponse(self._status, self._headers, b"".join(self._body)) if stream is None else None
        is_reusable = self._is_kept and not self._is_dirty
        self.hint_s = keep_alive_s(self._headers)
        if is_reusable and response is not None and self._takes is not _HEAD:
            self._heads.note(self._first, response)
        if stream is not None:
            self.resume()
        self._free(is_reusable=is_reusable, response=response)
        if stream is not None:
            stream.end(None)

    def _free(self, *, is_reusable: bool, response: HttpResponse | None) -> None:
        """The response has ended. The connection returns to the pool first, because its receiver may send a request at once."""
        transport = self._transport
        assert transport is not None
        pending, self._pending = self._pending, None
        self._is_busy = False
        if not self._is_clean:
            self._reset()  # an idle connection holds nothing of its last answer
        if is_reusable and not transport.get_write_buffer_size():
            self._on_free(self)
        else:
            transport.abort()
        if pending is not None and response is not None:
            pending.fulfil(response)

    def _ends_with_the_connection(self) -> bool:
        return (
            bool(self._status) and b"content-length" not in self._headers and b"transfer-encoding" not in self._headers
        )

    # Failures.

    def _refuse(self, failure: GatewayFailure) -> None:
        """Called inside a parser callback: raising stops the parser."""
        self._problem = failure
        raise failure

    def _check_refusal(self, status: int, headers: dict[bytes, bytes]) -> None:
        if status == 407 and self.target.proxy is not None:
            self._refuse(credentials_refused(self.target.proxy, self.target.server))
        if status < 400 and self._takes is ResponseMode.MCP:
            self._refuse(self._redirect(status, headers.get(b"location", b"")))

    def _refuse_encodings(self, headers: dict[bytes, bytes]) -> None:
        content = headers.get(b"content-encoding", b"").strip().lower() if self._takes is ResponseMode.MCP else b""
        transfer = headers.get(b"transfer-encoding", b"chunked").strip().lower()
        if content not in (b"", b"identity") or transfer != b"chunked":
            used = (content or transfer)[:40].decode("latin-1")
            failure = self._invalid("answered in an encoding, though only identity was asked for")
            failure.message = f"{self.target} answered in the encoding {used!r}, though only identity was asked for."
            self._refuse(failure)

    def _invalid(self, what: str) -> GatewayFailure:
        return GatewayFailure(Kind.INVALID_FRAME, f"{self.target} {what}.", server=self.target.server)

    def _oversized(self) -> GatewayFailure:
        what = f"answered HTTP {self._status} with more than {self._max_body_bytes} bytes or {_MAX_PIECES} chunks"
        if self._takes is ResponseMode.MCP:
            return self._invalid(what)
        return GatewayFailure(Kind.RESPONSE_TOO_LARGE, f"{self.target} {what}.", server=self.target.server)

    def _lost(self, exc: Exception | None) -> GatewayFailure:
        if isinstance(exc, ssl.SSLError):  # TLS 1.3 tells about the client certificate only after the handshake
            refused = certificate_refused(exc, self.target.server, self.target.tls)
            if refused is not None:
                return refused
        if self._status or self._head_bytes or self._idle_bytes:
            what = "broke the connection in the middle of its answer"
        else:
            what = "closed the connection before it answered"
        return GatewayFailure(
            Kind.CONNECTION_LOST,
            f"{self.target} {what}. The request may have run, so it was not sent again.",
            server=self.target.server,
        )

    def _redirect(self, status: int, location: bytes) -> GatewayFailure:
        try:
            host = urlsplit(location.decode("latin-1")).netloc.rpartition("@")[2][:200]
        except ValueError:
            host = ""
        place = f"another address on {host}" if host.isprintable() and host else "another path"
        return GatewayFailure(
            Kind.HTTP_STATUS,
            f"{self.target} redirects to {place} (HTTP {status}). That is not followed: set `url` to the final address.",
            server=self.target.server,
            verdict=Verdict.DID_NOT_RUN if status in _NOT_PROCESSED else None,
            details={"status": status, "permanent": True},
            public=f"{self.target} redirects to another address (HTTP {status}), which is not followed.",
        )
