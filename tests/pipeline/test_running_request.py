"""A request is stepped by hand while it waits for its server, and runs in a task when it waits for anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pactgate.core.events import Event, InternalFailure
from pactgate.core.failures import GatewayFailure, Kind, Reply
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.pipeline.running_request import RunningRequest
from pactgate.upstreams.pending import Resumable, in_task
from tests.support.eventually import eventually

ANSWER = Reply(result=b"{}")


class Told:
    """A responder that notes what it was told, and fails where the test wants it."""

    def __init__(self, *, fails: bool = False) -> None:
        self.replies: list[Reply | None] = []
        self.was_broken = False
        self._fails = fails

    def done(self, reply: Reply | None) -> None:
        self.replies.append(reply)
        if self._fails:
            raise ZeroDivisionError("writer")

    def broken(self) -> None:
        self.was_broken = True


class Run:
    """One running request and everything that was noticed about it."""

    def __init__(self, work: Callable[[], Awaitable[Reply]], *, writer_fails: bool = False) -> None:
        self.events: list[Event] = []
        self.told = Told(fails=writer_fails)

        async def do() -> Reply:
            return await work()

        self.request = RunningRequest(self.told, FaultBarrier(self.events.append), do())
        self.request.step()

    @property
    def faults(self) -> list[str]:
        return [event.where for event in self.events if isinstance(event, InternalFailure)]

    async def until_told(self) -> None:
        await eventually(lambda: bool(self.told.replies))


def pending() -> Resumable[bytes]:
    return Resumable(loop=asyncio.get_running_loop())


async def test_a_request_that_waits_for_nothing_is_answered_before_start_returns() -> None:
    async def answers() -> Reply:
        return ANSWER

    assert Run(answers).told.replies == [ANSWER]


async def test_an_answer_resumes_the_request_on_the_spot_and_without_a_task() -> None:
    waits = pending()

    async def asks() -> Reply:
        return Reply(result=await waits)

    tasks = asyncio.all_tasks()
    run = Run(asks)
    assert (run.told.replies, asyncio.all_tasks()) == ([], tasks)
    waits.fulfil(b"[1]")
    assert run.told.replies == [Reply(result=b"[1]")]
    assert asyncio.all_tasks() == tasks


async def test_a_request_may_wait_for_its_server_several_times() -> None:
    first, second = pending(), pending()

    async def asks() -> Reply:
        return Reply(result=await first + await second)

    run = Run(asks)
    second.fulfil(b"b")
    assert run.told.replies == []
    first.fulfil(b"a")
    assert run.told.replies == [Reply(result=b"ab")]


async def test_a_failure_of_the_server_is_raised_where_the_request_waits() -> None:
    waits, caught = pending(), []

    async def asks() -> Reply:
        try:
            await waits
        except GatewayFailure as failure:
            caught.append(failure.kind)
        return ANSWER

    run = Run(asks)
    waits.refuse(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    assert (caught, run.told.replies) == ([Kind.CONNECTION_LOST], [ANSWER])


async def test_a_request_that_waits_for_anything_else_goes_on_in_a_task() -> None:
    async def waits() -> Reply:
        await in_task()
        assert asyncio.current_task() is not outer
        async with asyncio.timeout(5):  # which needs a task
            await asyncio.sleep(0)
        return ANSWER

    outer = asyncio.current_task()
    run = Run(waits)
    assert run.told.replies == []
    await run.until_told()
    assert run.told.replies == [ANSWER]


async def test_in_a_task_a_request_still_waits_for_its_server() -> None:
    waits = pending()

    async def asks() -> Reply:
        await in_task()
        return Reply(result=await waits)

    run = Run(asks)
    asyncio.get_running_loop().call_later(0.01, waits.fulfil, b"late")
    await run.until_told()
    assert run.told.replies == [Reply(result=b"late")]


@pytest.mark.parametrize("is_task", [False, True])
async def test_a_cancelled_request_cleans_up_where_it_waits_and_has_no_reply(is_task: bool) -> None:
    waits, cleaned = pending(), []

    async def asks() -> Reply:
        if is_task:
            await in_task()
        try:
            await waits
        except asyncio.CancelledError:
            cleaned.append(True)
            raise
        return ANSWER

    run = Run(asks)
    for _ in range(3):  # until the task waits for its server
        await asyncio.sleep(0)
    run.request.cancel()
    run.request.cancel()
    await run.until_told()
    assert (cleaned, run.told.replies) == ([True], [None])
    waits.fulfil(b"too late")
    assert run.told.replies == [None]


async def test_a_task_that_was_cancelled_before_its_first_step_is_told_so_inside() -> None:
    cleaned: list[bool] = []

    async def waits() -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)
        return ANSWER

    run = Run(waits)
    run.request.cancel()
    await run.until_told()
    assert (cleaned, run.told.replies) == ([True], [None])


@pytest.mark.parametrize("is_task", [False, True])
async def test_an_interruption_may_be_turned_into_a_reply(is_task: bool) -> None:
    waits = pending()

    async def asks() -> Reply:
        if is_task:
            await in_task()
        try:
            await waits
        except asyncio.CancelledError:
            return Reply(result=b"timeout")
        return ANSWER

    run = Run(asks)
    if is_task:
        await asyncio.sleep(0)
    run.request.interrupt()
    await run.until_told()
    assert run.told.replies == [Reply(result=b"timeout")]


@pytest.mark.parametrize("is_task", [False, True])
async def test_a_fault_of_the_writer_is_reported_and_reaches_nobody(is_task: bool) -> None:
    waits = pending()

    async def asks() -> Reply:
        if is_task:
            await in_task()
        return Reply(result=await waits)

    run = Run(asks, writer_fails=True)
    asyncio.get_running_loop().call_soon(waits.fulfil, b"")
    await eventually(lambda: run.told.was_broken)
    assert run.faults == ["reply"]


@pytest.mark.parametrize("is_task", [False, True])
async def test_a_fault_that_escapes_the_work_is_answered_as_internal(is_task: bool) -> None:
    async def breaks() -> Reply:
        if is_task:
            await in_task()
        raise ZeroDivisionError

    run = Run(breaks)
    await run.until_told()
    assert run.faults == ["kernel"]
    assert run.told.replies[0] is not None
    assert run.told.replies[0].error is not None
