"""Short notes that a later request picks up: a link of `/connect`, a sign-in that waits for its answer.

In this process, or in the store that replicas share, where they are sealed and named by a digest. Bounded in number and time. Must not:
know what a note says.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore, StoreScript, StoreUnavailableError

MAX_NOTES: Final = 10_000
_PURPOSE: Final = "handoff"
_PUT: Final = StoreScript("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")
_GET: Final = StoreScript("return redis.call('GET', KEYS[1])")
_TAKE: Final = StoreScript("local v = redis.call('GET', KEYS[1]); redis.call('DEL', KEYS[1]); return v")


class Handoffs(Protocol):
    """Where notes are left. Whoever knows the name of a note may read it, so names are random."""

    async def put(self, name: str, data: bytes, life_s: float) -> None:
        """Leave a note, in place of one with this name. The oldest make room."""

    async def get(self, name: str) -> bytes | None:
        """Read a note that stays."""

    async def take(self, name: str) -> bytes | None:
        """Read a note that nobody reads again."""


class MemoryHandoffs:
    """The notes of one process, no more than `most`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MAX_NOTES) -> None:
        self._clock = clock
        self._most = most
        self._notes: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    async def put(self, name: str, data: bytes, life_s: float) -> None:
        now = self._clock()
        self._notes.pop(name, None)
        while self._notes and (len(self._notes) >= self._most or next(iter(self._notes.values()))[1] <= now):
            self._notes.popitem(last=False)
        self._notes[name] = data, now + life_s

    async def get(self, name: str) -> bytes | None:
        found = self._notes.get(name)
        return found[0] if found is not None and found[1] > self._clock() else None

    async def take(self, name: str) -> bytes | None:
        found = await self.get(name)
        self._notes.pop(name, None)
        return found


class SharedHandoffs:
    """The notes of all replicas."""

    def __init__(self, store: SharedStore, keys: SealingKeys) -> None:
        self._store = store
        self._keys = keys

    async def put(self, name: str, data: bytes, life_s: float) -> None:
        await self._run(_PUT, name, self._keys.seal(_PURPOSE, data), max(1, int(life_s * 1000)))

    async def get(self, name: str) -> bytes | None:
        return await self._read(_GET, name)

    async def take(self, name: str) -> bytes | None:
        return await self._read(_TAKE, name)

    async def _read(self, script: StoreScript, name: str) -> bytes | None:
        found = await self._run(script, name)
        return self._keys.open(_PURPOSE, found) if isinstance(found, bytes) else None

    async def _run(self, script: StoreScript, name: str, *args: bytes | float) -> object:
        try:
            return await self._store.run(script, f"note:{self._keys.digest(_PURPOSE, name)}", *args)
        except StoreUnavailableError as problem:
            raise GatewayFailure(
                Kind.STATE_UNAVAILABLE,
                f"Nobody can sign in while the shared store does not answer ({problem}). Try again later.",
            ) from problem
