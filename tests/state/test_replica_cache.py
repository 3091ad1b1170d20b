"""The cache of one of several replicas. With a real Redis."""

from __future__ import annotations

import pytest

from pactgate.config.sections.cache import Cache
from pactgate.state.memory_cache import MemoryCache
from pactgate.state.ports import MISS
from pactgate.state.replica_cache import ReplicaCache
from tests.state.test_replica_set import joined
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis]


@pytest.mark.requirement("S1/XC-002")
async def test_entries_are_read_while_the_writes_of_others_are_known_and_are_misses_otherwise(
    redis: RedisServer,
) -> None:
    async with joined(redis, "127.0.0.1:1") as member:
        cache = ReplicaCache(MemoryCache(Cache()), member.set)
        assert not cache.put(b"k", b"v", tag="files")
        await eventually(lambda: cache.put(b"k", b"v", tag="files"))
        assert cache.get(b"k").value == b"v"
        redis.suspend()
        await eventually(lambda: cache.get(b"k") is MISS)
        assert not cache.put(b"k", b"v", tag="files")
        redis.resume()
        await eventually(lambda: cache.get(b"k").hit)
        assert cache.drop("files") == 1
