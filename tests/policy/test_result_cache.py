"""Equal calls at the same time share one; whoever leads may fail, be cancelled or vanish, and nobody is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pactgate.policy.cache_policy import CacheKeys
from pactgate.policy.result_cache import LeaderTicket, ResultCache
from pactgate.state.ports import CacheStore, Lookup
from tests.support.caches import BrokenStore, cache_of, holds
from tests.support.eventually import eventually

KEYS = CacheKeys(b"own", b"shared")
PRIVATE = CacheKeys(b"own")


class Upstream:
    """Counts the calls made to it; each waits until it is answered or broken."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[bytes]] = []

    async def call(self) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.calls.append(answer)
        return await answer

    async def called(self, times: int) -> None:
        await until(lambda: len(self.calls) >= times)
        await settled()
        assert len(self.calls) == times


def recall_over(store: CacheStore | None = None, on_fault: Callable[[str, str], None] | None = None) -> ResultCache:
    return ResultCache(store or cache_of(), on_fault)


async def ask(recall: ResultCache, keys: CacheKeys = PRIVATE, server: str = "files") -> Lookup | LeaderTicket:
    found = recall.ask(keys, server)
    return found if isinstance(found, Lookup | LeaderTicket) else await found


async def call(
    recall: ResultCache, upstream: Upstream, keys: CacheKeys = PRIVATE, *, is_cacheable: bool = True
) -> bytes:
    """A call as the pipeline makes it: recall, dispatch, remember; a failure declines, a cancellation hands over."""
    found = await ask(recall, keys)
    if isinstance(found, Lookup):
        return found.value
    try:
        value = await upstream.call()
        if is_cacheable:
            found.keep(value, ttl_ms=1000)
    except asyncio.CancelledError:
        found.transfer()
        raise
    finally:
        found.release()
    return value


def calls(recall: ResultCache, upstream: Upstream, count: int, **given: Any) -> list[asyncio.Task[bytes]]:
    return [asyncio.create_task(call(recall, upstream, **given)) for _ in range(count)]


async def outcomes(tasks: list[asyncio.Task[bytes]]) -> list[Any]:
    async with asyncio.timeout(5):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Any) -> None:
    await eventually(holds)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def store() -> CacheStore:
    return cache_of()


# Sharing.


@pytest.mark.requirement("S1/CACHE-005")
async def test_fifty_equal_calls_are_one_call(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 50)
    await upstream.called(1)
    upstream.calls[0].set_result(b"answer")
    assert await outcomes(tasks) == [b"answer"] * 50
    assert len(upstream.calls) == 1
    seen = recall.statistics()
    assert (seen.hits, seen.misses, seen.shared, seen.faults) == (0, 1, 49, 0)
    await settled()
    assert await outcomes(calls(recall, upstream, 1)) == [b"answer"]
    assert recall.statistics().hits == 1
    assert not recall._flights


@pytest.mark.requirement("S1/CACHE-005")
async def test_different_keys_and_servers_do_not_wait_for_each_other() -> None:
    recall = recall_over()
    leases = [await ask(recall, CacheKeys(key), server) for key in (b"a", b"b") for server in ("files", "crm")]
    for lease in leases:
        assert isinstance(lease, LeaderTicket)
        lease.release()
    assert not recall._flights


async def test_a_hit_costs_no_wait() -> None:
    recall = recall_over()
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"x", ttl_ms=0, mark=b"modern")
    found = recall.ask(PRIVATE, "files")
    assert isinstance(found, Lookup)
    assert (found.value, found.mark, found.remaining_ms) == (b"x", b"modern", None)


async def test_what_is_public_is_found_by_others_and_what_is_private_is_not(store: CacheStore) -> None:
    recall = recall_over(store)
    ann, bob = CacheKeys(b"ann", b"shared"), CacheKeys(b"bob", b"shared")
    lease = await ask(recall, ann)
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"private", ttl_ms=1000)
    await settled()
    lease = await ask(recall, bob)
    assert isinstance(lease, LeaderTicket), "not what Ann was told"
    lease.keep(b"public", ttl_ms=1000, is_public=True)
    await settled()
    found = await ask(recall, CacheKeys(b"cid", b"shared"))
    own = await ask(recall, ann)
    assert isinstance(found, Lookup)
    assert isinstance(own, Lookup)
    assert (found.value, own.value) == (b"public", b"private")


