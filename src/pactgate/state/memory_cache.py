"""The result cache in this process, bounded in bytes, entries and age.

One lock surrounds every operation, and no operation waits, so tasks and threads never see a half-done one. The cache evicts entries before
it inserts one, so it never exceeds a bound. Values are `bytes`, so nobody can change a stored value. Ages are whole nanoseconds of a
monotonic clock. Must not: wait, start a task, or make something else fail. Enforces S1/CACHE-001 to S1/CACHE-006.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct

from pactgate.config.sections.cache import Cache
from pactgate.state.eviction import EVICTION_ORDERS
from pactgate.state.ports import MISS, Lookup

ENTRY_OVERHEAD_BYTES: Final = 640
"""Memory of an entry beside key, value and mark: its record, its places in five tables, and the headers of its byte strings."""
CRITICAL: Final = 0.95
MEDIUM: Final = 0.5

_NS_PER_MS: Final = 1_000_000
_NEVER_NS: Final = 1 << 100
_SPARE_ALARMS: Final = 64


class Pressure(StrEnum):
    """How full the cache is. A full cache evicts entries; it never makes the gateway refuse a call (S1/XC-002)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class CacheStatistics(Struct, frozen=True):
    """A snapshot of a cache: its size now, and counters since it was created."""

    entries: int
    size_bytes: int
    pressure: Pressure
    stored: int
    rejected: int
    evicted_for_size: int
    evicted_for_entries: int
    expired: int
    dropped: int


class _Entry:
    __slots__ = ("created_ns", "expires_ns", "key", "mark", "serial", "size_bytes", "tag", "value")

    def __init__(self, key: bytes, value: bytes, mark: bytes, tag: str, created_ns: int, ttl_ms: int) -> None:
        self.key = key
        self.value = value
        self.mark = mark
        self.tag = tag
        self.created_ns = created_ns
        self.expires_ns = created_ns + ttl_ms * _NS_PER_MS if ttl_ms else _NEVER_NS
        self.size_bytes = len(key) + len(value) + len(mark) + ENTRY_OVERHEAD_BYTES
        self.serial = 0


