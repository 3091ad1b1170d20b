"""Rate limits over replicas, in a real Redis whose clock the test moves by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.leased_rates import LeasedRateStore
from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.ports import Quota, RateRefusal
from pactgate.state.shared_store import WAIT_S, SharedStore
from tests.support.eventually import elapsed
from tests.support.redis_server import RedisServer, needs_redis, slowed

pytestmark = [pytest.mark.interop, needs_redis]

LIMIT = Quota("files.write", rpm=100, burst=20)


class HandMovedTime:
    """One time for the store and for all replicas."""

    def __init__(self) -> None:
        self.us = 1_000_000_000_000

    def seconds(self) -> float:
        return self.us / 1_000_000


@asynccontextmanager
async def shared(redis: RedisServer, port: int | None = None) -> AsyncIterator[SharedStore]:
    url = redis.url if port is None else f"redis://127.0.0.1:{port}/0"
    store = SharedStore(url, "test", lambda event: None)
    await store.probe()
    try:
        yield store
    finally:
        await store.close()


def replica(store: SharedStore, moved: HandMovedTime | None = None, *, refuses: bool = False) -> LeasedRateStore:
    def name(subject: str, quota: str) -> str:
        return f"rate:{subject}:{quota}"

    if moved is None:
        return LeasedRateStore(store, MemoryRateStore(), name, refuses=refuses)
    return LeasedRateStore(
        store, MemoryRateStore(), name, refuses=refuses, clock=moved.seconds, store_time_us=lambda: moved.us
    )


async def call(replica: LeasedRateStore, subject: str = "ada", quota: Quota = LIMIT) -> RateRefusal | None:
    found = replica.take(subject, quota)
    return found if found is None or isinstance(found, RateRefusal) else await found


async def test_a_greedy_client_never_gets_more_than_its_limit_and_nearly_all_of_it(redis: RedisServer) -> None:
    """Eight calls at a time, three replicas, of which one gets most: every 20 ms for two minutes."""
    moved, random = HandMovedTime(), Random(7)
    async with shared(redis) as store:
        replicas = [replica(store, moved) for _ in range(3)]
        went: list[float] = []
        start = moved.seconds()
        while moved.seconds() - start < 125:
            chosen = [replicas[0 if random.random() < 0.8 else random.randrange(1, 3)] for _ in range(8)]
            answers = await asyncio.gather(*map(call, chosen))
            went += [moved.seconds()] * answers.count(None)
            moved.us += 200_000
        for one in replicas:
            await one.close()
    assert most_in_window(went, 60) <= LIMIT.rpm
    first = sum(at - start < 60 for at in went)
    second = sum(60 <= at - start < 122 for at in went)
    assert first >= 95, f"{first} of 100 in the first minute"
    assert second >= 95, f"{second} of 100 in the second"


@given(
    quota=st.builds(Quota, st.just("q"), st.integers(1, 600), st.integers(1, 60)),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12), st.integers(0, 5_000_000)), max_size=60),
    key=st.uuids(),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_no_balancing_gives_more_than_the_limit(
    redis: RedisServer, quota: Quota, steps: list[tuple[int, int, int]], key: object
) -> None:
    async def play() -> list[float]:
        moved = HandMovedTime()
        async with shared(redis) as store:
            replicas = [replica(store, moved) for _ in range(3)]
            went: list[float] = []
            for at, calls, pause_us in steps:
                answers = await asyncio.gather(*(call(replicas[at], str(key), quota) for _ in range(calls)))
                went += [moved.seconds()] * answers.count(None)
                moved.us += pause_us
            for one in replicas:
                await one.close()
            return went

    went = asyncio.run(play())
    assert most_in_window(went, 60) <= quota.rpm
    interval_s = 60 / quota.rpm
    for first in range(len(went)):  # at once: no more than the burst and what came back meanwhile
        for last in range(first, len(went)):
            allowed = quota.burst + (went[last] - went[first]) / interval_s + 1e-6
            assert last - first + 1 <= allowed + 1, (went[first], went[last])


async def test_a_replica_that_dies_takes_one_lease_with_it_and_no_more(redis: RedisServer) -> None:
    moved = HandMovedTime()
    async with shared(redis) as store:
        dying, other = replica(store, moved), replica(store, moved)
        assert [await call(dying) for _ in range(2)] == [None] * 2
        answers = [await call(other) for _ in range(LIMIT.burst)]
        lost = LIMIT.burst // 4 + 2  # the lease, and what comes back in the second in which it could have been spent
        assert LIMIT.burst - 2 - lost <= answers.count(None) < LIMIT.burst - 2
        await other.close()


async def test_what_is_left_of_a_lease_goes_back_when_its_caller_is_idle(redis: RedisServer) -> None:
    async with shared(redis) as store:
        first, second = replica(store), replica(store)
        assert [await call(first) for _ in range(2)] == [None] * 2
        await elapsed(1.6)  # longer than a lease: the time is what is tested
        answers = [await call(second) for _ in range(LIMIT.burst)]
        assert answers.count(None) >= LIMIT.burst - 2
        await first.close()
        await second.close()


async def test_a_client_that_calls_seldom_takes_nothing_that_has_to_go_back(redis: RedisServer) -> None:
    moved = HandMovedTime()
    async with shared(redis) as store:
        seldom, other = replica(store, moved), replica(store, moved)
        assert await call(seldom) is None
        answers = [await call(other) for _ in range(LIMIT.burst)]
        assert answers.count(None) == LIMIT.burst - 1
        await other.close()


async def test_what_is_left_of_a_lease_is_there_for_the_next_one(redis: RedisServer) -> None:
    """A client at the pace of its limit, a call a lease: were the rest of each lease lost, the limit would be used up early."""
    moved, quota = HandMovedTime(), Quota("slow", 40, 20)
    async with shared(redis) as store:
        one = replica(store, moved)
        for _ in range(40):
            assert await call(one, quota=quota) is None
            moved.us += 1_499_000
        await one.close()


async def test_waiting_as_long_as_a_refusal_says_is_enough(redis: RedisServer) -> None:
    moved = HandMovedTime()
    async with shared(redis) as store:
        one = replica(store, moved)
        for _ in range(60):
            refusal = await call(one)
            if refusal is not None:
                moved.us += refusal.retry_after_ms * 1000
                assert await call(one) is None
        await one.close()


async def test_a_store_that_hangs_delays_one_call_by_100_ms_and_the_next_not_at_all(redis: RedisServer) -> None:
    async with shared(redis) as store:
        local, strict = replica(store), replica(store, refuses=True)
        redis.suspend()
        begun = time.monotonic()
        assert await call(local) is None
        assert time.monotonic() - begun < WAIT_S + 0.1
        begun = time.monotonic()
        assert await call(local, "eve") is None
        with pytest.raises(GatewayFailure) as refused:
            await call(strict, "bob")
        assert time.monotonic() - begun < WAIT_S
        assert refused.value.kind is Kind.STATE_UNAVAILABLE
        redis.resume()


async def test_a_store_50_ms_away_counts_all_the_same(redis: RedisServer) -> None:
    async with slowed(redis.port, 0.05) as port, shared(redis, port) as store:
        assert store.is_available
        one, two = replica(store), replica(store)
        answers = await asyncio.gather(*(call(each) for each in (one, two) for _ in range(LIMIT.burst)))
        assert answers.count(None) <= LIMIT.burst + 1  # one comes back in 600 ms
        assert store.is_available
        await one.close()
        await two.close()


async def test_everything_stored_has_an_end_and_names_nobody(redis: RedisServer) -> None:
    async with shared(redis) as store:
        one = LeasedRateStore(store, MemoryRateStore(), lambda subject, quota: "rate:digest", refuses=False)
        assert await call(one, "ada@example.com") is None
        await one.close()
    assert redis.keys()
    assert all(0 < life_ms < 600_000 for life_ms in redis.keys().values())
    assert b"ada" not in redis.dump()


def most_in_window(times: list[float], window_s: float) -> int:
    assert all(before <= after for before, after in pairwise(times))
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] >= window_s:
            start += 1
        most = max(most, end - start + 1)
    return most