async def test_what_may_not_be_shared_is_not_even_if_it_says_public() -> None:
    memory = cache_of()
    lease = await ask(recall_over(memory), PRIVATE)
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"x", ttl_ms=1000, is_public=True)
    assert holds(memory, b"own")
    assert memory.statistics().entries == 1


async def test_a_result_too_large_to_keep_is_shared_all_the_same() -> None:
    recall, upstream = recall_over(cache_of(max_size_bytes=2000)), Upstream()
    tasks = calls(recall, upstream, 3)
    await upstream.called(1)
    upstream.calls[0].set_result(b"x" * 3000)
    assert await outcomes(tasks) == [b"x" * 3000] * 3
    assert isinstance(await ask(recall), LeaderTicket)


# Leaders that do not arrive.


@pytest.mark.requirement("S1/CACHE-005")
async def test_a_failed_leader_fails_nobody_else(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 5)
    await upstream.called(1)
    upstream.calls[0].set_exception(ConnectionResetError("gone"))
    await upstream.called(5)
    for number, answer in enumerate(upstream.calls[1:]):
        answer.set_result(b"%d" % number)
    leader, *others = await outcomes(tasks)
    assert isinstance(leader, ConnectionResetError)
    assert sorted(others) == [b"0", b"1", b"2", b"3"]
    assert not recall._flights


@pytest.mark.requirement("S1/CACHE-005")
async def test_an_outcome_that_may_not_be_kept_is_given_to_nobody_else(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 4, is_cacheable=False)
    await upstream.called(1)
    upstream.calls[0].set_result(b"for the leader")
    await upstream.called(4)
    for answer in upstream.calls[1:]:
        answer.set_result(b"own")
    assert await outcomes(tasks) == [b"for the leader", b"own", b"own", b"own"]
    assert isinstance(await ask(recall), LeaderTicket)


@pytest.mark.requirement("S1/CACHE-005")
async def test_a_cancelled_leader_is_followed_by_one_other(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 10)
    await upstream.called(1)
    tasks[0].cancel()
    await upstream.called(2)
    upstream.calls[1].set_result(b"second try")
    leader, *others = await outcomes(tasks)
    assert isinstance(leader, asyncio.CancelledError)
    assert others == [b"second try"] * 9
    assert not recall._flights


async def test_the_last_to_come_takes_over_because_it_has_the_most_time_left() -> None:
    recall = recall_over()
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    first, last = (asyncio.create_task(ask(recall)) for _ in range(2))
    await settled()
    lease.transfer()
    await settled()
    assert (first.done(), last.done()) == (False, True)
    taken = last.result()
    assert isinstance(taken, LeaderTicket)
    taken.keep(b"x", ttl_ms=1000)
    found = await first
    assert isinstance(found, Lookup)
    assert found.value == b"x"


@pytest.mark.requirement("S1/CACHE-005")
async def test_one_leader_after_another_may_be_cancelled_until_the_last_one_answers(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 6)
    await upstream.called(1)
    tasks[0].cancel()
    for number, task in enumerate(reversed(tasks[2:]), 2):
        await upstream.called(number)
        task.cancel()
    await upstream.called(6)
    upstream.calls[-1].set_result(b"at last")
    assert [await task for task in tasks[1:2]] == [b"at last"]
    assert sum(isinstance(one, asyncio.CancelledError) for one in await outcomes(tasks)) == 5
    assert not recall._flights


