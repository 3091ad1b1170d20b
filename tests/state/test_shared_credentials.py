"""The rows of replicas in a real Redis: compared and written in one step, held by one, and what a store that is away does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pactgate.config.sections.state import StateSection
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.sign_ins import shared_credentials
from pactgate.state import shared_credentials as module
from pactgate.state.credential_keys import new_key
from pactgate.state.credential_store import CredentialStore
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis]
KEY = new_key()
SECRET = b"refresh-token-that-nobody-may-read"


def store_of(redis: RedisServer, key: str = KEY, previous_key: str | None = None) -> CredentialStore:
    return shared_credentials(StateSection(url=redis.url, key=key, previous_key=previous_key))


def test_replicas_read_what_one_wrote_and_the_store_does_not(redis: RedisServer, tmp_path: Path) -> None:
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
    assert SECRET not in b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_the_rows_of_one_principal_are_removed_alone(redis: RedisServer) -> None:
    store = store_of(redis)
    for name in ("u", "u alice", "u bob"):
        store.write("grant", "linear", name, SECRET)
    assert store.remove("linear", "alice")
    assert [row.name for row in store.rows("grant")] == ["u", "u bob"]
    assert store.remove("linear")
    assert not store.remove("linear")


def test_a_new_key_of_the_replicas_seals_what_the_one_before_sealed(redis: RedisServer) -> None:
    store_of(redis).write("grant", "linear", "u", SECRET)
    newer = new_key()
    with pytest.raises(GatewayFailure, match=r"another key than state\.key has"):
        store_of(redis, newer).check()
    changing = store_of(redis, newer, previous_key=KEY)
    changing.check()
    assert changing.rotate() == 1
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
    monkeypatch.setattr(module, "LOCK_S", 0.3)
    held = one.locked("linear", "alice")
    await held.__aenter__()  # and nobody gives it back
    async with asyncio.timeout(3), other.locked("linear", "alice"):
        pass
    await held.__aexit__(None, None, None)


def test_a_store_that_is_away_is_said_and_comes_back(redis: RedisServer) -> None:
    store = store_of(redis)
    store.write("grant", "linear", "u", SECRET)
    redis.stop()
    with pytest.raises(GatewayFailure) as refused:
        store.read("grant", "linear", "u")
    assert refused.value.kind is Kind.STATE_UNAVAILABLE
    redis.start()
    assert store.read("grant", "linear", "u") is None, "this one keeps nothing on disk"
