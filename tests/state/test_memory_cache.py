"""The cache in memory: every bound, every order, every age, at their edges, with a clock moved by hand."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pactgate.config.sections.cache import Cache
from pactgate.state.memory_cache import ENTRY_OVERHEAD_BYTES, MemoryCache, Pressure, keep_swept
from tests.support.caches import HandClock, cache_of, held, holds, value_for
from tests.support.eventually import eventually

PART = 1_000
WHOLE = 10 * PART
"""Ten entries of one part fill the cache."""


def small_cache(clock: HandClock | None = None, **settings: Any) -> MemoryCache:
    return cache_of(clock, **{"max_size_bytes": WHOLE, **settings})


def fill(cache: MemoryCache, keys: str, size_bytes: int = PART, **given: Any) -> None:
    for letter in keys:
        key = letter.encode()
        assert cache.put(key, value_for(key, size_bytes), **given)


# Size.


@pytest.mark.requirement("S1/CACHE-001")
def test_crossing_the_high_water_mark_evicts_down_to_the_low_one() -> None:
    cache = small_cache()
    fill(cache, "abcdefghi")
    assert cache.statistics().size_bytes == 9 * PART
    assert held(cache, "abcdefghi") == "abcdefghi"
    fill(cache, "j")
    assert cache.statistics().size_bytes == 7 * PART
    assert held(cache, "abcdefghij") == "defghij"
    assert cache.statistics().evicted_for_size == 3


@pytest.mark.requirement("S1/CACHE-001")
@pytest.mark.requirement("S1/XC-002")
def test_an_entry_larger_than_the_cache_is_refused_and_nothing_else_is_touched() -> None:
    cache = small_cache()
    fill(cache, "abc")
    assert not cache.put(b"z", value_for(b"z", WHOLE + 1))
    assert held(cache, "abcz") == "abc"
    seen = cache.statistics()
    assert (seen.rejected, seen.evicted_for_size, seen.size_bytes) == (1, 0, 3 * PART)


@pytest.mark.requirement("S1/CACHE-001")
def test_an_entry_as_large_as_the_cache_is_kept_alone() -> None:
    cache = small_cache()
    fill(cache, "abc")
    assert cache.put(b"z", value_for(b"z", WHOLE))
    assert held(cache, "abcz") == "z"
    assert cache.statistics().size_bytes == WHOLE


@pytest.mark.requirement("S1/CACHE-001")
def test_a_refused_value_does_not_leave_its_outdated_predecessor() -> None:
    cache = small_cache()
    fill(cache, "ab")
    assert not cache.put(b"a", value_for(b"a", WHOLE + 1))
    assert held(cache, "ab") == "b"
    assert cache.statistics().size_bytes == PART
    assert cache.statistics().dropped == 1


@pytest.mark.requirement("S1/CACHE-001")
def test_half_of_the_room_in_a_cache_that_is_seventy_percent_full() -> None:
    cache = small_cache()
    fill(cache, "abcdefg")
    assert cache.put(b"z", value_for(b"z", 5 * PART))
    assert held(cache, "abcdefgz") == "fgz"
    assert cache.statistics().size_bytes == 7 * PART


@pytest.mark.requirement("S1/CACHE-001")
def test_a_small_value_replaced_by_a_large_one_makes_others_go() -> None:
    cache = small_cache()
    fill(cache, "abcdefg")
    assert cache.put(b"a", value_for(b"a", 6 * PART))
    assert cache.statistics().size_bytes == 7 * PART
    assert held(cache, "abcdefg") == "ag"
    assert cache.get(b"a").value == value_for(b"a", 6 * PART)


@pytest.mark.requirement("S1/CACHE-001")
def test_marks_that_leave_no_room_between_them_are_refused() -> None:
    with pytest.raises(ValueError):
        small_cache(low_water_mark=0.8, high_water_mark=0.8)


@pytest.mark.requirement("S1/CACHE-006")
def test_the_size_is_the_sum_of_keys_values_marks_and_overhead() -> None:
    cache = small_cache()
    assert (cache.statistics().size_bytes, cache.statistics().entries, cache.recount()) == (0, 0, 0)
    cache.put(b"key", "größer".encode(), mark=b"mark")
    assert cache.statistics().size_bytes == 3 + 8 + 4 + ENTRY_OVERHEAD_BYTES
    cache.put(b"key", b"")
    assert cache.statistics().size_bytes == 3 + ENTRY_OVERHEAD_BYTES
    assert cache.recount() == 0
    cache.put(b"key", b"x", tag="t")
    assert (cache.drop("t"), cache.statistics().size_bytes, cache.statistics().entries, cache.recount()) == (1, 0, 0, 0)


@pytest.mark.requirement("S1/CACHE-006")
@pytest.mark.parametrize("value", [{"a": 1}, "text", bytearray(b"x"), memoryview(b"x"), None])
def test_what_is_not_bytes_is_not_stored_and_not_guessed_at(value: Any) -> None:
    cache = small_cache()
    fill(cache, "a")
    with pytest.raises(TypeError):
        cache.put(b"a", value)
    with pytest.raises(TypeError):
        cache.put(b"a", b"", mark=value)
    assert cache.get(b"a").value == value_for(b"a", PART)
    assert cache.statistics().size_bytes == PART


# Entries.


@pytest.mark.requirement("S1/CACHE-002")
def test_the_entry_bound_evicts_one_for_one() -> None:
    cache = cache_of(max_entries=3)
    for letter in "abcde":
        cache.put(letter.encode(), b"")
        assert cache.statistics().entries <= 3
    assert held(cache, "abcde") == "cde"
    assert cache.statistics().evicted_for_entries == 2


@pytest.mark.requirement("S1/CACHE-002")
@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_a_cache_of_one_entry_holds_the_last_one(policy: str) -> None:
    cache = cache_of(max_entries=1, eviction_policy=policy)
    for letter in "abc":
        assert cache.put(letter.encode(), letter.encode())
        assert cache.get(letter.encode()).value == letter.encode()
    assert cache.statistics().entries == 1


@pytest.mark.requirement("S1/CACHE-002")
@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_overwriting_at_the_limit_evicts_nothing_else(policy: str) -> None:
    cache = cache_of(max_entries=3, eviction_policy=policy)
    fill(cache, "abc")
    fill(cache, "aba")
    assert held(cache, "abc") == "abc"
    seen = cache.statistics()
    assert (seen.evicted_for_entries, seen.evicted_for_size, seen.dropped) == (0, 0, 0)


@pytest.mark.requirement("S1/CACHE-002")
def test_what_has_expired_goes_before_what_has_not() -> None:
    clock = HandClock()
    cache = cache_of(clock, max_entries=3)
    cache.put(b"a", b"", ttl_ms=1000)
    cache.put(b"b", b"", ttl_ms=10)
    cache.put(b"c", b"", ttl_ms=1000)
    clock.move_ms(11)
    cache.put(b"d", b"")
    assert held(cache, "abcd") == "acd"
    seen = cache.statistics()
    assert (seen.expired, seen.evicted_for_entries) == (1, 0)


@pytest.mark.requirement("S1/CACHE-001")
def test_expired_entries_make_room_before_any_living_one_has_to() -> None:
    clock = HandClock()
    cache = small_cache(clock)
    fill(cache, "ab", ttl_ms=1000)
    fill(cache, "cdefghi", ttl_ms=10)
    clock.move_ms(11)
    fill(cache, "z")
    assert held(cache, "abcdefghiz") == "abz"
    seen = cache.statistics()
    assert (seen.expired, seen.evicted_for_size, seen.size_bytes) == (7, 0, 3 * PART)


def test_an_expired_entry_is_replaced_like_any_other() -> None:
    clock = HandClock()
    cache = cache_of(clock, max_entries=1)
    cache.put(b"a", b"old", ttl_ms=10)
    clock.move_ms(11)
    cache.put(b"a", b"new", ttl_ms=10)
    assert cache.get(b"a").value == b"new"
    assert cache.recount() == 0


# Age.


@pytest.mark.requirement("S1/CACHE-003")
def test_an_entry_is_valid_up_to_and_including_its_last_moment() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    cache.put(b"a", b"x", ttl_ms=50)
    clock.move_ms(49.999)
    assert (cache.get(b"a").hit, cache.get(b"a").age_ms, cache.get(b"a").remaining_ms) == (True, 49, 0)
    clock.move_ms(0.001)
    assert (cache.get(b"a").hit, cache.get(b"a").age_ms) == (True, 50)
    assert holds(cache, b"a")
    clock.now_ns += 1
    assert not holds(cache, b"a")
    found = cache.get(b"a")
    assert (found.hit, found.value) == (False, b"")
    assert (cache.statistics().entries, cache.statistics().size_bytes) == (0, 0)


@pytest.mark.requirement("S1/CACHE-003")
def test_a_time_to_live_of_zero_never_ends() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    cache.put(b"a", b"x", ttl_ms=0)
    clock.move_ms(10**15)
    found = cache.get(b"a")
    assert (found.hit, found.remaining_ms) == (True, None)


@pytest.mark.requirement("S1/CACHE-003")
@pytest.mark.parametrize(("default_ttl_ms", "outlives"), [(100, False), (0, True)])
def test_the_default_counts_where_no_time_is_given(default_ttl_ms: int, outlives: bool) -> None:
    clock = HandClock()
    cache = cache_of(clock, default_ttl_ms=default_ttl_ms)
    cache.put(b"a", b"x")
    clock.move_ms(101)
    assert cache.get(b"a").hit is outlives


def test_a_negative_time_to_live_is_refused_and_changes_nothing() -> None:
    cache = cache_of()
    cache.put(b"a", b"x")
    with pytest.raises(ValueError):
        cache.put(b"a", b"y", ttl_ms=-1)
    assert cache.get(b"a").value == b"x"


@pytest.mark.requirement("S1/CACHE-003")
def test_the_wall_clock_set_back_or_forward_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = MemoryCache(Cache())
    cache.put(b"a", b"x", ttl_ms=60_000)
    for shift_s in (-1e9, 1e9):
        monkeypatch.setattr(time, "time", lambda shift_s=shift_s: shift_s)
        monkeypatch.setattr(time, "time_ns", lambda shift_s=shift_s: int(shift_s * 1e9))
        assert cache.get(b"a").hit


def test_even_a_clock_that_runs_back_gives_no_negative_age() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    cache.put(b"a", b"x", ttl_ms=50)
    clock.move_ms(-10)
    assert (cache.get(b"a").hit, cache.get(b"a").age_ms) == (True, 0)


@pytest.mark.requirement("S1/CACHE-003")
def test_a_new_value_starts_a_new_life() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    cache.put(b"a", b"x", ttl_ms=50)
    clock.move_ms(40)
    cache.put(b"a", b"y", ttl_ms=50)
    clock.move_ms(40)
    assert cache.get(b"a").value == b"y"
    assert not cache.sweep()
    assert cache.statistics().entries == 1


@pytest.mark.requirement("S1/CACHE-003")
def test_a_sweep_frees_what_nobody_asks_for_in_bounded_steps() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    for number in range(25):
        cache.put(b"%d" % number, b"x", ttl_ms=10)
    cache.put(b"living", b"x", ttl_ms=1000)
    clock.move_ms(10)
    assert (cache.sweep(), cache.statistics().entries) == (False, 26), "valid up to and including this moment"
    clock.move_ms(1)
    left = []
    while cache.sweep(max_steps=10):
        left.append(cache.statistics().entries)
    assert (left, cache.statistics().entries, cache.statistics().expired) == ([16, 6], 1, 25)
    assert cache.statistics().size_bytes == len(b"living") + 1 + ENTRY_OVERHEAD_BYTES


@pytest.mark.requirement("S1/CACHE-003")
async def test_the_owner_of_a_cache_keeps_it_swept() -> None:
    clock = HandClock()
    cache = cache_of(clock)
    for number in range(1500):
        cache.put(b"%d" % number, b"x", ttl_ms=10)
    clock.move_ms(11)
    sweeper = asyncio.create_task(keep_swept(cache, 1))
    async with asyncio.timeout(5):
        await eventually(lambda: not cache.statistics().entries)
        cache.put(b"later", b"x", ttl_ms=10)
        clock.move_ms(11)
        await eventually(lambda: not cache.statistics().entries)
    sweeper.cancel()
    await asyncio.wait({sweeper})
    assert cache.statistics().size_bytes == 0


def test_overwriting_one_key_for_ever_does_not_grow_what_is_remembered_about_it() -> None:
    cache = cache_of()
    for number in range(1000):
        cache.put(b"a", b"%d" % number, ttl_ms=60_000)
        cache.put(b"b", b"x", ttl_ms=0)
    assert len(cache._alarms) < 100


# Order.


@pytest.mark.requirement("S1/CACHE-004")
@pytest.mark.parametrize(
    ("policy", "uses", "survivors"),
    [
        ("lru", "", "bcd"),
        ("lru", "a", "acd"),
        ("lru", "ab", "abd"),
        ("fifo", "aab", "bcd"),
        ("lfu", "aab", "abd"),
        ("lfu", "abc", "bcd"),
        ("lfu", "cba", "abd"),
    ],
)
def test_within_one_tick_the_order_of_eviction_is_that_of_the_uses(policy: str, uses: str, survivors: str) -> None:
    cache = cache_of(max_entries=3, eviction_policy=policy)
    fill(cache, "abc")
    for letter in uses:
        assert cache.get(letter.encode()).hit
    fill(cache, "d")
    assert held(cache, "abcd") == survivors


# Atomicity.


@pytest.mark.requirement("S1/CACHE-005")
def test_a_put_that_fails_leaves_everything_as_it_was() -> None:
    clock = HandClock()
    cache = small_cache(clock)
    fill(cache, "abcdefghi", tag="t")
    before = cache.statistics()

    def broken() -> int:
        raise OSError("no clock")

    cache._clock_ns = broken
    with pytest.raises(OSError, match="no clock"):
        cache.put(b"a", value_for(b"a", 5 * PART))
    cache._clock_ns = clock
    assert cache.statistics() == before
    assert cache.get(b"a").value == value_for(b"a", PART)
    assert cache.drop("t") == 9


@pytest.mark.requirement("S1/CACHE-005")
def test_what_is_returned_can_not_change_what_is_held() -> None:
    cache = cache_of()
    source = bytearray(b"value")
    cache.put(b"a", bytes(source))
    source[0] = 0
    found = cache.get(b"a")
    assert type(found.value) is bytes
    with pytest.raises(AttributeError):
        found.value = b"other"  # type: ignore[misc]
    assert cache.get(b"a").value == b"value"


@pytest.mark.requirement("S1/CACHE-001")
@pytest.mark.requirement("S1/CACHE-002")
@pytest.mark.requirement("S1/CACHE-005")
@pytest.mark.requirement("S1/CACHE-006")
@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_threads_never_see_a_bound_broken_or_a_value_that_was_not_put(policy: str, hectic_threads: None) -> None:
    cache = cache_of(time.monotonic_ns, max_size_bytes=WHOLE, max_entries=MOST, eviction_policy=policy)
    broken: list[str] = []
    together = threading.Barrier(4)

    def hammer(number: int) -> None:
        together.wait(5)
        for step in range(1500):
            broken.extend(hammered(cache, step, number))
            broken.extend(observed(cache))

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not broken
    assert cache.recount() == 0
    assert cache.statistics().stored > 1000


MOST = 6


@pytest.fixture
def hectic_threads() -> Iterator[None]:
    """Threads change places as often as they can."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual_s)


