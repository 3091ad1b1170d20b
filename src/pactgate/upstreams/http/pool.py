"""The connection pool of one origin: keep-alive connections, bounded in number and age, waited for in order.

Must not: write a request, repeat one, or open a connection itself (`connect.py` does). A connection serves one request at a time. The most
recently used connection is used first, so that the others age and are closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client_connection import ClientConnection
from pactgate.upstreams.http.connect import Connector
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response_head_cache import ResponseHeadCache

_MARGIN_S: Final = 1.0
"""A connection is not used in the last second before the server's idle limit: a request needs less time to arrive."""
_LEARNT_FLOOR_S: Final = 2.0
"""The shortest idle limit the pool learns. A server that restarts closes young connections, too; that must not end keep-alive."""
_TRIM_AGE_S: Final = 1.0
_MAX_WAITING: Final = 1024


class PoolLimits(Struct, frozen=True):
    """Limits per origin. Between sweeps more than `max_idle` connections may be idle, never more than `max_open`."""

    max_open: int = 100
    max_idle: int = 32
    idle_s: float = 50.0
    connect_timeout_s: float = 10.0


class ConnectionPool:
    """`on_idle` is called when the first connection becomes idle; its owner then calls `sweep` every few seconds until none is."""

    def __init__(self, limits: PoolLimits, on_idle: Callable[[], None], connector: Connector | None = None) -> None:
        self._limits = limits
        self._connector = connector or Connector()
        self._on_idle = on_idle
        self._loop = asyncio.get_running_loop()
        self._open: set[ClientConnection] = set()
        self._opening = 0
        self._idle: deque[ClientConnection] = deque()
        self._waiting: deque[tuple[HttpTarget, asyncio.Future[ClientConnection | None]]] = deque()
        self._keep_s = limits.idle_s
        self._heads = ResponseHeadCache()
        self._is_closed = False
        self._is_watched = False
        """Whether the owner sweeps the pool."""
        self._emptied = asyncio.Event()

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    @property
    def is_unused(self) -> bool:
        return not (self._open or self._opening or self._waiting)

    @property
    def keep_s(self) -> float:
        """How long an idle connection is used again: the limit, or less if the server closed connections sooner."""
        return self._keep_s

    def take(self) -> ClientConnection | None:
        """An idle connection that is still good, without waiting."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.expires_at > self._loop.time() and connection.is_open:
                return connection
            connection.abort()
        return None

    async def obtain(self, target: HttpTarget) -> ClientConnection:
        """An idle or a new connection, first come, first served. It may have died in the meantime: check `is_open`."""
        connection = self.take()
        if connection is not None:
            return connection
        if len(self._open) + self._opening >= self._limits.max_open:
            connection = await self._wait_turn(target)
            if connection is not None:
                return connection
        else:
            self._opening += 1
        return await self._dial(target)

    def give_back(self, connection: ClientConnection) -> None:
        """Return a connection whose response ended properly."""
        if self._is_closed or not connection.is_open:
            connection.abort()
            return
        turn = self._next_turn() if self._waiting else None
        if turn is not None:
            turn.set_result(connection)
            return
        keep_s = self._keep_s
        if connection.hint_s is not None:
            keep_s = min(keep_s, connection.hint_s - _MARGIN_S)
        connection.idle_since = now = self._loop.time()
        connection.expires_at = now + keep_s
        self._idle.append(connection)
        if not self._is_watched:
            self._is_watched = True
            self._on_idle()

    def sweep(self) -> None:
        """Close connections that were idle too long, and the oldest beyond `max_idle`."""
        now = self._loop.time()
        kept: deque[ClientConnection] = deque()
        while self._idle:
            connection = self._idle.pop()
            is_surplus = len(kept) >= self._limits.max_idle and now - connection.idle_since >= _TRIM_AGE_S
            if connection.expires_at <= now or is_surplus:
                connection.abort()
            else:
                kept.appendleft(connection)
        self._idle = kept
        self._is_watched = bool(kept)

    def abandon(self, target: HttpTarget) -> None:
        """End the running and waiting requests of one target."""
        for connection in list(self._open):
            if connection.target is target and connection.is_busy:
                connection.fail(connection_closed(target, Verdict.MAY_HAVE_RUN))
        for waiting, turn in self._waiting:
            if waiting is target and not turn.done():
                turn.set_exception(connection_closed(target, Verdict.DID_NOT_RUN))

    def close(self) -> None:
        """End every connection and every wait."""
        self._is_closed = True
        for target, turn in self._waiting:
            if not turn.done():
                turn.set_exception(connection_closed(target, Verdict.DID_NOT_RUN))
        for connection in list(self._open):
            connection.fail(connection_closed(connection.target, Verdict.MAY_HAVE_RUN))

    async def emptied(self) -> None:
        """Wait, after `close`, until the last socket is gone."""
        if self._open:
            await self._emptied.wait()

    # Inside.

    def _next_turn(self) -> asyncio.Future[ClientConnection | None] | None:
        while self._waiting:
            _, turn = self._waiting.popleft()
            if not turn.done():
                return turn
        return None

    async def _wait_turn(self, target: HttpTarget) -> ClientConnection | None:
        """A free connection, or None together with the right to open one."""
        if len(self._waiting) >= _MAX_WAITING:
            raise GatewayFailure(
                Kind.OVERLOADED,
                f"{_MAX_WAITING} requests already wait for a connection to {target}.",
                server=target.server,
            )
        turn: asyncio.Future[ClientConnection | None] = self._loop.create_future()
        place = (target, turn)
        self._waiting.append(place)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                self._pass_on(turn.result())
            raise
        finally:
            if place in self._waiting:
                self._waiting.remove(place)

    def _pass_on(self, connection: ClientConnection | None) -> None:
        """Give the turn of a cancelled request to the next one."""
        if connection is None:
            self._opening -= 1
            self._offer_room()
        else:
            self.give_back(connection)

    def _offer_room(self) -> None:
        if len(self._open) + self._opening < self._limits.max_open:
            turn = self._next_turn()
            if turn is not None:
                self._opening += 1
                turn.set_result(None)

    async def _dial(self, target: HttpTarget) -> ClientConnection:
        connection = None
        timeout_s = target.connect_timeout_s or self._limits.connect_timeout_s
        try:
            connection = await self._connector.connect(
                target, lambda: ClientConnection(target, self.give_back, self._forget, self._heads), timeout_s
            )
        finally:
            self._opening -= 1
            if connection is not None:
                self._open.add(connection)
            else:
                self._offer_room()
        return connection

    def _forget(self, connection: ClientConnection) -> None:
        self._open.discard(connection)
        try:
            self._idle.remove(connection)
        except ValueError:
            pass
        else:
            age_s = self._loop.time() - connection.idle_since
            self._keep_s = min(self._keep_s, max(_LEARNT_FLOOR_S, age_s - _MARGIN_S))
        if self._is_closed:
            if not self._open:
                self._emptied.set()
        else:
            self._offer_room()


def connection_closed(target: HttpTarget, verdict: Verdict) -> GatewayFailure:
    return GatewayFailure(
        Kind.CONNECTION_LOST,
        f"The connection to {target} was closed by the gateway.",
        server=target.server,
        verdict=verdict,
    )