@pytest.mark.requirement("S1/CACHE-005")
async def test_a_follower_chosen_while_it_is_being_cancelled_passes_the_lead_on() -> None:
    recall, upstream = recall_over(), Upstream()
    tasks = calls(recall, upstream, 3)
    await upstream.called(1)
    tasks[0].cancel()
    await asyncio.sleep(0)
    tasks[2].cancel()
    await upstream.called(2)
    upstream.calls[1].set_result(b"x")
    assert await tasks[1] == b"x"
    assert tasks[2].cancelled()
    assert not recall._flights


async def test_a_follower_cancelled_together_with_its_answer_is_cancelled() -> None:
    recall = recall_over()
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    follower = asyncio.create_task(ask(recall))
    await settled()
    lease.keep(b"x", ttl_ms=1000)
    follower.cancel()
    await asyncio.wait({follower}, timeout=5)
    assert follower.cancelled()


async def test_a_follower_cancelled_together_with_the_refusal_of_its_leader_is_cancelled() -> None:
    recall = recall_over()
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    gone, other = (asyncio.create_task(ask(recall)) for _ in range(2))
    await settled()
    gone.cancel()
    lease.release()
    await asyncio.wait({gone, other}, timeout=5)
    assert gone.cancelled()
    assert isinstance(other.result(), LeaderTicket)


@pytest.mark.requirement("S1/CACHE-005")
async def test_a_follower_keeps_its_own_deadline(store: CacheStore) -> None:
    recall, upstream = recall_over(store), Upstream()
    tasks = calls(recall, upstream, 2)
    await upstream.called(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await call(recall, upstream)
    upstream.calls[0].set_result(b"x")
    assert await outcomes(tasks) == [b"x"] * 2


async def test_all_who_wait_may_go_away_and_the_leader_still_ends_well() -> None:
    recall, upstream = recall_over(), Upstream()
    tasks = calls(recall, upstream, 3)
    await upstream.called(1)
    for task in tasks[1:]:
        task.cancel()
    await settled()
    tasks[0].cancel()
    await asyncio.wait(tasks, timeout=5)
    assert not recall._flights
    assert isinstance(await ask(recall), LeaderTicket)


async def test_those_who_went_away_are_forgotten_before_the_leader_ends() -> None:
    recall, upstream = recall_over(), Upstream()
    tasks = calls(recall, upstream, 20)
    await upstream.called(1)
    for task in tasks[1:]:
        task.cancel()
    await asyncio.wait(tasks[1:], timeout=5)
    (flight,) = recall._flights["files"].values()
    assert not flight.waiting
    upstream.calls[0].set_result(b"x")
    assert await tasks[0] == b"x"
    assert recall.statistics().shared == 0


async def test_only_the_first_word_of_a_lease_counts() -> None:
    recall = recall_over()
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"first", ttl_ms=1000)
    lease.keep(b"second", ttl_ms=1000)
    lease.release()
    lease.transfer()
    found = recall.ask(PRIVATE, "files")
    assert isinstance(found, Lookup)
    assert found.value == b"first"


# Writes.


async def test_a_write_drops_what_is_kept_of_its_server_only(store: CacheStore) -> None:
    recall = recall_over(store)
    for server in ("files", "crm"):
        lease = await ask(recall, CacheKeys(server.encode()), server)
        assert isinstance(lease, LeaderTicket)
        lease.keep(b"x", ttl_ms=1000)
    await settled()
    recall.drop_server("files")
    assert isinstance(await ask(recall, CacheKeys(b"files"), "files"), LeaderTicket)
    assert isinstance(await ask(recall, CacheKeys(b"crm"), "crm"), Lookup)


@pytest.mark.requirement("S1/CACHE-005")
async def test_what_was_read_before_a_write_is_not_kept_after_it_nor_waited_for() -> None:
    recall, upstream = recall_over(), Upstream()
    early = calls(recall, upstream, 2)
    await upstream.called(1)
    recall.drop_server("files")
    late = calls(recall, upstream, 2)
    await upstream.called(2)
    upstream.calls[0].set_result(b"before the write")
    assert await outcomes(early) == [b"before the write"] * 2, "asked before the write had ended"
    upstream.calls[1].set_result(b"after the write")
    assert await outcomes(late) == [b"after the write"] * 2
    assert await call(recall, upstream) == b"after the write"
    assert len(upstream.calls) == 2