def hammered(cache: MemoryCache, step: int, number: int) -> list[str]:
    """One of many operations, and what was wrong with its answer."""
    letter = b"abcdefghij"[(step * 7 + number) % 10 :][:1]
    kind = (step + number) % 7
    if kind < 3:
        cache.put(letter, letter * (40 + step % 900), ttl_ms=step % 3, tag=str(step % 2))
    elif kind < 5:
        found = cache.get(letter)
        if found.hit and set(found.value) != set(letter):
            return [f"{letter!r} held {found.value[:20]!r}"]
    elif kind == 5:
        cache.sweep(2)
    elif step % 49 == 0:
        cache.drop(str(step % 2))
    return []


def observed(cache: MemoryCache) -> list[str]:
    """What any reader can see, and must not."""
    seen = cache.statistics()
    faults = {
        f"{seen.size_bytes} bytes": seen.size_bytes > WHOLE or cache.statistics().size_bytes > WHOLE,
        f"{seen.entries} entries": seen.entries > MOST or cache.statistics().entries > MOST,
        "half of an operation": (seen.size_bytes == 0) != (seen.entries == 0),
    }
    return [fault for fault, is_there in faults.items() if is_there]


# Dropping and counting.


def test_dropping_a_tag_takes_exactly_its_entries() -> None:
    cache = small_cache()
    fill(cache, "abc", tag="one")
    fill(cache, "de", tag="two")
    assert cache.drop("one") == 3
    assert held(cache, "abcde") == "de"
    assert (cache.drop("one"), cache.drop("never"), cache.statistics().size_bytes) == (0, 0, 2 * PART)
    assert cache.statistics().dropped == 3
    assert (cache.drop("two"), cache._tags) == (2, {}), "nor does a server that is gone leave anything"


