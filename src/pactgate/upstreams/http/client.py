"""Our HTTP/1.1 client: kept connections per origin, one write per request, one wake-up per whole answer.

A request is written at most once (D6): another connection is used only while nothing was written. Stale connections are met before
the write: closed ones leave their pool at once, and idle ones leave it before the server's own limit, whether it names that limit or
is seen to keep it. Must not: follow redirects, decode bodies, or put paths, queries or header values into messages. The caller owns
the deadline.
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
from pactgate.upstreams.http.response import HttpResponse, Taker, Waiting

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
_ANY_OF: Final = {b"HEAD": ResponseMode.HEAD}
_SWEEP_S: Final = 5.0
_CLOSE_S: Final = 1.0


class HttpClient:
    """One for the whole gateway. Made anywhere, used on one event loop, ended by `close`."""

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
        """One exchange; `headers` is a block of encoded lines. An event stream is returned at its head, all else whole.

        `tail` is what `target.tail_of` gives for another path of the target. With `takes_any` redirects, codings and event streams are
        answers like any other. Cancelling closes the connection. Raises a transport failure that says whether the request can have run.
        """
        pool = self._pools.get(target.key)
        connection = pool.take() if pool is not None and not target.is_closed else None
        if connection is None:
            connection = await self._obtain(target)
        length = b"Content-Length: %d\r\n\r\n" % len(body) if body else b"\r\n"
        text = b"".join((method, tail or target.tail, headers, length, body))
        waiting = Waiting()
        takes = _ANY_OF.get(method, ResponseMode.ANY) if takes_any else ResponseMode.MCP
        connection.begin(waiting, target, text, max_body_bytes, takes)
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            connection.give_up(waiting)
            waiting.abandon()
            raise

    def begin(
        self, taker: Taker, target: HttpTarget, headers: bytes, body: bytes, max_body_bytes: int
    ) -> ClientConnection | None:
        """The same POST without waiting, where a kept connection is free; the taker is told. None: nothing was sent."""
        pool = self._pools.get(target.key)
        connection = pool.take() if pool is not None and not target.is_closed else None
        if connection is not None:
            text = b"POST%b%bContent-Length: %d\r\n\r\n%b" % (target.tail, headers, len(body), body)
            connection.begin(taker, target, text, max_body_bytes)
        return connection

    def abandon(self, target: HttpTarget) -> None:
        """Nothing more goes to this target or comes from it; other targets of the same origin are left alone."""
        target.is_closed = True
        pool = self._pools.get(target.key)
        if pool is not None:
            pool.abandon(target)

    async def close(self) -> None:
        """End every connection and every wait, bounded; afterwards no socket is left."""
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
        """A connection nothing was written on. One that dies between being lent and being used is replaced."""
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
