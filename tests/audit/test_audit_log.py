"""Calls and their records: no answer before its record, no call where none can be written, nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.audit import audit_log as log_module
from pactgate.audit import chain_file, retrying_writer
from pactgate.audit.audit_log import AuditLog
from pactgate.audit.verify import verify
from pactgate.config.sections.audit import AuditSection
from pactgate.core.context import ExecutionContext
from pactgate.core.events import AuditFailed, AuditRecovered, CacheFailed, ConfigurationChanged, Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.masking import Mask
from tests.audit.logs import fill_the_disk, said, stall_the_disk
from tests.support.callers import context
from tests.support.eventually import eventually

WAIT_S = 5.0


class Opened:
    def __init__(self, log: AuditLog, path: Path, events: list[Event]) -> None:
        self.log = log
        self.path = path
        self.events = events

    def sealed(self, failure: GatewayFailure | None = None) -> ExecutionContext:
        ctx = context()
        if failure is not None:
            ctx.fail(failure)
        ctx.seal(0.001)
        return ctx

    async def keep(self, ctx: ExecutionContext | None = None) -> str | None:
        kept = self.log.keep(ctx or self.sealed(), b'{"arguments":{}}')
        assert kept is not None
        return await asyncio.wait_for(kept, WAIT_S)

    def ids(self) -> list[str]:
        return [line["requestId"] for line in said(self.path) if line["kind"] == "call"]

    async def until(self, condition: Callable[[], bool]) -> None:
        await eventually(condition)


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Opened]:
    path, events = folder / "audit.jsonl", list[Event]()
    log = AuditLog(AuditSection(file=str(path), **settings), version="1", masking=Mask().start, emit=events.append)
    await log.start()
    try:
        yield Opened(log, path, events)
    finally:
        await log.stop()


async def test_who_has_waited_finds_the_record_in_the_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as audit:
        contexts = [audit.sealed() for _ in range(300)]
        for ctx in contexts[:3]:
            assert await audit.keep(ctx) is None
            assert audit.ids()[-1] == ctx.request_id
        assert await asyncio.gather(*map(audit.keep, contexts[3:])) == [None] * 297
        assert audit.ids() == [ctx.request_id for ctx in contexts]
    assert said(tmp_path / "audit.jsonl")[-1]["kind"] == "closed"
    assert verify([tmp_path / "audit.jsonl"]).is_valid


async def test_a_changed_setting_is_recorded_before_the_call_that_changed_it_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path) as audit:
        audit.log.emit(CacheFailed("get", "is no change"))
        audit.log.emit(ConfigurationChanged("ops", "limits.maxArraySize", "100", "7", "c6a355212ea4", False))
        assert await audit.keep() is None
        _, change, call = said(audit.path)
        assert (change["kind"], change["path"], change["new"]) == ("change", "limits.maxArraySize", "7")
        assert call["kind"] == "call"
    assert verify([tmp_path / "audit.jsonl"]).is_valid


async def test_nobody_waits_for_the_record_of_a_call_that_was_given_up_and_it_is_written_all_the_same(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as audit:
        ctx = audit.sealed(GatewayFailure(Kind.CANCELLED, "gone"))
        assert audit.log.keep(ctx, None) is None
    (line,) = [line for line in said(tmp_path / "audit.jsonl") if line["kind"] == "call"]
    assert (line["requestId"], line["outcome"]) == (ctx.request_id, "cancelled")


@pytest.fixture
def tried_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full is tried again sooner."""
    for module in (log_module, retrying_writer):
        monkeypatch.setattr(module, "RETRY_S", 0.5)


@pytest.mark.usefixtures("tried_soon")
async def test_on_a_full_disk_answers_are_held_back_and_no_further_call_begins(tmp_path: Path) -> None:
    async with opened(tmp_path) as audit:
        audit.log.require()
        fill_the_disk(audit.path)
        assert await audit.keep() == "No space left on device"
        with pytest.raises(GatewayFailure) as caught:
            audit.log.require()
        assert (caught.value.kind, caught.value.verdict) == (Kind.AUDIT_UNAVAILABLE, "did_not_run")
        assert "No space left on device" in caught.value.message
        refused = audit.sealed(caught.value)
        assert audit.log.keep(refused, None) is None
        await audit.until(lambda: audit.log.trouble is None)
        audit.log.require()
        assert await audit.keep() is None
        assert len(audit.ids()) == 3
    assert [type(event) for event in audit.events] == [AuditFailed, AuditRecovered]
    assert verify([tmp_path / "audit.jsonl"]).is_valid


@pytest.mark.usefixtures("tried_soon")
async def test_on_a_full_disk_calls_go_on_where_the_operator_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, on_failure="continue") as audit:
        fill_the_disk(audit.path)
        assert await audit.keep() is None
        audit.log.require()
        assert audit.ids() == []
        await audit.until(lambda: audit.log.trouble is None)
        assert len(audit.ids()) == 1


async def test_a_disk_that_does_not_answer_holds_up_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "STALLED_S", 0.05)
    monkeypatch.setattr(log_module, "RETRY_S", 0.02)
    async with opened(tmp_path) as audit:
        read_end = stall_the_disk(audit.path)
        assert await audit.keep() == "the disk does not answer"
        with pytest.raises(GatewayFailure, match="does not answer"):
            audit.log.require()
        assert os.read(read_end, 2**20)
        await audit.until(lambda: audit.log.trouble is None)
        assert await audit.keep() is None
        os.close(read_end)
    assert [type(event) for event in audit.events][:2] == [AuditFailed, AuditRecovered]


async def test_stopping_is_bounded_even_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_END_S", 0.05)
    async with opened(tmp_path) as audit:
        read_end = stall_the_disk(audit.path)
        audit.log.keep(audit.sealed(), None)
        async with asyncio.timeout(WAIT_S):
            await audit.log.stop()
        thread = audit.log._thread
        os.close(read_end)
        assert thread is not None
        await asyncio.to_thread(thread.join, WAIT_S)


async def test_records_that_wait_are_bounded_and_the_rest_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_PENDING", 2)
    async with opened(tmp_path) as audit:
        kept = [audit.log.keep(audit.sealed(), None) for _ in range(4)]
        why = [await asyncio.wait_for(one, WAIT_S) for one in kept if one is not None]
        assert why == [None, None, *["too many records wait to be written"] * 2]
        assert await audit.keep() is None
    assert [line.get("lostCalls") for line in said(audit.path) if line["kind"] == "gap"] == [2]


async def test_a_log_that_can_not_be_used_says_what_to_do(tmp_path: Path) -> None:
    log = AuditLog(
        AuditSection(file=str(tmp_path / "no" / "audit.jsonl")),
        version="1",
        masking=Mask().start,
        emit=lambda event: None,
    )
    with pytest.raises(GatewayFailure, match="Check the folder") as caught:
        await log.start()
    assert caught.value.kind is Kind.INVALID_CONFIG
    await log.stop()


async def test_a_second_log_on_the_same_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_file, "_LOCK_WAIT_S", 0.1)
    async with opened(tmp_path) as audit:
        await audit.log.start()
        with pytest.raises(GatewayFailure, match="another gateway"):
            async with opened(tmp_path):
                pass
