"""Replicas that know of each other, of each other's writes, and of rights that were taken away. With a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from pactgate.core.events import Event
from pactgate.state import replica_set
from pactgate.state.owned_ids import new_replica_id
from pactgate.state.replica_set import ReplicaSet
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore
from tests.support.eventually import elapsed, eventually
from tests.support.redis_server import RedisServer, needs_redis, pretending

pytestmark = [pytest.mark.interop, needs_redis]

KEY = bytes(32)
GONE_S = 40.0
"""LIFE_S, and SETTLE_S as well where a busy machine made a replica miss the store once."""
Join = Callable[[str], "asyncio.Future[Member]"]


class Member:
    """One replica: its set, and what it was told."""

    def __init__(self, replicas: ReplicaSet, store: SharedStore) -> None:
        self.set = replicas
        self.store = store
        self.stale: list[str | None] = []
        self.left: list[str] = []
        self.looked = 0
        replicas.on_stale = self.stale.append
        replicas.on_left = self.left.append
        replicas.on_look_again = self._look

    def _look(self) -> None:
        self.looked += 1


async def write(member: Member) -> None:
    """A call to the server `files` may have changed something."""
    telling = member.set.written("files")
    if telling is not None:
        await telling


@asynccontextmanager
async def joined(redis: RedisServer, address: str, key: bytes = KEY) -> AsyncIterator[Member]:
    store = SharedStore(redis.url, "test", lambda event: None)
    member = Member(ReplicaSet(store, SealingKeys(key), new_replica_id(), lambda event: None), store)
    await member.set.announce(address)
    member.set.start()
    try:
        yield member
    finally:
        await member.set.stop()
        await store.close()


@pytest_asyncio.fixture
async def pair(redis: RedisServer) -> AsyncIterator[tuple[Member, Member]]:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(joined(redis, "127.0.0.1:1"))
        second = await stack.enter_async_context(joined(redis, "127.0.0.1:2"))
        await eventually(lambda: first.set.addresses and second.set.addresses)
        yield first, second


async def test_replicas_find_each_other_and_notice_who_leaves(redis: RedisServer) -> None:
    async with joined(redis, "127.0.0.1:1") as first:
        async with joined(redis, "127.0.0.1:2") as second:
            await eventually(lambda: first.set.addresses == {second.set.replica: "127.0.0.1:2"})
            assert second.set.addresses == {first.set.replica: "127.0.0.1:1"}
        await eventually(lambda: not first.set.addresses, within_s=GONE_S)
        assert first.left == ["127.0.0.1:2"]


async def test_the_others_know_a_replica_before_it_serves_anybody(redis: RedisServer) -> None:
    async with joined(redis, "127.0.0.1:1") as first, joined(redis, "127.0.0.1:2") as second:
        assert second.set.replica in first.set.addresses


async def test_what_waits_at_a_replica_is_not_ended_when_the_one_before_it_at_this_address_is_gone(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_set, "LIFE_S", 3.0)
    async with joined(redis, "127.0.0.1:1") as first, joined(redis, "127.0.0.1:2") as before:
        for task in tuple(before.set._tasks):
            task.cancel()
        async with joined(redis, "127.0.0.1:2") as again:
            await eventually(lambda: first.set.addresses == {again.set.replica: "127.0.0.1:2"}, within_s=GONE_S)
        assert not first.left


async def test_a_replica_that_is_not_heard_of_any_more_is_gone(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_set, "LIFE_S", 3.0)
    async with joined(redis, "127.0.0.1:1") as first, joined(redis, "127.0.0.1:2") as second:
        await eventually(lambda: first.set.addresses)
        for task in tuple(second.set._tasks):
            task.cancel()
        await eventually(lambda: not first.set.addresses, within_s=GONE_S)


async def test_somebody_with_another_key_is_no_replica(redis: RedisServer) -> None:
    async with joined(redis, "127.0.0.1:1") as first, joined(redis, "127.0.0.1:2", key=b"x" * 32) as other:
        await elapsed(2.5)  # longer than a beat
        assert not first.set.addresses
        assert not other.set.addresses


async def test_a_write_is_known_to_the_others_when_results_of_that_server_are_cached(
    pair: tuple[Member, Member],
) -> None:
    writer, reader = pair
    await write(writer)
    await elapsed(0.3)  # longer than a look
    assert "files" not in reader.stale
    assert not reader.set.may_cache("files")
    await eventually(lambda: reader.set.may_cache("files"))
    await write(writer)
    await eventually(lambda: "files" in reader.stale, within_s=replica_set.FRESH_S)
    assert "files" not in writer.stale


async def test_a_write_is_known_also_after_the_store_has_forgotten_what_is_cached(
    pair: tuple[Member, Member], redis: RedisServer
) -> None:
    """As when somebody empties a store that goes on answering."""
    writer, reader = pair
    await eventually(lambda: reader.set.may_cache("files"))
    reader.stale.clear()
    born_at = reader.set.store_born_at
    redis.command("DEL", "test:epochs")
    await eventually(lambda: reader.stale == [None])
    assert born_at < reader.set.store_born_at <= time.time()
    assert abs(reader.set.clock_ahead_s) < 1
    assert not reader.set.may_cache("files")
    await eventually(lambda: reader.set.may_cache("files"))
    reader.stale.clear()
    await write(writer)
    await eventually(lambda: reader.stale == ["files"])


async def test_a_write_that_nobody_need_know_of_leaves_nothing_that_later_writes_would_have_to_ask_about(
    pair: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = pair
    with monkeypatch.context() as unknown:
        unknown.setattr(replica_set, "FRESH_S", 0.0)  # as of a busy replica that has not looked in time
        await write(writer)
    read_at = writer.set._read_at
    await eventually(lambda: writer.set._read_at > read_at)
    assert writer.set.written("files") is None


async def test_every_replica_looks_again_when_one_says_so(pair: tuple[Member, Member]) -> None:
    here, there = pair
    await here.set.look_again()
    await eventually(lambda: there.looked == 1)
    assert here.looked == 0


async def test_while_the_store_is_away_nothing_is_fresh_and_the_replicas_stay_known(
    pair: tuple[Member, Member], redis: RedisServer
) -> None:
    here, there = pair
    assert here.set.is_fresh
    redis.stop()
    await eventually(lambda: not here.set.is_fresh)
    assert here.set.addresses
    await write(here)  # the others can't be told now
    redis.start()
    await eventually(lambda: here.set.is_fresh and there.set.is_fresh)
    assert None in there.stale[1:]
    assert there.looked == 1
    assert here.set.addresses
    assert not here.left


async def test_a_store_whose_answers_make_no_sense_is_as_good_as_none() -> None:
    def answer(data: bytes) -> bytes:
        return b"+OK\r\n" * sum(data.count(word) for word in (b"HELLO", b"CLIENT", b"EVAL"))

    events: list[Event] = []
    async with pretending(answer) as url:
        store = SharedStore(f"{url}?protocol=2", "test", events.append)
        replicas = ReplicaSet(store, SealingKeys(KEY), new_replica_id(), events.append)
        await replicas.announce("127.0.0.1:1")
        assert store.is_available
        assert not replicas.is_fresh
        assert "InternalFailure" in [type(event).__name__ for event in events]
        await replicas.stop()
        await store.close()


async def test_what_is_stored_is_sealed_and_has_an_end(pair: tuple[Member, Member], redis: RedisServer) -> None:
    await write(pair[0])
    pair[0].set.may_cache("files")
    await eventually(lambda: len(redis.keys()) == 3)
    assert all(life_ms > 0 for life_ms in redis.keys().values())
    assert b"127.0.0.1" not in redis.dump()
    assert b"files" not in redis.dump()
