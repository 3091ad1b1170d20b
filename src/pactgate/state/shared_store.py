"""The store that replicas share: Redis or Valkey, asked within 100 ms or not at all.

Whoever asks waits at most `WAIT_S`. After a failure the circuit breaker is open: commands fail at once, and only `probe` asks the store
again, over a new connection and at growing intervals. Everything a script writes has a time to live. `redis` is imported when the first
store is made. Must not: decide what happens without the store. Enforces S1/XC-002 for a store outside the process.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from pactgate.core.events import Emit, StoreFailed, StoreRestored
from pactgate.state.store_connection import StoreConnection

WAIT_S: Final = 0.1
"""The longest time a call waits for the store."""
_CONNECT_S: Final = 2.0
_MAX_PENDING: Final = 4096
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 5.0
_NOT_ASKED: Final = "not asked yet"


class StoreUnavailableError(Exception):
    """The store did not answer in time, or is known not to answer."""


class StoreScript:
    """A Lua script of one key, which the store runs as one step."""

    def __init__(self, source: str) -> None:
        self.source = source


_WRITE: Final = StoreScript("return redis.call('SET', KEYS[1], '1', 'PX', 60000)")
"""A store that can't be written to is of no use: a Redis that is a copy now, or is full."""


class SharedStore:
    """`url` may hold a password. Names of keys begin with `prefix`."""

    def __init__(self, url: str, prefix: str, emit: Emit) -> None:
        from redis.asyncio import ConnectionPool  # 60 ms: only replicas pay for it
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        self._pool: Any = ConnectionPool.from_url(
            url,
            socket_timeout=_CONNECT_S,
            socket_connect_timeout=_CONNECT_S,
            retry=Retry(NoBackoff(), 0),
            client_name="pactgate",
        )
        self._connection: StoreConnection | None = None
        self._prefix = prefix
        self._emit = emit
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0
        self.trouble = _NOT_ASKED
        self.failures = 0

    @property
    def is_available(self) -> bool:
        return not self.trouble

    async def run(self, script: StoreScript, key: str, *args: str | bytes | float) -> Any:
        """Run a script on one key. Raises `StoreUnavailableError` at once while the circuit breaker is open."""
        connection = self._connection
        if connection is None or not self.is_available:
            raise StoreUnavailableError(self.trouble)
        if len(connection) >= _MAX_PENDING:
            raise StoreUnavailableError("too many commands wait for the store")
        found = await self._ask(connection, script, key, args)
        if isinstance(found, BaseException):
            if self.is_available and connection is self._connection:  # else others have said so already
                self._fail(found)
            raise StoreUnavailableError(_sentence(found)) from found
        return found

    async def probe(self) -> bool:
        """Ask a store that did not answer again, if it is time. Whether it is available."""
        loop = asyncio.get_running_loop()
        if self.is_available or loop.time() < self._retry_at:
            return self.is_available
        await self._disconnect()
        connection = self._connection = StoreConnection(self._pool.make_connection())
        try:
            async with asyncio.timeout(_CONNECT_S):
                await connection.open()
            found = await self._ask(connection, _WRITE, "probe", ())
        except Exception as problem:  # noqa: BLE001 - redis-py reads what a stranger may have sent
            found = problem
        if isinstance(found, BaseException):
            self._fail(found)
            return False
        self.trouble, self._pause_s = "", _FIRST_PAUSE_S
        self._emit(StoreRestored())
        return True

    async def close(self) -> None:
        await self._disconnect()
        self.trouble = self.trouble or "closed"

    async def _ask(self, connection: StoreConnection, script: StoreScript, key: str, args: tuple[Any, ...]) -> Any:
        # The whole script each time: its hash may be unknown, which takes two round trips more.
        answer = connection.send("EVAL", script.source, 1, f"{self._prefix}:{key}", *args)
        # Not asyncio.timeout: a call on the fast path is no task yet. And asyncio.wait takes some us more.
        timer = asyncio.get_running_loop().call_later(WAIT_S, _give_up, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _fail(self, problem: BaseException) -> None:
        """Open the circuit breaker, or leave it open for longer."""
        is_news = self.trouble in ("", _NOT_ASKED)
        self.failures += 1
        self.trouble = _sentence(problem)
        self._retry_at = asyncio.get_running_loop().time() + self._pause_s * random.uniform(0.8, 1.2)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        if is_news:
            self._emit(StoreFailed(self.trouble))


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_result(TimeoutError(f"no answer within {WAIT_S * 1000:.0f} ms"))


def _sentence(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:200] if str(problem) else type(problem).__name__
