"""The store that replicas share: Redis or Valkey, asked within 100 ms or not at all.

A command runs in a task of its own: whoever asks waits at most `WAIT_S`, the command goes on, so that a slow store can still open its
connections. After a failure the circuit breaker is open: commands fail at once, and only `probe` asks the store again, at growing
intervals. Everything a script writes has a time to live. `redis` is imported when the first store is made.
Must not: decide what happens without the store. Enforces S1/XC-002 for a store outside the process.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from pactgate.core.events import Emit, StoreFailed, StoreRestored

WAIT_S: Final = 0.1
"""The longest time a call waits for the store."""
_COMMAND_S: Final = 2.0
_CONNECTIONS: Final = 4
_MAX_PENDING: Final = 256
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 5.0


class StoreUnavailableError(Exception):
    """The store did not answer in time, or is known not to answer."""


class StoreScript:
    """A Lua script of one key, which the store runs as one step."""

    def __init__(self, source: str) -> None:
        self.source = source


class SharedStore:
    """`url` may hold a password. Names of keys begin with `prefix`."""

    def __init__(self, url: str, prefix: str, emit: Emit) -> None:
        from redis.asyncio import BlockingConnectionPool, Redis  # 60 ms: only replicas pay for it
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError

        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=_COMMAND_S,
            socket_timeout=_COMMAND_S,
            socket_connect_timeout=_COMMAND_S,
            retry=Retry(NoBackoff(), 0),
            client_name="pactgate",
        )
        self._redis = Redis.from_pool(pool)
        self._errors: tuple[type[Exception], ...] = (RedisError, OSError, TimeoutError)
        self._prefix = prefix
        self._emit = emit
        self._pending: set[asyncio.Task[Any]] = set()
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0
        self.is_available = False
        self.trouble = "not asked yet"
        self.failures = 0

    async def run(self, script: StoreScript, key: str, *args: str | bytes | float) -> Any:
        """Run a script on one key. Raises `StoreUnavailableError` at once while the circuit breaker is open."""
        if not self.is_available:
            raise StoreUnavailableError(self.trouble)
        return await self._within(self._script(script, key, args))

    async def probe(self) -> bool:
        """Ask a store that did not answer again, if it is time. Whether it is available."""
        loop = asyncio.get_running_loop()
        if self.is_available or loop.time() < self._retry_at:
            return self.is_available
        # All connections are opened here: a call must not wait for the handshakes of a slow store.
        try:
            async with asyncio.timeout(_COMMAND_S):
                await asyncio.gather(*(self._redis.ping() for _ in range(_CONNECTIONS)))
            await asyncio.wait_for(self._redis.ping(), WAIT_S)
        except self._errors as problem:
            self._fail(problem)
            return False
        self.is_available, self.trouble, self._pause_s = True, "", _FIRST_PAUSE_S
        self._emit(StoreRestored())
        return True

    async def close(self) -> None:
        for task in tuple(self._pending):
            task.cancel()
        if self._pending:
            await asyncio.wait(self._pending, timeout=WAIT_S)
        await self._redis.aclose(close_connection_pool=True)

    async def _script(self, script: StoreScript, key: str, args: tuple[Any, ...]) -> Any:
        async with asyncio.timeout(
            _COMMAND_S
        ):  # the whole script each time: its hash may be unknown, which takes two round trips more
            return await self._redis.eval(script.source, 1, f"{self._prefix}:{key}", *args)

    async def _within(self, command: Any) -> Any:
        if len(self._pending) >= _MAX_PENDING:
            command.close()
            raise StoreUnavailableError("too many commands wait for the store")
        task = asyncio.ensure_future(command)
        self._pending.add(task)
        task.add_done_callback(self._done)
        done, _ = await asyncio.wait({task}, timeout=WAIT_S)
        if not done:
            self._fail(TimeoutError(f"no answer within {WAIT_S * 1000:.0f} ms"))
            raise StoreUnavailableError(self.trouble)
        try:
            return task.result()
        except self._errors as problem:
            raise StoreUnavailableError(str(problem) or type(problem).__name__) from problem

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._pending.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, self._errors):
            self._fail(problem)

    def _fail(self, problem: Exception) -> None:
        """Open the circuit breaker, or leave it open for longer."""
        was_available, self.is_available = self.is_available, False
        self.failures += 1
        is_news = was_available or self.trouble == "not asked yet"
        self.trouble = f"{type(problem).__name__}: {problem}"[:200] if str(problem) else type(problem).__name__
        self._retry_at = asyncio.get_running_loop().time() + self._pause_s * random.uniform(0.8, 1.2)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        if is_news:
            self._emit(StoreFailed(self.trouble))
