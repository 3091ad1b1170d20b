"""What one replica has revoked every replica knows, also after the store was away or has lost everything. With a real Redis."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.state import revoked_keys
from pactgate.state.key_file import RevokedKey
from pactgate.state.replica_set import ReplicaSet
from pactgate.state.revoked_keys import RevokedKeys
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis]

OLD, NEW = bytes(32), b"n" * 32
DAY_S = 86400
GONE = RevokedKey(id="KZpjzyPZ")


def in_days(count: float) -> int:
    return int(time.time() + count * DAY_S)


@asynccontextmanager
async def joined(redis: RedisServer, *keys: bytes, looks: bool = True) -> AsyncIterator[ReplicaSet]:
    store = SharedStore(redis.url, "test", lambda event: None)
    replicas = ReplicaSet(store, SealingKeys(*(keys or (OLD,))), "replica", lambda event: None)
    await replicas.look()
    if looks:
        replicas.start()
    try:
        yield replicas
    finally:
        await replicas.stop()
        await store.close()


def known(replicas: ReplicaSet) -> int | None:
    return replicas.revoked.end_of(GONE.id)


async def test_what_one_has_revoked_the_others_know_within_two_looks_and_are_told(redis: RedisServer) -> None:
    async with joined(redis) as here, joined(redis) as there:
        told: list[int | None] = []
        there.revoked.on_change = lambda: told.append(known(there))
        assert known(there) is None
        here.revoked.publish([GONE])
        began = time.monotonic()
        await eventually(lambda: known(there) == 0)
        assert time.monotonic() - began < 2.0
        assert told == [0]
        async with joined(redis, looks=False) as late:
            assert known(late) == 0, "one that starts later knows it before it serves anybody"


async def test_a_rotated_key_ends_everywhere_when_it_does_in_the_file_and_at_once_when_it_is_revoked_then(
    redis: RedisServer,
) -> None:
    end, expires = in_days(1), in_days(90)
    async with joined(redis) as here, joined(redis) as there:
        here.revoked.publish([RevokedKey(id=GONE.id, ends=end, expires=expires)])
        await eventually(lambda: known(there) == end)
        here.revoked.publish([RevokedKey(id=GONE.id, expires=expires)])
        await eventually(lambda: known(there) == 0)


async def test_the_list_is_not_lost_with_the_store_it_is_told_again_what_a_file_lists_and_what_others_know(
    redis: RedisServer,
) -> None:
    async with joined(redis) as here:
        here.revoked.publish([GONE])
        await eventually(lambda: known(here) == 0)
        async with joined(redis) as there:
            redis.stop()
            await eventually(lambda: not (here.is_fresh or there.is_fresh))
            assert known(there) == 0, "what was learned holds without the store"
            redis.start()
            await eventually(lambda: redis.command("EXISTS", "test:revoked"))
        async with joined(redis, looks=False) as late:
            assert known(late) == 0
    async with joined(redis) as there:  # the one whose file lists it has gone
        redis.command("FLUSHALL")
        await eventually(lambda: redis.command("EXISTS", "test:revoked"))
        assert known(there) == 0


async def test_a_list_that_was_lost_alone_is_noticed_and_written_again(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revoked_keys, "CHECK_S", 0.3)
    async with joined(redis) as here:
        here.revoked.publish([GONE])
        await eventually(lambda: redis.command("EXISTS", "test:revoked"))
        redis.command("DEL", "test:revoked")
        await eventually(lambda: redis.command("EXISTS", "test:revoked"))


async def test_a_store_that_hangs_holds_nobody_up_and_learns_it_later(redis: RedisServer) -> None:
    async with joined(redis) as here, joined(redis) as there:
        redis.suspend()
        here.revoked.publish([GONE])
        began = time.perf_counter()
        assert known(there) is None
        assert time.perf_counter() - began < 0.01
        await eventually(lambda: not there.is_fresh)
        redis.resume()
        await eventually(lambda: known(there) == 0)


async def test_what_is_stored_is_sealed_and_ends_with_the_last_key_that_could_be_valid(redis: RedisServer) -> None:
    async with joined(redis, looks=False) as here:
        here.revoked.publish([RevokedKey(id=GONE.id, expires=in_days(30))])
        await here.look()
        life_ms = redis.keys()["test:revoked"]
        assert 30 * DAY_S <= life_ms / 1000 < 31 * DAY_S
        (name,), (row,) = zip(*redis.command("HGETALL", "test:revoked").items(), strict=True)
        assert GONE.id.encode() not in name + row
        redis.command("HSET", "test:revoked", "stranger", "not a row")
        redis.command("HSET", "test:revoked", "ended", "12 row")
        here.revoked.publish([GONE])
        await here.look()
        assert redis.command("HLEN", "test:revoked") == 1, "what has ended and what is no row goes"
        assert here.is_fresh


async def test_the_row_of_a_key_without_an_end_is_renewed_while_a_file_lists_it(redis: RedisServer) -> None:
    ahead_s = 0.0
    store = SharedStore(redis.url, "test", lambda event: None)
    revoked = RevokedKeys(store, SealingKeys(OLD), lambda: time.time() + ahead_s)
    await store.probe()
    revoked.publish([GONE])
    assert await revoked.exchange(1.0, 0)
    first_ms = redis.keys()["test:revoked"]
    for days, is_renewed in ((100, False), (200, True)):
        ahead_s = days * DAY_S
        revoked.publish([GONE])
        assert await revoked.exchange(1.0, 0) is is_renewed
    assert redis.keys()["test:revoked"] - first_ms > 199 * DAY_S * 1000
    await store.close()


async def test_of_too_many_those_that_end_first_make_room_and_two_full_lists_do_not_fight(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revoked_keys, "MAX_ROWS", 3)
    async with joined(redis, looks=False) as here, joined(redis, looks=False) as there:
        here.revoked.publish([RevokedKey(id=f"here{day}", expires=in_days(day)) for day in (1, 3, 5)])
        there.revoked.publish([RevokedKey(id=f"there{day}", expires=in_days(day)) for day in (2, 4, 6)])
        for replicas in (here, there) * 3:
            await replicas.look()
        epoch = redis.command("HGET", "test:epochs", "revoked")
        for replicas in (here, there) * 3:
            await replicas.look()
        assert redis.command("HGET", "test:epochs", "revoked") == epoch
        assert redis.command("HLEN", "test:revoked") == 3
        for replicas in (here, there):
            assert len(replicas.revoked) == 3
            assert [replicas.revoked.end_of(id_) for id_ in ("there4", "here5", "there6")] == [0, 0, 0]


async def test_the_list_is_read_while_the_sealing_key_is_changed(redis: RedisServer) -> None:
    async with joined(redis, OLD, looks=False) as before, joined(redis, NEW, b"x" * 32, looks=False) as stranger:
        before.revoked.publish([GONE])
        await before.look()
        await stranger.look()
        assert (known(stranger), stranger.is_fresh) == (None, True), "what others sealed is passed over"
        async with joined(redis, NEW, OLD, looks=False) as after:
            assert known(after) == 0
