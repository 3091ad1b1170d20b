"""Notes that a later request picks up: once or several times, for a while, and not too many."""

from __future__ import annotations

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.handoffs import MemoryHandoffs, SharedHandoffs
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore
from tests.support.redis_server import RedisServer, needs_redis


async def test_a_note_is_read_until_it_is_taken_or_its_time_is_over() -> None:
    now = [0.0]
    notes = MemoryHandoffs(lambda: now[0])
    await notes.put("a", b"1", 10)
    assert [await notes.get("a"), await notes.take("a"), await notes.take("a")] == [b"1", b"1", None]
    await notes.put("b", b"2", 10)
    now[0] = 10
    assert await notes.get("b") is None


async def test_the_oldest_note_makes_room() -> None:
    notes = MemoryHandoffs(lambda: 0.0, most=2)
    for name in ("a", "b", "c"):
        await notes.put(name, b"x", 10)
    assert [await notes.get(name) for name in ("a", "b", "c")] == [None, b"x", b"x"]


async def test_without_the_store_of_the_replicas_nobody_signs_in() -> None:
    store = SharedStore("redis://127.0.0.1:1", "pactgate", lambda event: None)
    notes = SharedHandoffs(store, SealingKeys(b"k" * 32))
    with pytest.raises(GatewayFailure) as refusal:
        await notes.put("a", b"1", 10)
    assert refusal.value.kind is Kind.STATE_UNAVAILABLE


@pytest.mark.interop
@needs_redis
async def test_replicas_take_a_note_once_between_them(redis: RedisServer) -> None:
    keys = SealingKeys(b"k" * 32)
    stores = [SharedStore(redis.url, "pactgate", lambda event: None) for _ in range(2)]
    one, other = (SharedHandoffs(store, keys) for store in stores)
    for store in stores:
        assert await store.probe()
    await one.put("a", b"1", 10)
    assert await other.get("a") == b"1"
    assert [await other.take("a"), await one.take("a")] == [b"1", None]
    for store in stores:
        await store.close()
