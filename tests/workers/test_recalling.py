"""Kept answers in several workers: who is told of a write, and who has to wait for it."""

from __future__ import annotations

import asyncio
import mmap
from types import SimpleNamespace
from typing import Any

import pytest

from pactgate.config.cache import Cache
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.policy.cache import Keys
from pactgate.policy.recall import Lease
from pactgate.state.guarded import GuardedStore
from pactgate.state.memory import MemoryCache
from pactgate.state.ports import Lookup
from pactgate.workers.homes import Place
from pactgate.workers.recalling import Confirming, CrewRecall

KEYS = Keys(b"key", None)


class Workers:
    """Two workers in one process."""

    def __init__(self) -> None:
        self.marks = mmap.mmap(-1, 2)
        self.told: list[str] = []
        self.may_confirm = asyncio.Event()
        self.may_confirm.set()
        self.fails = False
        self.recalls = [
            CrewRecall(GuardedStore(MemoryCache(Cache())), Place(index, 2), self.marks, self._elsewhere)
            for index in range(2)
        ]

    async def _elsewhere(self, server: str) -> None:
        self.told.append(server)
        await self.may_confirm.wait()
        if self.fails:
            raise GatewayFailure(Kind.CONNECTION_LOST, "no answer")
        self.recalls[1].drop_here(server)

    def keep(self, worker: int, value: bytes = b"kept") -> None:
        lease = self.recalls[worker].ask(KEYS, "files")
        assert isinstance(lease, Lease)
        lease.keep(value, ttl_ms=0)

    def kept(self, worker: int) -> bytes | None:
        found = self.recalls[worker].ask(KEYS, "files")
        if isinstance(found, Lease):
            found.decline()
            return None
        assert isinstance(found, Lookup)
        return found.value


class Log:
    """An audit log that writes when it is told to."""

    def __init__(self) -> None:
        self.written: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def require(self) -> None:
        raise GatewayFailure(Kind.AUDIT_UNAVAILABLE, "no disk")

    def keep(self, ctx: Any, params: bytes | None) -> Any:
        return self.written


def context(*, is_cached: bool = False, server: str = "files") -> Any:
    return SimpleNamespace(tool=SimpleNamespace(server=server), is_cached=is_cached)


async def write(recall: CrewRecall) -> None:
    recall.drop_server("files")
    waited_for = Confirming(recall, None).keep(context(), None)
    assert waited_for is None or await waited_for is None


async def test_nobody_is_told_while_nobody_else_keeps_anything() -> None:
    workers = Workers()
    workers.keep(0)
    await write(workers.recalls[0])
    assert workers.told == []
    assert workers.kept(0) is None


async def test_a_writer_is_answered_only_when_the_others_have_dropped_what_they_kept() -> None:
    workers = Workers()
    workers.keep(1)
    workers.may_confirm.clear()
    writing = asyncio.create_task(write(workers.recalls[0]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert workers.told == ["files"]
    assert not writing.done()
    workers.may_confirm.set()
    await writing
    assert workers.kept(1) is None


async def test_one_call_under_way_elsewhere_is_enough_to_be_told() -> None:
    workers = Workers()
    lease = workers.recalls[1].ask(KEYS, "files")
    assert isinstance(lease, Lease)
    await write(workers.recalls[0])
    lease.keep(b"from before the write", ttl_ms=0)
    assert workers.kept(1) is None


async def test_calls_to_other_servers_and_kept_answers_do_not_wait() -> None:
    workers = Workers()
    workers.keep(1)
    workers.may_confirm.clear()
    recall = workers.recalls[0]
    recall.drop_server("files")
    confirming = Confirming(recall, None)
    assert confirming.keep(context(server="mail"), None) is None
    assert confirming.keep(context(is_cached=True), None) is None
    assert confirming.keep(SimpleNamespace(tool=None, is_cached=False), None) is None  # type: ignore[arg-type]
    workers.may_confirm.set()
    await asyncio.wait(tuple(recall.telling("files")))
    assert confirming.keep(context(), None) is None


async def test_an_answer_waits_for_its_record_too_and_is_held_back_without() -> None:
    workers = Workers()
    workers.keep(1)
    log = Log()
    confirming = Confirming(workers.recalls[0], log)
    assert confirming.keep(context(), None) is log.written
    workers.recalls[0].drop_server("files")
    both = confirming.keep(context(), None)
    assert both is not None
    log.written.set_result("the disk is full")
    assert await both == "the disk is full"
    with pytest.raises(GatewayFailure, match="no disk"):
        confirming.require()


async def test_a_worker_that_does_not_confirm_costs_no_call_and_is_counted() -> None:
    workers = Workers()
    workers.keep(1)
    workers.fails = True
    await write(workers.recalls[0])
    assert workers.recalls[0].unconfirmed_count == 1
