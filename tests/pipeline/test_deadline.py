"""One timer for a request, standing still while its caller is asked."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.pipeline.deadline import Deadline
from tests.support.asking import person_thinks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def ended(deadline: Deadline, waiting: asyncio.Task[None]) -> bool:
    """Whether the deadline ended the wait, rather than the wait itself."""
    try:
        await waiting
    except asyncio.CancelledError:
        assert deadline.ended_it()
        return True
    finally:
        deadline.close()
    return False


async def test_a_wait_ends_at_its_limit_and_not_before() -> None:
    assert await ended(Deadline(20, 1000), asyncio.create_task(for_ever()))
    assert not await ended(Deadline(5000, 1000), asyncio.create_task(asyncio.sleep(0)))


async def test_a_limit_can_be_moved_and_still_counts_from_the_beginning() -> None:
    sooner, later = Deadline(5000, 1000), Deadline(10, 1000)
    sooner.move(10)
    later.move(5000)
    assert (sooner.limit_ms, later.limit_ms) == (10, 5000)
    assert await ended(sooner, asyncio.create_task(for_ever()))
    assert not await ended(later, asyncio.create_task(person_thinks(0.03)))


async def test_time_of_the_caller_counts_only_against_the_time_for_input() -> None:
    deadline = Deadline(40, 5000)

    async def asks() -> None:
        for _ in range(3):
            with deadline.waiting_for_caller(), deadline.waiting_for_caller():
                assert deadline.is_waiting_for_caller
                await person_thinks(0.03)
        assert not deadline.is_waiting_for_caller

    assert not await ended(deadline, asyncio.create_task(asks()))


async def test_after_the_pause_the_rest_of_the_limit_runs() -> None:
    deadline = Deadline(20, 5000)

    async def asks() -> None:
        with deadline.waiting_for_caller():
            await person_thinks(0.03)
        await for_ever()

    assert await ended(deadline, asyncio.create_task(asks()))
    assert not deadline.is_waiting_for_caller


async def test_the_time_for_input_is_one_sum_over_all_questions() -> None:
    deadline, rounds = Deadline(5000, 50), 0

    async def asks() -> None:
        nonlocal rounds
        while True:
            with deadline.waiting_for_caller():
                await person_thinks(0.02)
            rounds += 1

    assert await ended(deadline, asyncio.create_task(asks()))
    assert deadline.is_waiting_for_caller
    assert 1 <= rounds <= 3


async def test_a_question_that_outlives_its_request_sets_no_timer() -> None:
    deadline = Deadline(5000, 10)
    waiting = deadline.waiting_for_caller()
    waiting.__enter__()
    deadline.close()
    waiting.__exit__(None, None, None)
    await person_thinks(0.02)


async def test_a_cancellation_from_elsewhere_is_not_its_own() -> None:
    async def waits() -> None:
        deadline = Deadline(5000, 1000)
        try:
            await for_ever()
        finally:
            assert not deadline.ended_it()
            deadline.close()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
