"""Kept answers in several workers: who is told of a write, and who has to wait for it."""

from __future__ import annotations

import asyncio
import mmap
from typing import Any

from pactgate.config.cache import Cache
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.policy.cache import Keys
from pactgate.policy.recall import Lease
from pactgate.state.guarded import GuardedStore
from pactgate.state.memory import MemoryCache
from pactgate.state.ports import Lookup
from pactgate.workers.homes import Place
from pactgate.workers.recalling import CrewRecall

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


async def write(recall: CrewRecall) -> bytes:
    async def handler(ctx: Any, request: Any) -> bytes:
        recall.drop_server("files")
        return b"written"

    return await recall.confirmed(handler)(None, None)  # type: ignore[arg-type]


async def test_nobody_is_told_while_nobody_else_keeps_anything() -> None:
    workers = Workers()
    workers.keep(0)
    assert await write(workers.recalls[0]) == b"written"
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
    assert await writing == b"written"
    assert workers.kept(1) is None


async def test_one_call_under_way_elsewhere_is_enough_to_be_told() -> None:
    workers = Workers()
    lease = workers.recalls[1].ask(KEYS, "files")
    assert isinstance(lease, Lease)
    await write(workers.recalls[0])
    lease.keep(b"from before the write", ttl_ms=0)
    assert workers.kept(1) is None


async def test_others_do_not_wait_for_a_writer_that_does() -> None:
    workers = Workers()
    workers.keep(1)
    workers.may_confirm.clear()
    writing = asyncio.create_task(write(workers.recalls[0]))
    await asyncio.sleep(0)

    async def read(ctx: Any, request: Any) -> bytes:
        return b"read"

    assert await workers.recalls[0].confirmed(read)(None, None) == b"read"  # type: ignore[arg-type]
    assert not writing.done()
    workers.may_confirm.set()
    await writing


async def test_a_worker_that_does_not_confirm_costs_no_call_and_is_counted() -> None:
    workers = Workers()
    workers.keep(1)
    workers.fails = True
    assert await write(workers.recalls[0]) == b"written"
    assert workers.recalls[0].unconfirmed_count == 1
