"""Credentials that replicas share: sealed, compared before they are replaced, and locked while one of them renews. With a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state import shared_credentials
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_credentials import SharedCredentials
from tests.support.eventually import elapsed
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis]

KEY, NEW = bytes(32), b"\xff" * 32
SECRET = b"refresh-token-that-nobody-may-read"
ROW = ("grant", "linear", "https://a.example ada")


def opened(redis: RedisServer, *keys: bytes) -> SharedCredentials:
    """The store as one replica has it."""
    return SharedCredentials(redis.url, "test", SealingKeys(*(keys or (KEY,))))


def test_what_one_replica_writes_another_reads_and_it_lies_sealed_with_an_end(redis: RedisServer) -> None:
    assert opened(redis).write(*ROW, SECRET) == 1
    found = opened(redis).read(*ROW)
    assert found is not None
    assert (found.server, found.name, found.generation, found.data) == (*ROW[1:], 1, SECRET)
    assert opened(redis).rows("grant") == [found]
    assert not any(part in redis.dump() for part in (SECRET, b"linear", b"ada", b"a.example"))
    assert all(life_ms > 0 for life_ms in redis.keys().values())


def test_a_write_over_an_older_generation_is_refused(redis: RedisServer) -> None:
    here, there = opened(redis), opened(redis)
    assert here.write(*ROW, b"first", replaces=0) == 1
    assert there.write(*ROW, b"other", replaces=0) is None
    assert there.write(*ROW, b"second", replaces=1) == 2
    assert here.write(*ROW, b"third", replaces=1) is None
    found = here.read(*ROW)
    assert found is not None
    assert found.data == b"second"


def test_a_change_is_seen_by_the_others_and_looking_changes_nothing(redis: RedisServer) -> None:
    here, there = opened(redis), opened(redis)
    before = there.state()
    assert here.read(*ROW) is None
    assert there.state() == before
    here.write(*ROW, SECRET)
    written = there.state()
    assert written != before
    assert here.remove("linear")
    assert there.state() != written
    assert there.read(*ROW) is None


def test_removing_takes_the_rows_of_a_server_or_those_of_one_principal(redis: RedisServer) -> None:
    store = opened(redis)
    for server, name in (("linear", "u ada"), ("linear", "u eve"), ("other", "u ada")):
        store.write("grant", server, name, SECRET)
    assert store.remove("linear", "ada")
    assert [(row.server, row.name) for row in store.rows("grant")] == [("linear", "u eve"), ("other", "u ada")]
    assert store.remove("linear")
    assert not store.remove("linear")
    assert [row.server for row in store.rows("grant")] == ["other"]


def test_while_keys_are_changed_every_replica_reads_and_replaces_what_the_others_wrote(redis: RedisServer) -> None:
    before, during, after = opened(redis, KEY, NEW), opened(redis, NEW, KEY), opened(redis, NEW)
    assert before.write(*ROW, b"first") == 1
    assert during.write(*ROW, b"second", replaces=1) == 2
    assert before.write(*ROW, b"third", replaces=2) == 3
    with pytest.raises(GatewayFailure) as refused:
        after.check()
    assert refused.value.kind is Kind.INVALID_CONFIG
    assert during.rotate() == 1
    after.check()
    found = after.read(*ROW)
    assert found is not None
    assert (found.data, found.generation) == (b"third", 4)
    assert len(after.rows("grant")) == 1


def test_a_row_that_was_moved_to_another_server_is_not_taken(redis: RedisServer) -> None:
    store = opened(redis)
    store.write("grant", "evil", "u", SECRET)
    store.write("grant", "linear", "u", b"other")
    evil, linear = (SealingKeys(KEY).digest("credential", "grant", server, "u") for server in ("evil", "linear"))
    redis.command("HSET", "test:credentials", evil, redis.command("HGET", "test:credentials", linear))
    with pytest.raises(GatewayFailure) as refused:
        store.read("grant", "evil", "u")
    assert refused.value.kind is Kind.INVALID_CONFIG


async def test_one_at_a_time_holds_a_grant_and_other_grants_do_not_wait(redis: RedisServer) -> None:
    stores = [opened(redis) for _ in range(3)]
    holding, most = 0, 0

    async def hold(store: SharedCredentials) -> None:
        nonlocal holding, most
        async with store.locked("linear", "ada"):
            holding += 1
            most = max(most, holding)
            async with store.locked("linear", "eve"), store.locked("other"):
                await elapsed(0.01)
            holding -= 1

    await asyncio.gather(*(hold(store) for store in stores for _ in range(2)))
    assert most == 1
    assert set(redis.keys()) <= {"test:credentials"}


async def test_a_lock_lasts_while_its_holder_lives_and_ends_soon_after_it_was_killed(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_credentials, "LOCK_MS", 600)
    monkeypatch.setattr(shared_credentials, "_BEAT_S", 0.1)
    alive, other = opened(redis), opened(redis)
    async with alive.locked("linear"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.2), other.locked("linear"):
                raise AssertionError("it is held")
    redis.command("SET", next(iter(_lock_names(alive))), "somebody who was killed", "PX", "600")
    async with asyncio.timeout(3), other.locked("linear"):
        await elapsed(0.01)


def _lock_names(store: SharedCredentials) -> list[str]:
    return [f"{store._lock}:{SealingKeys(KEY).digest('credential', 'linear', '')}"]


async def test_while_the_store_hangs_rows_stay_known_and_nothing_is_written_or_locked(redis: RedisServer) -> None:
    store = opened(redis)
    store.write(*ROW, SECRET)
    known = store.read(*ROW)
    redis.suspend()
    begun = time.monotonic()
    assert await asyncio.to_thread(store.read, *ROW) == known
    attempts: list[Callable[[], object]] = [
        lambda: store.read("grant", "linear", "never read"),
        lambda: store.write(*ROW, b"x"),
        lambda: store.rows("grant"),
        lambda: store.remove("linear"),
        store.state,
    ]
    for attempt in attempts:
        with pytest.raises(GatewayFailure) as refused:
            await asyncio.to_thread(attempt)
        assert refused.value.kind is Kind.STATE_UNAVAILABLE
    with pytest.raises(GatewayFailure):
        async with store.locked("linear"):
            raise AssertionError("it can't be held")
    store.check()  # a store that can't be reached does not stop the start
    assert time.monotonic() - begun < 3
