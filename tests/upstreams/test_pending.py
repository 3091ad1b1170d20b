"""A future that goes on with its waiter on the spot, once; in a task it is a future like any other."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.messages import Response
from pactgate.upstreams.pending import PendingRequest, Resumable, in_task
from tests.support.stepping import Stepped

LOST = GatewayFailure(Kind.CONNECTION_LOST, "gone")
ANSWER = Response(7, b"{}")


def pending() -> PendingRequest:
    return PendingRequest(loop=asyncio.get_running_loop())


async def wait_for(made: Resumable[Any]) -> Any:
    return await made


SETTLE: list[Callable[[PendingRequest], None]] = [lambda made: made.fulfil(ANSWER), lambda made: made.refuse(LOST)]


@pytest.fixture
async def unhandled() -> list[dict[str, Any]]:
    """What asyncio complains about, such as an exception that was never retrieved."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    return told


@pytest.mark.parametrize("settle", SETTLE)
@pytest.mark.parametrize("again", SETTLE)
async def test_the_waiter_goes_on_once_on_the_spot_and_what_comes_later_changes_nothing(
    settle: Callable[[PendingRequest], None], again: Callable[[PendingRequest], None]
) -> None:
    made = pending()
    resumed: list[bool] = []
    made.resume = lambda: resumed.append(made.done())
    settle(made)
    assert resumed == [True], "the answer is there when the waiter goes on"
    before = made.exception() or made.result()
    made.resume = lambda: resumed.append(False)
    again(made)
    made.fulfil(Response(7, b"again"))
    assert resumed == [True]
    assert (made.exception() or made.result()) is before


async def test_a_coroutine_without_a_task_gets_the_answer_before_fulfil_returns() -> None:
    made = pending()
    stepped = Stepped(wait_for(made))
    assert stepped.awaited is made
    made.fulfil(ANSWER)
    assert stepped.told == [ANSWER]


async def test_a_coroutine_without_a_task_gets_the_failure_before_refuse_returns() -> None:
    made = pending()
    stepped = Stepped(wait_for(made))
    made.refuse(LOST)
    assert stepped.told == [LOST]


async def test_what_is_settled_before_anybody_waits_is_not_waited_for() -> None:
    made = pending()
    made.fulfil(ANSWER)
    assert Stepped(wait_for(made)).told == [ANSWER]


async def test_a_waiter_that_settles_the_next_request_is_not_resumed_for_it_twice() -> None:
    first, second = pending(), pending()

    async def both() -> list[Response]:
        return [await first, await second]

    stepped = Stepped(both())
    first.resume, goes_on = None, first.resume
    assert goes_on is not None

    def resume() -> None:
        goes_on()
        first.fulfil(Response(7, b"again"))

    first.resume = resume
    first.fulfil(ANSWER)
    assert stepped.awaited is second
    second.fulfil(ANSWER)
    assert stepped.told == [[ANSWER, ANSWER]]


# In a task


async def test_in_a_task_it_is_an_ordinary_future() -> None:
    answered, failed, done_before = pending(), pending(), pending()
    done_before.fulfil(ANSWER)
    tasks = [asyncio.create_task(wait_for(made)) for made in (answered, failed, done_before)]
    await asyncio.sleep(0)
    answered.fulfil(ANSWER)
    failed.refuse(LOST)
    assert not tasks[0].done(), "a task goes on in its own turn"
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results == [ANSWER, LOST, ANSWER]


async def test_cancelling_a_task_cancels_what_it_waits_for_and_a_late_answer_is_nothing() -> None:
    made = pending()
    task = asyncio.create_task(wait_for(made))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    made.fulfil(ANSWER)
    made.refuse(LOST)
    assert task.cancelled()
    assert made.cancelled()


async def test_several_can_wait_for_it_in_tasks_with_a_timeout() -> None:
    made: Resumable[int] = Resumable(loop=asyncio.get_running_loop())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asyncio.shield(made)
    made.fulfil(3)
    assert list(await asyncio.gather(wait_for(made), wait_for(made))) == [3, 3]


# Given up


async def test_what_is_abandoned_resumes_nobody() -> None:
    made = pending()
    resumed: list[int] = []
    made.resume = lambda: resumed.append(1)
    made.abandon()
    made.fulfil(ANSWER)
    made.refuse(LOST)
    assert resumed == []
    assert made.cancelled()


@pytest.mark.parametrize("when", ["refused before", "refused after", "fulfilled before", "twice", "never"])
async def test_a_failure_nobody_waits_for_any_more_is_no_warning(unhandled: list[dict[str, Any]], when: str) -> None:
    made = pending()
    if when == "refused before":
        made.refuse(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    if when == "fulfilled before":
        made.fulfil(ANSWER)
    made.abandon()
    if when == "refused after":
        made.refuse(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    if when == "twice":
        made.abandon()
    del made
    gc.collect()
    await asyncio.sleep(0)
    assert unhandled == []


async def test_a_failure_that_is_forgotten_without_being_abandoned_is_a_warning(
    unhandled: list[dict[str, Any]],
) -> None:
    """So that the test above shows something."""
    made = pending()
    made.refuse(GatewayFailure(Kind.CONNECTION_LOST, "gone"))
    del made
    gc.collect()
    assert len(unhandled) == 1


async def test_what_needs_a_task_is_not_waited_for_on_the_spot() -> None:
    stepped = Stepped(in_task())
    assert not stepped.waits_on_the_spot
    assert stepped.told == []
    await stepped.finish()
    assert stepped.told == [None]