async def test_an_idempotent_write_drops_the_others_and_keeps_its_own_result() -> None:
    recall = recall_over()
    reader = recall.ask(CacheKeys(b"reader"), "files")
    assert isinstance(reader, LeaderTicket)
    reader.keep(b"old", ttl_ms=1000)
    writer = recall.ask(CacheKeys(b"writer"), "files")
    assert isinstance(writer, LeaderTicket)
    recall.drop_server("files", by=writer)
    writer.keep(b"written", ttl_ms=1000)
    assert isinstance(recall.ask(CacheKeys(b"writer"), "files"), Lookup)
    assert isinstance(recall.ask(CacheKeys(b"reader"), "files"), LeaderTicket)


async def test_of_two_writes_at_once_the_one_that_was_overtaken_is_not_kept() -> None:
    recall = recall_over()
    one, other = (recall.ask(CacheKeys(key), "files") for key in (b"one", b"other"))
    assert isinstance(one, LeaderTicket)
    assert isinstance(other, LeaderTicket)
    recall.drop_server("files", by=other)
    other.keep(b"2", ttl_ms=1000)
    recall.drop_server("files", by=one)
    one.keep(b"1", ttl_ms=1000)
    assert all(isinstance(recall.ask(CacheKeys(key), "files"), LeaderTicket) for key in (b"one", b"other"))


# Stores that fail.


@pytest.mark.requirement("S1/XC-002")
@pytest.mark.parametrize("where", [("get",), ("put",), ("drop",), ("get", "put", "drop")], ids="+".join)
@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError(5, "io"), MemoryError()], ids=repr)
async def test_calls_succeed_over_a_store_that_raises(error: Exception, where: tuple[str, ...]) -> None:
    recall, upstream = recall_over(BrokenStore(error, *where)), Upstream()
    for number in range(6):
        recall.drop_server("files")
        tasks = calls(recall, upstream, 3)
        await upstream.called(number + 1)
        upstream.calls[number].set_result(b"%d" % number)
        assert await outcomes(tasks) == [b"%d" % number] * 3
    assert recall.statistics().faults > 0


@pytest.mark.requirement("S1/XC-002")
async def test_a_fault_of_the_store_is_told_and_counted() -> None:
    told: list[tuple[str, str]] = []
    recall = recall_over(BrokenStore(ValueError("a bug"), "get", "put"), lambda *fault: told.append(fault))
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"x", ttl_ms=1000)
    assert told == [("get", "ValueError('a bug')"), ("put", "ValueError('a bug')")]
    assert recall.statistics().faults == 2


@pytest.mark.requirement("S1/XC-002", "S1/CACHE-006")
async def test_what_could_not_be_dropped_is_not_read_until_a_drop_succeeds() -> None:
    broken = BrokenStore(OSError(5, "io"))
    recall = recall_over(broken)
    lease = recall.ask(PRIVATE, "files")
    assert isinstance(lease, LeaderTicket)
    lease.keep(b"old", ttl_ms=1000)
    broken.where = ("drop",)
    recall.drop_server("files")
    missed = recall.ask(PRIVATE, "files")
    assert isinstance(missed, LeaderTicket)
    missed.release()
    broken.where = ()
    assert isinstance(recall.ask(PRIVATE, "files"), LeaderTicket)
    assert not broken.entries


@pytest.mark.requirement("S1/XC-002")
async def test_a_full_cache_refuses_nothing() -> None:
    memory = cache_of(max_entries=2)
    recall, upstream = recall_over(memory), Upstream()
    for number in range(5):
        answer = asyncio.create_task(call(recall, upstream, CacheKeys(b"%d" % number)))
        await upstream.called(number + 1)
        upstream.calls[number].set_result(b"%d" % number)
        assert await answer == b"%d" % number
    assert memory.statistics().entries == 2
