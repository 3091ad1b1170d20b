"""The gateway's HTTP/1.1 client: a keep-alive connection pool per origin, one write per request, one wake-up per whole response.

A request is written at most once (D6): another connection is used only while nothing was written. Stale connections are found before the
write: a closed connection leaves its pool at once, and an idle one leaves it before the server's own idle limit, which the server announces
or the pool learns. Must not: follow redirects, decode bodies, or put paths, queries or header values into messages. The caller sets the
deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final

from pactgate.core.failures import Verdict
from pactgate.upstreams.http.client_connection import ClientConnection, ResponseMode
from pactgate.upstreams.http.connect import Connector
from pactgate.upstreams.http.egress import Resolve, resolve_host
from pactgate.upstreams.http.pool import ConnectionPool, PoolLimits, connection_closed
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, PendingResponse
from pactgate.upstreams.pending import in_task

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
_ANY_OF: Final = {b"HEAD": ResponseMode.HEAD}
_SWEEP_S: Final = 5.0
_CLOSE_S: Final = 1.0


class HttpClient:
    """One client for the whole gateway, used on one event loop and ended by `close`."""

    def __init__(
        self, limits: PoolLimits | None = None, *, tls: ssl.SSLContext | None = None, resolve: Resolve = resolve_host
    ) -> None:
        self._limits = limits or PoolLimits()
        self._connector = Connector(tls=tls, resolve=resolve)
        self._pools: dict[str, ConnectionPool] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def request(
        self,
        method: bytes,
        target: HttpTarget,
        headers: bytes,
        body: bytes = b"",
        *,
        tail: bytes | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        takes_any: bool = False,
    ) -> HttpResponse:
        """Send one request. `headers` is a block of encoded lines. An event stream is returned at its head, any other response whole.

        `tail` is the result of `target.tail_of` for another path of the target. With `takes_any`, redirects, encodings and event streams
        are responses like any other. Cancelling closes the connection. Raises a failure that says whether the request can have run.
        """
        takes = _ANY_OF.get(method, ResponseMode.ANY) if takes_any else ResponseMode.MCP
        pending = self.begin(method, target, headers, body, max_body_bytes, tail, takes)
        while pending is None:
            connection = await self._obtain(target)
            pending = self.begin(method, target, headers, body, max_body_bytes, tail, takes, connection)
        try:
            return await pending
        except asyncio.CancelledError:
            pending.abandon()
            raise

    def begin(
        self,
        method: bytes,
        target: HttpTarget,
        headers: bytes,
        body: bytes,
        max_body_bytes: int,
        tail: bytes | None = None,
        takes: ResponseMode = ResponseMode.MCP,
        connection: ClientConnection | None = None,
    ) -> PendingResponse | None:
        """As `request`, on this connection or an idle one; None where none is idle. Whoever stops waiting must `abandon` the response."""
        if connection is None:
            pool = self._pools.get(target.key)
            connection = pool.take() if pool is not None and not target.is_closed else None
            if connection is None:
                return None
        length = b"Content-Length: %d\r\n\r\n" % len(body) if body else b"\r\n"
        text = b"".join((method, tail or target.tail, headers, length, body))
        pending = PendingResponse(loop=connection.loop)  # asking for the running loop costs a system call
        pending.source = connection
        connection.begin(pending, target, text, max_body_bytes, takes)
        return pending

    def abandon(self, target: HttpTarget) -> None:
        """End all requests of this target and refuse new ones. Other targets of the same origin are not affected."""
        target.is_closed = True
        pool = self._pools.get(target.key)
        if pool is not None:
            pool.abandon(target)

    async def close(self) -> None:
        """End every connection and every wait, within a bound. No socket is left afterwards."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            pool.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                for pool in pools:
                    await pool.emptied()

    async def _obtain(self, target: HttpTarget) -> ClientConnection:
        """A connection with nothing written on it. One that dies between checkout and use is replaced."""
        await in_task()
        while True:
            if self._refuses(target):
                raise connection_closed(target, Verdict.DID_NOT_RUN)
            pool = self._pools.get(target.key)
            if pool is None:
                pool = self._pools[target.key] = ConnectionPool(self._limits, self._schedule_sweep, self._connector)
            connection = await pool.obtain(target)
            if self._refuses(target):
                pool.give_back(connection)
            elif connection.is_open:
                return connection

    def _refuses(self, target: HttpTarget) -> bool:
        return self._is_closed or target.is_closed

    def _schedule_sweep(self) -> None:
        if self._sweeping is None and not self._is_closed:
            delay_s = min(_SWEEP_S, self._limits.idle_s)
            self._sweeping = asyncio.get_running_loop().call_later(delay_s, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        for key, pool in list(self._pools.items()):
            pool.sweep()
            if pool.has_idle:
                self._schedule_sweep()
            elif pool.is_unused:
                del self._pools[key]
