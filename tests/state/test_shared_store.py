"""The store outside the process: bounded, and asked rarely when it does not answer. With a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pactgate.core.events import Event, StoreFailed, StoreRestored
from pactgate.state.leased_rates import LeasedRateStore
from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.owned_ids import new_replica_id
from pactgate.state.ports import Quota, RateRefusal
from pactgate.state.replica_set import ReplicaSet
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import WAIT_S, SharedStore, StoreScript, StoreUnavailableError
from pactgate.state.single_use import SingleUse
from tests.support.certificates import tls_pair
from tests.support.eventually import eventually
from tests.support.redis_server import RedisServer, needs_redis, pretending, slowed

pytestmark = [pytest.mark.interop, needs_redis]

ECHO = StoreScript("return ARGV[1]")


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest_asyncio.fixture
async def store(redis: RedisServer, told: Told) -> AsyncIterator[SharedStore]:
    store = SharedStore(redis.url, "test", told.events.append)
    yield store
    await store.close()


async def test_nothing_is_asked_before_the_store_has_answered_once(store: SharedStore) -> None:
    with pytest.raises(StoreUnavailableError):
        await store.run(ECHO, "k", "x")
    assert await store.probe()
    assert await store.run(ECHO, "k", "x") == b"x"


async def test_a_store_that_hangs_costs_each_call_under_way_100_ms_and_later_ones_nothing(
    store: SharedStore, redis: RedisServer, told: Told
) -> None:
    await store.probe()
    redis.suspend()
    begun = time.monotonic()
    found = await asyncio.gather(*(store.run(ECHO, "k", "x") for _ in range(50)), return_exceptions=True)
    assert all(isinstance(one, StoreUnavailableError) for one in found)
    assert time.monotonic() - begun < WAIT_S + 0.3
    begun = time.monotonic()
    for _ in range(100):
        with pytest.raises(StoreUnavailableError):
            await store.run(ECHO, "k", "x")
    assert time.monotonic() - begun < 1.0, "to wait for each of them would take ten seconds"
    redis.resume()
    await eventually(store.probe)
    assert await store.run(ECHO, "k", "x") == b"x"
    assert told.kinds() == ["StoreRestored", "StoreFailed", "StoreRestored"]


async def test_a_request_that_is_no_task_yet_can_ask(store: SharedStore) -> None:
    assert await store.probe()
    first: list[object] = []
    asking = store.run(ECHO, "k", "x")
    asyncio.get_running_loop().call_soon(lambda: first.append(asking.send(None)))  # as the pipeline drives a request
    await eventually(lambda: first)
    assert isinstance(first[0], asyncio.Future)
    asking.close()


async def test_a_store_that_is_restarted_is_found_again(store: SharedStore, redis: RedisServer, told: Told) -> None:
    await store.probe()
    redis.stop()
    with pytest.raises(StoreUnavailableError):
        await store.run(ECHO, "k", "x")
    assert not await store.probe()
    redis.start()
    await eventually(store.probe)
    assert await store.run(ECHO, "k", "x") == b"x"
    assert [type(event) for event in told.events[-2:]] == [StoreFailed, StoreRestored]


async def test_a_store_50_ms_away_is_used_and_one_200_ms_away_is_not(redis: RedisServer) -> None:
    for delay_s, is_used in ((0.05, True), (0.2, False)):
        async with slowed(redis.port, delay_s) as port:
            store = SharedStore(f"redis://127.0.0.1:{port}/0", "test", lambda event: None)
            assert await store.probe() is is_used
            if is_used:
                assert await store.run(ECHO, "k", "x") == b"x"
            await store.close()


@pytest.mark.parametrize(
    "garbage",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":notanumber\r\n", b"*1\r\n" * 5000, b"$2000000000\r\nx", None],
)
async def test_what_is_no_redis_is_an_unavailable_store(garbage: bytes | None) -> None:
    async with pretending(lambda data: garbage) as url:
        store = SharedStore(url, "test", lambda event: None)
        assert not await store.probe()
        assert store.trouble
        await store.close()


async def test_the_keys_of_every_script_are_those_of_one_slot_of_a_cluster(tmp_path: Path) -> None:
    bus = RedisServer(tmp_path)  # only for a free port
    redis = RedisServer(tmp_path, arguments=("--cluster-enabled", "yes", "--cluster-port", str(bus.port))).start()
    redis.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    store, keys = SharedStore(redis.url, "test", lambda event: None), SealingKeys(bytes(32))
    await eventually(lambda: b"cluster_state:ok" in redis.command("CLUSTER", "INFO"))
    assert await store.probe(), store.trouble
    replicas = ReplicaSet(store, keys, new_replica_id(), lambda event: None)
    rates = LeasedRateStore(store, MemoryRateStore(), lambda subject, quota: f"rate:{subject}", refuses=True)
    await replicas.announce("127.0.0.1:1")
    replicas.may_cache("files")
    await replicas.look_again()
    waits = rates.take("ada", Quota("q", rpm=60, burst=20))
    assert waits is not None
    assert not isinstance(waits, RateRefusal)
    assert await waits is None
    await rates.close()
    assert await SingleUse(store, keys, refuses=True, store_born_at=lambda: 0.0).take("x", 1.0, 1.0)
    await replicas.stop()
    assert store.is_available, store.trouble
    await store.close()
    redis.stop()


async def test_a_redis_that_takes_no_writes_is_unavailable_until_it_does(redis: RedisServer, tmp_path: Path) -> None:
    copy = RedisServer(tmp_path, arguments=("--replicaof", "127.0.0.1", str(redis.port))).start()
    store = SharedStore(copy.url, "test", lambda event: None)
    assert not await store.probe()
    assert "ReadOnly" in store.trouble
    copy.command("REPLICAOF", "NO", "ONE")
    await eventually(store.probe)
    await store.close()
    copy.stop()


async def test_a_store_that_answers_with_an_error_is_unavailable(store: SharedStore, redis: RedisServer) -> None:
    await store.probe()
    with pytest.raises(StoreUnavailableError):
        await store.run(StoreScript("this is no Lua"), "k")
    assert store.trouble


async def test_a_user_with_rights_to_our_keys_alone_is_enough_over_tls(tmp_path: Path) -> None:
    tls_pair(tmp_path)
    certificate = str(tmp_path / "certificate.pem")
    place = RedisServer(tmp_path)  # only for a free port
    tls = ("--tls-port", str(place.port), "--tls-cert-file", certificate, "--tls-key-file", str(tmp_path / "key.pem"))
    rights = "gateway on >longpassword ~test:* -@all +eval +ping +hello +client +select +@write +@read +time"
    server = RedisServer(tmp_path, arguments=(*tls, "--tls-auth-clients", "no", "--user", *rights.split())).start()
    try:
        address = f"gateway:longpassword@127.0.0.1:{place.port}/0?ssl_ca_certs={certificate}"
        allowed = SharedStore(f"rediss://{address}", "test", lambda event: None)
        other = SharedStore(f"rediss://{address}", "other", lambda event: None)
        touch = StoreScript("return redis.call('SET', KEYS[1], '1', 'PX', 1000)")
        assert await allowed.probe(), allowed.trouble
        assert await allowed.run(touch, "k") == b"OK"
        assert not await other.probe()
        assert "NoPermission" in other.trouble
        await allowed.close()
        await other.close()
    finally:
        server.stop()