class MemoryCache:
    """A `CacheStore` that answers at once. `clock_ns` must never run back, as `time.monotonic_ns` doesn't."""

    def __init__(self, settings: Cache, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        if settings.low_water_mark >= settings.high_water_mark:
            raise ValueError("the low water mark must be below the high one")
        self._max_bytes = settings.max_size_bytes
        self._max_entries = settings.max_entries
        self._high_bytes = int(settings.max_size_bytes * settings.high_water_mark)
        self._low_bytes = int(settings.max_size_bytes * settings.low_water_mark)
        self._default_ttl_ms = settings.default_ttl_ms
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._entries: dict[bytes, _Entry] = {}
        self._tags: dict[str, set[bytes]] = {}
        self._order = EVICTION_ORDERS[settings.eviction_policy]()
        self._touch = self._order.touch
        self._alarms: list[tuple[int, int, bytes]] = []
        """When entries expire, as a heap. Alarms of removed entries stay in it until they are due or outnumber the others."""
        self._serial = self._size_bytes = 0
        self._rejected = 0
        self._evicted_for_size = self._evicted_for_entries = self._expired = self._dropped = 0

    # For callers.

    def get(self, key: bytes) -> Lookup:
        """Return the entry and mark it as used now, or return `MISS`. An entry is valid up to and including `created + ttl`."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return MISS
            now_ns = self._clock_ns()
            left_ns = entry.expires_ns - now_ns
            if left_ns < 0:
                self._expired += 1
                self._remove(entry)
                return MISS
            self._touch(key)
            age_ms = (now_ns - entry.created_ns) // _NS_PER_MS if now_ns > entry.created_ns else 0
            left_ms = None if entry.expires_ns == _NEVER_NS else left_ns // _NS_PER_MS
            return Lookup(True, entry.value, entry.mark, age_ms, left_ms)

    def put(self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b"") -> bool:
        """Store a value. A value larger than the whole cache is rejected, and the older value of its key is removed as out of date."""
        if not (type(key) is type(value) is type(mark) is bytes):
            raise TypeError("a cache holds bytes and nothing that could change")
        lifetime_ms = self._default_ttl_ms if ttl_ms is None else ttl_ms
        if lifetime_ms < 0:
            raise ValueError("a time to live can't be negative")
        entry = _Entry(key, value, mark, tag, self._clock_ns(), lifetime_ms)
        with self._lock:
            old = self._entries.get(key)
            if entry.size_bytes > self._max_bytes:
                self._rejected += 1
                if old is not None:
                    self._dropped += 1
                    self._remove(old)
                return False
            if old is None:
                self._make_room(key, entry.size_bytes, 1, entry.created_ns)
            else:
                self._make_room(key, entry.size_bytes - old.size_bytes, 0, entry.created_ns)
            self._insert(entry, old)
            return True

    def drop(self, tag: str) -> int:
        """Remove every entry with this tag."""
        if tag not in self._tags:
            return 0  # without the lock: every call of a mutation tool comes here
        with self._lock:
            keys = self._tags.get(tag, ())
            gone = [self._entries[key] for key in keys]
            for entry in gone:
                self._remove(entry)
            self._dropped += len(gone)
            return len(gone)

    # For the owner.

    def sweep(self, max_steps: int = 1000) -> bool:
        """Remove expired entries in at most this many steps, and return whether there may be more."""
        with self._lock:
            return self._free_expired(self._clock_ns(), b"", max_steps)

    def recount(self) -> int:
        """Add up all entries again and return by how many bytes the running sum was off: 0, unless this module has a bug."""
        with self._lock:
            total = sum(entry.size_bytes for entry in self._entries.values())
            drift, self._size_bytes = self._size_bytes - total, total
            return drift

    def statistics(self) -> CacheStatistics:
        with self._lock:
            return CacheStatistics(
                entries=len(self._entries),
                size_bytes=self._size_bytes,
                pressure=self._pressure(),
                stored=self._serial,
                rejected=self._rejected,
                evicted_for_size=self._evicted_for_size,
                evicted_for_entries=self._evicted_for_entries,
                expired=self._expired,
                dropped=self._dropped,
            )

    # Under the lock.

    def _make_room(self, key: bytes, growth_bytes: int, growth_entries: int, now_ns: int) -> None:
        """Evict until there is room for this growth of `key`. Expired entries go first; the entry of `key` stays."""
        too_many = len(self._entries) + growth_entries > self._max_entries
        if not too_many and self._size_bytes + growth_bytes <= self._high_bytes:
            return
        self._free_expired(now_ns, key, len(self._alarms))
        while len(self._entries) + growth_entries > self._max_entries:
            self._evict_next(key)
            self._evicted_for_entries += 1
        if self._size_bytes + growth_bytes > self._high_bytes:
            while self._size_bytes + growth_bytes > self._low_bytes and self._evict_next(key):
                self._evicted_for_size += 1

    def _evict_next(self, spare: bytes) -> bool:
        victim = self._order.victim(spare)
        if victim is None:
            return False
        self._remove(self._entries[victim])
        return True

    def _free_expired(self, now_ns: int, spare: bytes, max_steps: int) -> bool:
        alarms = self._alarms
        for _ in range(max_steps):
            if not alarms or alarms[0][0] >= now_ns:
                return False
            _, serial, key = heappop(alarms)
            entry = self._entries.get(key)
            if entry is not None and entry.serial == serial and key != spare:
                self._expired += 1
                self._remove(entry)
        return bool(alarms) and alarms[0][0] < now_ns

    def _insert(self, entry: _Entry, old: _Entry | None) -> None:
        self._serial += 1
        entry.serial = self._serial
        key = entry.key
        if entry.expires_ns != _NEVER_NS:
            self._set_alarm(entry)
        if old is not None and old.tag != entry.tag:
            self._untag(old)
        self._tags.setdefault(entry.tag, set()).add(key)
        self._order.place(key)
        self._entries[key] = entry
        self._size_bytes += entry.size_bytes - (old.size_bytes if old is not None else 0)

    def _set_alarm(self, entry: _Entry) -> None:
        if len(self._alarms) > 2 * len(self._entries) + _SPARE_ALARMS:
            self._alarms = [
                (one.expires_ns, one.serial, one.key) for one in self._entries.values() if one.expires_ns != _NEVER_NS
            ]
            heapify(self._alarms)
        heappush(self._alarms, (entry.expires_ns, entry.serial, entry.key))

    def _remove(self, entry: _Entry) -> None:
        del self._entries[entry.key]
        self._size_bytes -= entry.size_bytes
        self._order.remove(entry.key)
        self._untag(entry)

    def _untag(self, entry: _Entry) -> None:
        keys = self._tags[entry.tag]
        keys.remove(entry.key)
        if not keys:
            del self._tags[entry.tag]

    def _pressure(self) -> Pressure:
        if self._size_bytes >= CRITICAL * self._max_bytes:
            return Pressure.CRITICAL
        if self._size_bytes >= self._high_bytes:
            return Pressure.HIGH
        return Pressure.MEDIUM if self._size_bytes >= MEDIUM * self._max_bytes else Pressure.LOW


async def keep_swept(cache: MemoryCache, interval_ms: int) -> None:
    """Sweep until cancelled; a long sweep lets other tasks run between its steps."""
    while True:
        has_more = cache.sweep()
        if not has_more:
            cache.recount()
        await asyncio.sleep(0 if has_more else interval_ms / 1000)