def test_an_entry_belongs_to_the_tag_it_was_last_put_with() -> None:
    cache = small_cache()
    fill(cache, "a", tag="one")
    fill(cache, "a", tag="two")
    assert (cache.drop("one"), held(cache, "a"), cache.drop("two"), held(cache, "a")) == (0, "a", 1, "")


def test_a_mark_comes_back_with_its_value() -> None:
    cache = small_cache()
    cache.put(b"a", b"x", mark=b"modern")
    assert cache.get(b"a").mark == b"modern"


@pytest.mark.parametrize(
    ("parts", "pressure"),
    [(0, Pressure.LOW), (4, Pressure.LOW), (5, Pressure.MEDIUM), (8, Pressure.MEDIUM), (9, Pressure.HIGH)],
)
def test_pressure_is_the_part_of_the_room_that_is_taken(parts: int, pressure: Pressure) -> None:
    cache = small_cache()
    fill(cache, "abcdefghij"[:parts])
    assert cache.statistics().pressure is pressure


@pytest.mark.requirement("S1/XC-002")
def test_even_critical_pressure_only_evicts() -> None:
    cache = small_cache()
    assert cache.put(b"a", value_for(b"a", 9_500))
    assert cache.statistics().pressure is Pressure.CRITICAL
    fill(cache, "b")
    assert held(cache, "ab") == "b"


def test_everything_that_happens_is_counted() -> None:
    clock = HandClock()
    cache = small_cache(clock, max_entries=2)
    fill(cache, "a", ttl_ms=10)
    fill(cache, "bc", tag="t")
    for letter in b"a", b"b", b"b":
        cache.get(letter)
    cache.put(b"d", b"", ttl_ms=1)
    clock.move_ms(2)
    cache.get(b"d")
    cache.put(b"big", bytes(WHOLE))
    cache.drop("t")
    seen = cache.statistics()
    assert (seen.stored, seen.rejected) == (4, 1)
    assert (seen.evicted_for_entries, seen.evicted_for_size, seen.expired, seen.dropped) == (2, 0, 1, 1)
    assert (seen.entries, seen.size_bytes) == (0, 0)
