"""The time limit of a request: it counts from the beginning, stands still while the client is asked, and leaves no timer."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.core.events import Event, InternalFailure
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.pipeline.deadline import Deadline, TimeoutQueue
from tests.support.asking import person_thinks
from tests.support.eventually import elapsed, eventually


class Interrupted:
    """What a deadline ends: it notes the order in which requests ran out."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.queue = TimeoutQueue(FaultBarrier(self.events.append))
        self.names: list[str] = []

    def deadline(self, name: str, limit_ms: int, input_ms: int = 1000) -> Deadline:
        return self.queue.begin(lambda: self.names.append(name), limit_ms, input_ms)


async def test_a_request_runs_out_at_its_limit_and_not_before() -> None:
    ran_out = Interrupted()
    short, long = ran_out.deadline("short", 20), ran_out.deadline("long", 60_000)
    await eventually(lambda: bool(ran_out.names))
    assert (ran_out.names, short.has_expired, long.has_expired) == (["short"], True, False)
    long.close()


async def test_requests_with_one_limit_run_out_in_their_order_and_closed_ones_do_not() -> None:
    ran_out = Interrupted()
    made = [ran_out.deadline(str(number), 20) for number in range(4)]
    made[1].close()
    await eventually(lambda: len(ran_out.names) == 3)
    assert ran_out.names == ["0", "2", "3"]


async def test_a_fault_while_one_request_ends_does_not_delay_the_others() -> None:
    ran_out = Interrupted()

    def breaks() -> None:
        raise ZeroDivisionError

    ran_out.queue.begin(breaks, 10, 1000)
    ran_out.deadline("after", 10)
    await eventually(lambda: bool(ran_out.names))
    ran_out.deadline("later", 10)
    await eventually(lambda: len(ran_out.names) == 2)
    assert ran_out.names == ["after", "later"]
    assert [event.where for event in ran_out.events if isinstance(event, InternalFailure)] == ["deadline"]


async def test_a_limit_can_be_moved_and_still_counts_from_the_beginning() -> None:
    ran_out = Interrupted()
    sooner, later = ran_out.deadline("sooner", 60_000), ran_out.deadline("later", 10)
    sooner.move(10)
    later.move(60_000)
    assert (sooner.limit_ms, later.limit_ms) == (10, 60_000)
    await eventually(lambda: bool(ran_out.names))
    await person_thinks(0.03)
    assert ran_out.names == ["sooner"]
    later.close()


async def test_time_of_the_client_counts_only_against_the_time_for_input() -> None:
    ran_out = Interrupted()
    deadline = ran_out.deadline("x", 200, 60_000)
    for _ in range(3):
        with deadline.waiting_for_client(), deadline.waiting_for_client():
            assert deadline.is_waiting_for_client
            await person_thinks(0.1)
    assert not deadline.is_waiting_for_client
    assert ran_out.names == []
    deadline.close()


async def test_after_the_pause_the_rest_of_the_limit_runs() -> None:
    ran_out = Interrupted()
    deadline = ran_out.deadline("x", 20, 5000)
    with deadline.waiting_for_client():
        await person_thinks(0.03)
    assert not deadline.is_waiting_for_client
    await eventually(lambda: ran_out.names == ["x"])


async def test_the_time_for_input_is_one_sum_over_all_questions() -> None:
    ran_out = Interrupted()
    deadline = ran_out.deadline("x", 60_000, 50)
    for _ in range(50):
        with deadline.waiting_for_client():
            await person_thinks(0.02)
        if deadline.has_expired:
            break
    assert (ran_out.names, deadline.is_waiting_for_client) == (["x"], True)


async def test_a_question_that_outlives_its_request_sets_no_timer() -> None:
    ran_out = Interrupted()
    deadline = ran_out.deadline("x", 60_000, 10)
    waiting = deadline.waiting_for_client()
    waiting.__enter__()
    deadline.close()
    waiting.__exit__(None, None, None)
    await person_thinks(0.02)
    assert ran_out.names == []


async def test_limits_callers_invent_do_not_fill_the_memory() -> None:
    ran_out = Interrupted()
    for limit_ms in range(1000, 1500):
        ran_out.deadline("x", limit_ms).close()
    assert len(ran_out.queue) < 50
    ran_out.queue.close()
    assert len(ran_out.queue) == 0


@pytest.mark.parametrize("count", [1, 200])
async def test_closed_deadlines_leave_no_timer_of_their_own(count: int) -> None:
    loop = asyncio.get_running_loop()
    before = sum(not handle.cancelled() for handle in loop._scheduled)  # type: ignore[attr-defined]
    ran_out = Interrupted()
    for _ in range(count):
        ran_out.deadline("x", 60_000).close()
    alive = sum(not handle.cancelled() for handle in loop._scheduled)  # type: ignore[attr-defined]
    assert alive - before <= 1
    ran_out.queue.close()


async def test_progress_lets_the_limit_begin_anew_up_to_a_longest_time() -> None:
    ran_out = Interrupted()
    loop = asyncio.get_running_loop()
    began = loop.time()
    deadline = ran_out.deadline("extended", 200)

    def is_over() -> bool:
        deadline.extend(300)
        return bool(ran_out.names)

    await eventually(is_over)
    assert loop.time() - began >= 0.3
    assert deadline.has_expired


async def test_a_closed_deadline_is_not_extended() -> None:
    ran_out = Interrupted()
    over = ran_out.deadline("over", 10)
    over.close()
    over.extend(20)
    ran_out.deadline("later", 60)
    await eventually(lambda: bool(ran_out.names))
    assert ran_out.names == ["later"]


async def test_the_time_that_is_left_to_a_server_is_not_shortened_by_a_client_and_grows_with_progress() -> None:
    ran_out = Interrupted()
    deadline = ran_out.deadline("a", 1000)
    deadline.full_ms = 60_000  # what the operator set; the client asked for one second
    assert 59 < (deadline.left_s() or 0) <= 60
    deadline.move(20_000)
    assert 19 < (deadline.left_s() or 0) <= 20
    with deadline.waiting_for_client():
        assert deadline.left_s() is None
    deadline.close()
    progressing = ran_out.deadline("b", 200)
    await elapsed(0.1)
    progressing.extend(60_000)
    assert (progressing.left_s() or 0) > 0.15
    progressing.close()
