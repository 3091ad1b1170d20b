"""Caches whose time is moved by hand, and sizes in round numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pactgate.config.sections.cache import Cache
from pactgate.state.memory_cache import ENTRY_OVERHEAD_BYTES, MemoryCache
from pactgate.state.ports import Lookup


class HandClock:
    """Nanoseconds that pass only when told to."""

    def __init__(self, now_ns: int = 5_000_000_000) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns

    def move_ms(self, milliseconds: float) -> None:
        self.now_ns += round(milliseconds * 1_000_000)


def cache_of(clock: Callable[[], int] | None = None, **settings: Any) -> MemoryCache:
    return MemoryCache(Cache(**settings), clock or HandClock())


def value_for(key: bytes, size_bytes: int) -> bytes:
    """A value that makes the entry of a key exactly this large, key and overhead included."""
    return b"v" * (size_bytes - len(key) - ENTRY_OVERHEAD_BYTES)


def holds(cache: MemoryCache, key: bytes) -> bool:
    """Whether `get` would be a hit. Not a use of the entry."""
    entry = cache._entries.get(key)
    return entry is not None and entry.expires_ns >= cache._clock_ns()


def held(cache: MemoryCache, keys: str) -> str:
    """Which of the one-letter keys are held. Not a use of any."""
    return "".join(letter for letter in keys if holds(cache, letter.encode()))


class BrokenStore:
    """A store in this process that raises what it was given, where it was told to."""

    def __init__(self, error: BaseException, *where: str) -> None:
        self.error = error
        self.where = where
        self.asked: list[str] = []
        self.entries: dict[bytes, tuple[bytes, bytes]] = {}

    def get(self, key: bytes) -> Lookup:
        self._ask("get")
        value, mark = self.entries.get(key, (b"", b""))
        return Lookup(key in self.entries, value, mark)

    def put(self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b"") -> bool:
        self._ask("put")
        self.entries[key] = (value, mark)
        return True

    def drop(self, tag: str) -> int:
        self._ask("drop")
        gone = len(self.entries)
        self.entries.clear()
        return gone

    def _ask(self, operation: str) -> None:
        self.asked.append(operation)
        if operation in self.where:
            raise self.error
