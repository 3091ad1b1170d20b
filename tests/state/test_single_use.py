"""What is sealed is used once, on all replicas together. With a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore
from pactgate.state.single_use import SingleUse
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer, needs_redis

NOW = 1_000_000.0
pytestmark = [pytest.mark.interop, needs_redis]


@asynccontextmanager
async def replica(
    redis: RedisServer, *, refuses: bool = True, born_at: float = 0.0
) -> AsyncIterator[tuple[SingleUse, SharedStore]]:
    store = SharedStore(redis.url, "test", lambda event: None)
    await store.probe()
    try:
        yield SingleUse(store, SealingKeys(bytes(32)), refuses=refuses, store_born_at=lambda: born_at), store
    finally:
        await store.close()


async def test_of_many_uses_at_many_replicas_one_is_the_first(redis: RedisServer) -> None:
    async with AsyncExitStack() as stack:
        replicas = [(await stack.enter_async_context(replica(redis)))[0] for _ in range(3)]
        uses = await asyncio.gather(*(one.take("state", NOW, 60) for one in replicas for _ in range(5)))
        assert uses.count(True) == 1
        assert await replicas[0].take("another", NOW, 60)
    assert all(0 < life_ms <= 60_000 for life_ms in redis.keys().values())


async def test_without_the_store_nothing_is_used_where_that_is_the_policy(redis: RedisServer) -> None:
    async with replica(redis) as (one, store):
        redis.stop()
        with pytest.raises(GatewayFailure) as refused:
            await one.take("state", NOW, 60)
        assert refused.value.kind is Kind.STATE_UNAVAILABLE
        redis.start()
        await eventually(store.probe)
        assert await one.take("state", NOW, 60)


async def test_without_the_store_each_replica_takes_care_by_itself_where_that_is_the_policy(redis: RedisServer) -> None:
    async with replica(redis, refuses=False) as (one, store):
        assert await one.take("before", NOW, 60)
        redis.stop()
        assert not await one.take("before", NOW, 60)
        assert await one.take("meanwhile", NOW, 60)
        assert not await one.take("meanwhile", NOW, 60)
        redis.start()
        await eventually(store.probe)
        assert not await one.take("meanwhile", NOW, 60), "the store is empty, and this replica remembers"


async def test_what_was_sealed_before_the_store_was_emptied_counts_as_used(redis: RedisServer) -> None:
    async with replica(redis, born_at=NOW) as (strict, _), replica(redis, born_at=NOW, refuses=False) as (lenient, _):
        assert not await strict.take("before", NOW - 1, 60)
        assert await strict.take("after", NOW + 1, 60)
        assert await lenient.take("other", NOW - 1, 60)
