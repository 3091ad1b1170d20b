"""The rows of replicas in a real Redis: compared and written in one step, held by one, and what a store that is away does."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from pactgate.config.sections.state import StateSection
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.sign_ins import shared_credentials
from pactgate.state import shared_credentials as module
from pactgate.state.credential_keys import new_key
from pactgate.state.credential_store import CredentialStore
from tests.support.eventually import eventually_blocking
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis]
KEY = new_key()
SECRET = b"refresh-token-that-nobody-may-read"


def store_of(redis: RedisServer, key: str = KEY, previous_key: str | None = None) -> CredentialStore:
    return shared_credentials(StateSection(url=redis.url, key=key, previous_key=previous_key))


def test_replicas_read_what_one_wrote_and_the_store_does_not(redis: RedisServer) -> None:
    one, other = store_of(redis), store_of(redis)
    assert one.exists
    assert one.read("grant", "linear", "https://a.example") is None
    before = one.state()
    assert one.write("grant", "linear", "https://a.example", SECRET, replaces=0) == 1
    found = other.read("grant", "linear", "https://a.example")
    assert found is not None
    assert (found.data, found.generation) == (SECRET, 1)
    assert other.state() != before
    assert one.write("grant", "linear", "https://a.example", b"2", replaces=0) is None
    assert one.write("grant", "linear", "https://a.example", b"2", replaces=1) == 2
    assert not any(part in redis.dump() for part in (SECRET, b"linear", b"a.example"))
    assert all(life_ms > 0 for life_ms in redis.keys().values())


def test_the_rows_of_one_principal_are_removed_alone(redis: RedisServer) -> None:
    store = store_of(redis)
    for name in ("u", "u alice", "u bob"):
        store.write("grant", "linear", name, SECRET)
    assert store.remove("linear", "alice")
    assert [row.name for row in store.rows("grant")] == ["u", "u bob"]
    assert store.remove("linear")
    assert not store.remove("linear")


async def test_a_new_key_of_the_replicas_seals_what_the_one_before_sealed(redis: RedisServer) -> None:
    store_of(redis).write("grant", "linear", "u", SECRET)
    newer = new_key()
    with pytest.raises(GatewayFailure, match=r"another key than state\.key has"):
        store_of(redis, newer).check()
    changing = store_of(redis, newer, previous_key=KEY)
    changing.check()
    assert await changing.rotate() == 1
    found = store_of(redis, newer).read("grant", "linear", "u")
    assert found is not None
    assert (found.data, found.generation) == (SECRET, 1)


async def test_one_replica_holds_the_credentials_and_one_that_died_frees_them(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = store_of(redis), store_of(redis)
    async with one.locked("linear", "alice"), one.locked("linear", "bob"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), other.locked("linear", "alice"):
                raise AssertionError("held twice")
    async with asyncio.timeout(1), other.locked("linear", "alice"):
        pass
    monkeypatch.setattr(module, "LOCK_S", 0.5)
    async with one.locked("linear", "alice"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.2), other.locked("linear", "alice"):
                raise AssertionError("its holder lives")
        lock = next(name for name in redis.keys() if "lock" in name)  # noqa: SIM118 - no mapping
    redis.command("SET", lock, "somebody who was killed", "PX", "500")
    async with asyncio.timeout(3), other.locked("linear", "alice"):
        pass


def test_a_store_that_is_away_is_said_and_comes_back(redis: RedisServer) -> None:
    store = store_of(redis)
    store.write("grant", "linear", "u", SECRET)
    known = store.read("grant", "linear", "u")
    redis.suspend()
    begun = time.monotonic()
    assert store.read("grant", "linear", "u") == known, "a token that is known is not lost"
    for attempt in (lambda: store.read("grant", "linear", "x"), lambda: store.write("grant", "linear", "u", b"2")):
        with pytest.raises(GatewayFailure) as refused:
            attempt()
        assert refused.value.kind is Kind.STATE_UNAVAILABLE
    assert time.monotonic() - begun < 3, "one answer is waited for, and not one each time"
    redis.stop()
    redis.start()
    eventually_blocking(lambda: store.read("grant", "linear", "u") is None)  # this one keeps nothing on disk


async def test_all_of_it_works_in_a_cluster(tmp_path: Path) -> None:
    bus = RedisServer(tmp_path)  # only for a free port
    redis = RedisServer(tmp_path, arguments=("--cluster-enabled", "yes", "--cluster-port", str(bus.port))).start()
    try:
        redis.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        eventually_blocking(lambda: b"cluster_state:ok" in redis.command("CLUSTER", "INFO"))
        store = store_of(redis)
        async with store.locked("linear"):
            assert store.write("grant", "linear", "u", SECRET, replaces=0) == 1
        assert await store.rotate() == 1
        assert store.rows("grant") == [store.read("grant", "linear", "u")]
        assert store.remove("linear")
    finally:
        redis.stop()
