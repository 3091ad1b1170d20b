"""A store that raises, hangs, lies or comes back: whoever asks gets an answer, and what was dropped stays gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from pactgate.state import guarded
from pactgate.state.guarded import FAULTS_IN_A_ROW, MAX_UNANSWERED, REST_S, GuardedStore
from pactgate.state.ports import MISS, Lookup, StoreFailure
from tests.support.caches import BrokenStore, cache_of
from tests.support.remote_cache import RemoteStore

BROKEN = [
    StoreFailure("refused"),
    RuntimeError("a bug"),
    OSError("no route"),
    TimeoutError(),
    KeyError("k"),
    TypeError(),
    MemoryError(),
]


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def keep(store: GuardedStore, key: bytes = b"k", value: bytes = b"v", tag: str = "files") -> None:
    store.keep(key, value, ttl_ms=1000, tag=tag, mark=b"m")


async def looked(store: GuardedStore, key: bytes = b"k", tag: str = "files") -> Lookup:
    found = store.look(key, tag)
    return found if isinstance(found, Lookup) else await asyncio.wait_for(_waited(found), 5)


async def _waited(found: Awaitable[Lookup]) -> Lookup:
    return await found


def test_a_store_in_this_process_answers_without_a_wait() -> None:
    store = GuardedStore(cache_of())
    assert store.look(b"k", "files") == MISS
    keep(store)
    found = store.look(b"k", "files")
    assert isinstance(found, Lookup)
    assert (found.value, found.mark) == (b"v", b"m")
    store.drop("files")
    assert store.look(b"k", "files") == MISS
    assert store.faults == 0


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("error", BROKEN, ids=repr)
@pytest.mark.parametrize("where", [("get",), ("put",), ("drop",), ("get", "put", "drop")], ids="+".join)
def test_a_store_that_raises_is_a_counted_miss(error: Exception, where: tuple[str, ...]) -> None:
    told: list[tuple[str, str]] = []
    store = GuardedStore(BrokenStore(error, *where), on_fault=lambda *fault: told.append(fault))
    keep(store)
    found = store.look(b"k", "files")
    assert isinstance(found, Lookup)
    assert found.hit is not bool({"get", "put"} & set(where))
    store.drop("files")
    assert store.look(b"k", "files") == MISS
    assert store.faults == len(told) > 0
    assert {operation for operation, _ in told} <= set(where)
    assert told[0][1] == repr(error)


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("operation", ["get", "put", "drop"])
async def test_a_remote_store_that_hangs_is_a_counted_miss(operation: str) -> None:
    remote = RemoteStore(hangs={operation})
    store = GuardedStore(remote, patience_s=0.01)
    keep(store)
    await remote.quiet()
    found = await looked(store)
    assert found.hit is (operation == "drop")
    store.drop("files")
    assert await looked(store) == MISS
    await until(lambda: store.faults > 0)
    await store.close()
    assert not store._unanswered


@pytest.mark.requirement("S1/XC-002")
async def test_a_remote_store_that_ignores_its_cancellation_holds_nobody() -> None:
    remote = RemoteStore(hangs={"get"}, ignores_cancellation=True)
    store = GuardedStore(remote, patience_s=0.01)
    assert await looked(store) == MISS
    assert (store.faults, len(store._unanswered)) == (1, 1)
    remote.release.set()
    await until(lambda: not store._unanswered)


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("error", [*BROKEN, asyncio.CancelledError()], ids=repr)
async def test_a_remote_store_that_raises_is_a_counted_miss(error: BaseException) -> None:
    store = GuardedStore(RemoteStore(raises=error))
    assert await looked(store) == MISS
    keep(store)
    await until(lambda: store.faults == 2)


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("nonsense", [None, b"bytes", {"hit": True}])
async def test_nonsense_is_a_counted_miss(nonsense: Any) -> None:
    store = GuardedStore(RemoteStore(says=nonsense))
    assert await looked(store) == MISS
    assert store.faults == 1


@pytest.mark.requirement("S1/XC-002")
async def test_an_answer_that_can_not_be_waited_for_is_a_counted_miss() -> None:
    class Odd(BrokenStore):
        def get(self, key: bytes) -> Any:
            return 5

    store = GuardedStore(Odd(ValueError()))
    assert await looked(store) == MISS
    assert store.faults == 1


@pytest.mark.requirement("S1/XC-002")
def test_a_store_that_keeps_failing_is_left_alone_for_a_moment_and_then_asked_again() -> None:
    clock, broken = Seconds(), BrokenStore(OSError("gone"), "get", "put", "drop")
    store = GuardedStore(broken, clock=clock)
    for _ in range(10):
        assert store.look(b"k", "files") == MISS
    assert len(broken.asked) == store.faults == FAULTS_IN_A_ROW
    clock.now += REST_S
    store.look(b"k", "files")
    store.look(b"k", "files")
    assert len(broken.asked) == FAULTS_IN_A_ROW + 1
    clock.now += REST_S
    broken.where = ()
    keep(store)
    assert store.look(b"k", "files") != MISS
    broken.where = ("get",)
    for _ in range(FAULTS_IN_A_ROW - 1):
        store.look(b"k", "files")
    broken.where = ()
    assert store.look(b"k", "files") != MISS, "a failure now and then is no reason to rest"


@pytest.mark.requirement("S1/XC-002")
def test_what_could_not_be_dropped_is_not_served_until_it_could() -> None:
    clock, broken = Seconds(), BrokenStore(OSError("gone"))
    store = GuardedStore(broken, clock=clock)
    keep(store)
    keep(store, b"other", tag="crm")
    broken.where = ("drop",)
    store.drop("files")
    assert store.look(b"k", "files") == MISS
    assert store.look(b"other", "crm") != MISS, "another server's entries are as good as before"
    keep(store)
    broken.where = ()
    clock.now += REST_S
    assert store.look(b"k", "files") == MISS
    assert broken.entries == {}
    keep(store)
    assert store.look(b"k", "files") != MISS


async def test_a_remote_drop_hides_the_entries_at_once_and_for_good() -> None:
    remote = RemoteStore()
    store = GuardedStore(remote)
    keep(store)
    await remote.quiet()
    assert (await looked(store)).hit
    store.drop("files")
    assert store.look(b"k", "files") == MISS, "before the store has even heard of it"
    await remote.quiet()
    await until(lambda: not store._unanswered)
    assert not (await looked(store)).hit
    keep(store, value=b"new")
    await remote.quiet()
    assert (await looked(store)).value == b"new"


async def test_a_remote_drop_that_failed_is_tried_again_by_the_next_who_asks() -> None:
    remote = RemoteStore(raises=StoreFailure("away"))
    store = GuardedStore(remote)
    store.drop("files")
    await until(lambda: store.faults == 1)
    await until(lambda: not store._unanswered)
    remote.raises = None
    assert store.look(b"k", "files") == MISS
    await until(lambda: not store._undropped)
    assert remote.asked.count("drop") == 2


async def test_of_two_remote_drops_the_later_one_counts() -> None:
    remote = RemoteStore(hangs={"drop"})
    store = GuardedStore(remote, patience_s=0.01)
    store.drop("files")
    await until(lambda: "drop" in remote.asked)
    remote.hangs = set()
    store.drop("files")
    await until(lambda: not store._undropped)
    await until(lambda: not store._unanswered)
    assert not store._undropped


async def test_questions_without_an_answer_are_bounded() -> None:
    remote = RemoteStore(hangs={"put"}, ignores_cancellation=True)
    store = GuardedStore(remote, patience_s=5)
    for number in range(MAX_UNANSWERED * 2):
        keep(store, b"%d" % number)
        await asyncio.sleep(0)
    assert len(store._unanswered) <= MAX_UNANSWERED + 1
    assert store.look(b"k", "files") == MISS
    assert remote.asked.count("get") == 0
    remote.release.set()
    await until(lambda: not store._unanswered)


async def test_whoever_is_cancelled_while_waiting_for_a_store_is_cancelled() -> None:
    remote = RemoteStore(hangs={"get"})
    store = GuardedStore(remote, patience_s=5)
    asking = asyncio.create_task(looked(store))
    await until(lambda: "get" in remote.asked)
    asking.cancel()
    await asyncio.wait({asking}, timeout=5)
    assert asking.cancelled()
    await until(lambda: not store._unanswered)
    assert store.faults == 0


async def test_closing_ends_what_is_unanswered_and_does_not_wait_for_the_stubborn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded, "CLOSING_S", 0.01)
    remote = RemoteStore(hangs={"put"}, ignores_cancellation=True)
    store = GuardedStore(remote, patience_s=5)
    keep(store)
    await until(lambda: "put" in remote.asked)
    await asyncio.wait_for(store.close(), 5)
    remote.release.set()
    await until(lambda: not store._unanswered)
    await asyncio.wait_for(store.close(), 5)


async def until(holds: Any) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)
