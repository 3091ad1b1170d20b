"""The cache in memory against a naive model, operation by operation: bound, entries, age, order and the exact size after each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pactgate.config.sections.cache import Cache
from pactgate.state.memory_cache import ENTRY_OVERHEAD_BYTES, MemoryCache
from tests.support.caches import HandClock

KEYS = st.sampled_from([bytes([letter]) for letter in b"abcdefghijkl"])
PER_MS = 1_000_000


class Modelled:
    """An entry as somebody would write it down who never has to be fast."""

    def __init__(self, value: bytes, tag: str, created_ns: int, ttl_ms: int, step: int, uses: int) -> None:
        self.value = value
        self.tag = tag
        self.created_ns = created_ns
        self.expires_ns = created_ns + ttl_ms * PER_MS if ttl_ms else None
        self.created = self.used = step
        self.uses = uses

    def is_expired(self, now_ns: int) -> bool:
        return self.expires_ns is not None and now_ns > self.expires_ns


class CacheBounds(RuleBasedStateMachine):
    @initialize(
        max_size_bytes=st.integers(1024, 8000),
        max_entries=st.integers(1, 8),
        marks=st.sampled_from([(0.5, 0.1), (0.9, 0.7), (1.0, 0.9), (0.91, 0.9)]),
        policy=st.sampled_from(["lru", "lfu", "fifo"]),
    )
    def begin(self, max_size_bytes: int, max_entries: int, marks: tuple[float, float], policy: Any) -> None:
        self.settings = Cache(
            max_size_bytes=max_size_bytes,
            max_entries=max_entries,
            high_water_mark=marks[0],
            low_water_mark=marks[1],
            eviction_policy=policy,
            default_ttl_ms=7,
        )
        self.clock = HandClock()
        self.cache = MemoryCache(self.settings, self.clock)
        self.model: dict[bytes, Modelled] = {}
        self.step = 0

    # The model.

    def size_of(self, key: bytes) -> int:
        return len(key) + len(self.model[key].value) + ENTRY_OVERHEAD_BYTES

    def total(self) -> int:
        return sum(map(self.size_of, self.model))

    def rank(self, key: bytes) -> tuple[int, ...]:
        entry = self.model[key]
        policy = self.settings.eviction_policy
        return {"lru": (entry.used,), "fifo": (entry.created,), "lfu": (entry.uses, entry.used)}[policy]

    def make_room(self, key: bytes, size_bytes: int) -> None:
        """Everything but the key itself may have to go: first what has expired, then in order."""
        high, low = (
            int(self.settings.max_size_bytes * mark)
            for mark in (self.settings.high_water_mark, self.settings.low_water_mark)
        )

        def needed(limit: int) -> bool:
            return sum(self.size_of(other) for other in self.model if other != key) + size_bytes > limit

        def is_crowded() -> bool:
            return len(self.model.keys() | {key}) > self.settings.max_entries

        if not needed(high) and not is_crowded():
            return
        for other in [other for other in self.model if other != key]:
            if self.model[other].is_expired(self.clock.now_ns):
                del self.model[other]
        while is_crowded():
            self.evict(key)
        if needed(high):
            while needed(low) and self.model.keys() - {key}:
                self.evict(key)

    def evict(self, spare: bytes) -> None:
        del self.model[min(self.model.keys() - {spare}, key=self.rank)]

    # The operations.

    @rule(key=KEYS, extra=st.integers(0, 3000), ttl_ms=st.sampled_from([None, 0, 1, 5, 20]), tag=st.sampled_from("xy"))
    def put(self, key: bytes, extra: int, ttl_ms: int | None, tag: str) -> None:
        self.step += 1
        value = bytes([self.step % 256]) * extra
        size_bytes = len(key) + extra + ENTRY_OVERHEAD_BYTES
        is_kept = self.cache.put(key, value, ttl_ms=ttl_ms, tag=tag)
        assert is_kept is (size_bytes <= self.settings.max_size_bytes)
        if not is_kept:
            self.model.pop(key, None)
            return
        self.make_room(key, size_bytes)
        uses = self.model[key].uses + 1 if key in self.model else 1
        lifetime_ms = self.settings.default_ttl_ms if ttl_ms is None else ttl_ms
        self.model[key] = Modelled(value, tag, self.clock.now_ns, lifetime_ms, self.step, uses)

    @rule(key=KEYS)
    def get(self, key: bytes) -> None:
        self.step += 1
        found = self.cache.get(key)
        entry = self.model.get(key)
        if entry is None or entry.is_expired(self.clock.now_ns):
            self.model.pop(key, None)
            assert not found.hit
            return
        assert (found.hit, found.value) == (True, entry.value)
        assert found.age_ms == (self.clock.now_ns - entry.created_ns) // PER_MS
        left_ns = None if entry.expires_ns is None else entry.expires_ns - self.clock.now_ns
        assert found.remaining_ms == (None if left_ns is None else left_ns // PER_MS)
        entry.used = self.step
        entry.uses += 1

    @rule(tag=st.sampled_from("xyz"))
    def drop(self, tag: str) -> None:
        gone = [key for key, entry in self.model.items() if entry.tag == tag]
        assert self.cache.drop(tag) == len(gone)
        for key in gone:
            del self.model[key]

    @rule(milliseconds=st.sampled_from([0.5, 1, 1.000001, 6, 30]))
    def time_passes(self, milliseconds: float) -> None:
        self.clock.move_ms(milliseconds)

    @rule()
    def sweep(self) -> None:
        while self.cache.sweep(max_steps=2):
            pass
        self.model = {key: entry for key, entry in self.model.items() if not entry.is_expired(self.clock.now_ns)}

    # What holds after each of them.

    @invariant()
    def bounds_hold_and_the_size_is_exact(self) -> None:
        if not hasattr(self, "cache"):
            return
        seen = self.cache.statistics()
        assert seen.size_bytes <= self.settings.max_size_bytes
        assert seen.entries <= self.settings.max_entries
        assert (seen.size_bytes, seen.entries) == (self.total(), len(self.model))
        assert self.cache.recount() == 0

    @invariant()
    def exactly_the_expected_entries_are_held(self) -> None:
        if hasattr(self, "cache"):
            assert set(self.cache._entries) == set(self.model)

    @invariant()
    def what_came_is_there_or_counted_out_and_leaves_no_trace(self) -> None:
        if not hasattr(self, "cache"):
            return
        seen = self.cache.statistics()
        gone = seen.evicted_for_size + seen.evicted_for_entries + seen.expired + seen.dropped
        assert seen.stored - gone >= seen.entries
        assert len(self.cache._alarms) <= 2 * self.settings.max_entries + 66


CacheBounds.TestCase.settings = settings(stateful_step_count=60)


@pytest.mark.requirement("S1/CACHE-001")
@pytest.mark.requirement("S1/CACHE-002")
@pytest.mark.requirement("S1/CACHE-003")
@pytest.mark.requirement("S1/CACHE-004")
@pytest.mark.requirement("S1/CACHE-006")
class TestCacheBounds(CacheBounds.TestCase):  # type: ignore[misc,valid-type]
    """Random operations, compared with the model after each."""
