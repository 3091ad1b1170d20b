"""Places for calls: bounds, order, refusals, and that nothing is lost whatever is cancelled when."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import Category, ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.policy.overload import RETRY_AFTER_MS, Overload
from tests.support.eventually import eventually
from tests.support.loops import on_both_loops

ALICE, BOB, CAROL = "alice", "bob", "carol"


class Traffic:
    """Calls that take a place, stay until they are told to finish, and give it back."""

    def __init__(self, *, in_all: int = 100, per_server: int = 2, queued: int = 3, is_shared: bool = False) -> None:
        self.overload = Overload(
            max_in_flight=in_all, max_per_server=per_server, max_queued=queued, is_shared=is_shared
        )
        self.is_shared = is_shared
        self.per_server = per_server
        self.in_all = in_all
        self.calls: list[asyncio.Task[None]] = []
        self.started: list[int] = []
        self._finish: list[asyncio.Event] = []
        self._running: dict[str, int] = {}

    def call(self, server: str, subject: str = ALICE) -> int:
        self._finish.append(asyncio.Event())
        number = len(self.calls)
        self.calls.append(asyncio.create_task(self._run(server, subject, number)))
        return number

    async def called(self, server: str, count: int = 1, subject: str = ALICE) -> list[int]:
        numbers = [self.call(server, subject) for _ in range(count)]
        await self.settle()
        return numbers

    async def _run(self, server: str, subject: str, number: int) -> None:
        pending = self.overload.enter(server, subject)
        if pending is not None:
            await pending
        self.started.append(number)
        self._running[server] = self._running.get(server, 0) + 1
        assert self._running[server] <= self.per_server
        try:
            await self._finish[number].wait()
        finally:
            self._running[server] -= 1
            self.overload.leave(server, subject)

    async def finish(self, *numbers: int) -> None:
        for number in numbers:
            self._finish[number].set()
        await self.settle()

    def tell_to_finish(self, number: int) -> None:
        self._finish[number].set()

    async def settle(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)

    def refusal(self, number: int) -> GatewayFailure:
        failure = self.calls[number].exception()
        assert isinstance(failure, GatewayFailure)
        return failure

    async def end(self) -> None:
        """Everything still under way finishes; then nothing may be left."""
        for event in self._finish:
            event.set()
        await asyncio.wait_for(asyncio.gather(*self.calls, return_exceptions=True), 5)
        assert self.overload.held_count == 0
        assert self.overload.load() == {}


@on_both_loops
async def test_a_free_place_is_taken_without_waiting() -> None:
    overload = Overload(max_in_flight=2, max_per_server=1, max_queued=0, is_shared=False)
    assert overload.enter("a", ALICE) is None
    assert overload.enter("b", ALICE) is None
    assert overload.load() == {"a": (1, 0), "b": (1, 0)}
    overload.leave("a", ALICE)
    assert overload.enter("a", ALICE) is None
    assert overload.held_count == 2


@on_both_loops
async def test_calls_beyond_the_bound_wait_and_run_in_the_order_they_came() -> None:
    traffic = Traffic()
    numbers = await traffic.called("a", 5)
    assert traffic.overload.load() == {"a": (2, 3)}
    assert traffic.started == numbers[:2]
    for number in numbers:
        await traffic.finish(number)
    assert traffic.started == numbers
    await traffic.end()


@on_both_loops
async def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    traffic = Traffic()
    *_, last = await traffic.called("a", 6)
    refusal = traffic.refusal(last)
    assert (refusal.kind, refusal.code, refusal.category) == (
        Kind.OVERLOADED,
        ErrorCode.SERVICE_UNAVAILABLE,
        Category.TRANSPORT_FAILURE,
    )
    assert (refusal.server, refusal.retry_after_ms, refusal.verdict) == ("a", RETRY_AFTER_MS, Verdict.DID_NOT_RUN)
    assert refusal.details == {"inFlight": 2, "waiting": 3}
    assert traffic.overload.refused_count == 1
    await traffic.end()
    assert len(traffic.started) == 5


@on_both_loops
async def test_a_server_that_hangs_fills_only_its_own_lane() -> None:
    traffic = Traffic()
    await traffic.called("slow", 9)
    for _ in range(20):
        assert traffic.overload.enter("quick", ALICE) is None
        traffic.overload.leave("quick", ALICE)
    await traffic.end()


@on_both_loops
async def test_without_a_queue_the_next_call_is_refused() -> None:
    traffic = Traffic(per_server=1, queued=0)
    _, second = await traffic.called("a", 2)
    assert traffic.refusal(second).code is ErrorCode.SERVICE_UNAVAILABLE
    await traffic.end()


@on_both_loops
async def test_when_all_places_run_further_calls_meet_memory_pressure() -> None:
    traffic = Traffic(in_all=2)
    await traffic.called("a")
    await traffic.called("b")
    (third,) = await traffic.called("c")
    refusal = traffic.refusal(third)
    assert (refusal.kind, refusal.code, refusal.retry_after_ms) == (
        Kind.OVERLOADED,
        ErrorCode.MEMORY_PRESSURE,
        RETRY_AFTER_MS,
    )
    assert refusal.verdict is Verdict.DID_NOT_RUN
    await traffic.end()


@on_both_loops
async def test_in_a_full_house_the_latest_of_the_longest_queue_makes_room() -> None:
    traffic = Traffic(in_all=5)
    slow = await traffic.called("slow", 5)
    (quick,) = await traffic.called("quick")
    assert quick in traffic.started
    assert traffic.refusal(slow[-1]).code is ErrorCode.MEMORY_PRESSURE
    assert traffic.overload.load() == {"slow": (2, 2), "quick": (1, 0)}
    (one_more,) = await traffic.called("slow")
    assert traffic.refusal(one_more).code is ErrorCode.MEMORY_PRESSURE
    await traffic.finish(*slow[:4])
    assert traffic.started == [*slow[:2], quick, *slow[2:4]]
    await traffic.end()


@on_both_loops
async def test_a_cancelled_call_gives_up_its_turn_to_the_next() -> None:
    traffic = Traffic(per_server=1)
    first, second, third = await traffic.called("a", 3)
    traffic.calls[second].cancel()
    await traffic.settle()
    assert traffic.overload.load() == {"a": (1, 1)}
    await traffic.finish(first)
    assert traffic.started == [first, third]
    await traffic.end()


@on_both_loops
async def test_a_place_given_to_a_call_that_was_just_cancelled_goes_to_the_next() -> None:
    traffic = Traffic(per_server=1)
    first, second, third = await traffic.called("a", 3)
    traffic.tell_to_finish(first)
    await eventually(lambda: traffic.overload.load()["a"] != (1, 2))
    traffic.calls[second].cancel()
    await traffic.settle()
    assert traffic.started == [first, third]
    await traffic.end()


@on_both_loops
async def test_a_call_cancelled_a_moment_before_its_turn_is_passed_over() -> None:
    traffic = Traffic(per_server=1)
    assert traffic.overload.enter("a", ALICE) is None
    first, second = await traffic.called("a", 2)
    traffic.calls[first].cancel()
    traffic.overload.leave("a", ALICE)
    await traffic.settle()
    assert traffic.started == [second]
    traffic.calls[second].cancel()
    await traffic.end()


@on_both_loops
async def test_a_place_nobody_waits_for_any_more_is_free_at_once() -> None:
    traffic = Traffic(per_server=1)
    assert traffic.overload.enter("a", ALICE) is None
    (only,) = await traffic.called("a")
    traffic.calls[only].cancel()
    traffic.overload.leave("a", ALICE)
    assert traffic.overload.enter("a", ALICE) is None
    traffic.overload.leave("a", ALICE)
    await traffic.end()


@on_both_loops
async def test_room_is_made_by_a_call_that_still_waits_and_the_bound_is_kept_meanwhile() -> None:
    traffic = Traffic(in_all=4, per_server=1)
    slow = await traffic.called("slow", 4)
    traffic.calls[slow[-1]].cancel()
    pending = traffic.overload.enter("quick", ALICE)
    assert pending is not None
    await pending
    assert traffic.overload.held_count == 4
    await traffic.settle()
    assert traffic.refusal(slow[2]).code is ErrorCode.MEMORY_PRESSURE
    assert traffic.overload.load() == {"slow": (1, 1), "quick": (1, 0)}
    traffic.overload.leave("quick", ALICE)
    await traffic.end()


@on_both_loops
async def test_a_call_cancelled_in_the_turn_it_had_to_make_room_is_counted_once() -> None:
    traffic = Traffic(in_all=3, per_server=1)
    *_, last = await traffic.called("slow", 3)
    pending = traffic.overload.enter("quick", ALICE)
    assert pending is not None
    await pending
    traffic.calls[last].cancel()
    await traffic.settle()
    assert traffic.overload.load() == {"slow": (1, 1), "quick": (1, 0)}
    traffic.overload.leave("quick", ALICE)
    await traffic.end()


@on_both_loops
async def test_something_to_wait_for_that_nobody_waits_for_holds_nothing() -> None:
    overload = Overload(max_in_flight=10, max_per_server=1, max_queued=5, is_shared=False)
    assert overload.enter("a", ALICE) is None
    waiting = asyncio.ensure_future(overload.enter("a", ALICE))  # type: ignore[arg-type]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    overload.leave("a", ALICE)
    assert (overload.held_count, overload.load()) == (0, {})


steps = st.lists(
    st.tuples(st.just("call"), st.sampled_from(["a alice", "a bob", "a carol", "b alice", "b bob"]))
    | st.tuples(st.just("finish"), st.integers(0, 12))
    | st.tuples(st.just("cancel"), st.integers(0, 12))
    | st.tuples(st.just("turn"), st.integers(1, 3)),
    max_size=80,
)


@given(
    steps=steps,
    in_all=st.integers(1, 8),
    per_server=st.integers(1, 6),
    queued=st.integers(0, 6),
    is_shared=st.booleans(),
)
def test_whatever_is_called_finished_and_cancelled_when_no_place_is_lost(
    steps: list[tuple[str, str | int]], in_all: int, per_server: int, queued: int, is_shared: bool
) -> None:
    traffic = Traffic(in_all=in_all, per_server=per_server, queued=queued, is_shared=is_shared)
    asyncio.run(_play(steps, traffic))


async def _play(steps: list[tuple[str, str | int]], traffic: Traffic) -> None:
    whose: dict[int, str] = {}
    for what, which in steps:
        if what == "call":
            server, _, subject = str(which).partition(" ")
            whose[traffic.call(server, subject)] = str(which)
        elif what == "turn":
            for _ in range(int(which)):
                await asyncio.sleep(0)
        elif traffic.calls:
            number = int(which) % len(traffic.calls)
            if what == "finish":
                traffic.tell_to_finish(number)
            else:
                traffic.calls[number].cancel()
        assert traffic.overload.held_count <= traffic.in_all
    await traffic.settle()
    load = traffic.overload.load()
    assert traffic.overload.held_count == sum(running + waiting for running, waiting in load.values())
    for running, waiting in load.values():
        assert running <= traffic.per_server
        if waiting and running < traffic.per_server:
            assert traffic.is_shared, "a call waits although there is a place"
            assert running, "a call waits although nothing runs"
    for line in set(whose.values()):
        arrived = [number for number in traffic.started if whose[number] == line]
        assert arrived == sorted(arrived), "calls of one principal to one server run in the order they came"
    await traffic.end()


# -- several principals


@on_both_loops
async def test_a_call_of_another_principal_runs_at_once_beside_a_hundred_and_sixty_slow_ones() -> None:
    traffic = Traffic(in_all=1000, per_server=100, queued=400, is_shared=True)
    slow = await traffic.called("db", 160)
    (quick,) = await traffic.called("db", subject=BOB)
    assert quick in traffic.started
    assert traffic.overload.load() == {"db": (76, 85)}
    await traffic.finish(quick)
    assert traffic.overload.load() == {"db": (75, 85)}, "what others give back stays free for others"
    await traffic.finish(slow[0])
    assert traffic.overload.load() == {"db": (75, 84)}, "what she gives back is hers again"
    await traffic.end()


@on_both_loops
async def test_each_further_principal_finds_a_free_slot_until_the_fifth_has_taken_the_last() -> None:
    traffic = Traffic(in_all=1000, per_server=100, queued=400, is_shared=True)
    running = []
    for number in range(5):
        first, *_ = await traffic.called("db", 80, subject=f"principal {number}")
        assert first in traffic.started
        running.append(traffic.overload.load()["db"][0])
    assert running == [75, 93, 98, 99, 100]
    await traffic.end()


@on_both_loops
async def test_the_first_call_of_a_principal_may_take_the_last_slot() -> None:
    traffic = Traffic(per_server=1, is_shared=True)
    (only,) = await traffic.called("a")
    assert only in traffic.started
    await traffic.end()


@on_both_loops
async def test_waiting_principals_take_turns() -> None:
    traffic = Traffic(per_server=1, queued=40, is_shared=True)
    first, *hers = await traffic.called("a", 10)
    his = await traffic.called("a", 2, subject=BOB)
    carols = await traffic.called("a", 1, subject=CAROL)
    order = [hers[0], his[0], carols[0], hers[1], his[1], hers[2], hers[3]]
    for number in [first, *order[:-1]]:
        await traffic.finish(number)
    assert traffic.started == [first, *order]
    await traffic.end()


@on_both_loops
async def test_the_line_of_one_principal_leaves_room_in_the_queue_for_others() -> None:
    traffic = Traffic(per_server=1, queued=8, is_shared=True)
    *_, last = await traffic.called("a", 20)
    assert traffic.overload.load() == {"a": (1, 6)}
    assert traffic.refusal(last).details == {"inFlight": 1, "waiting": 6}
    await traffic.called("a", subject=BOB)
    assert traffic.overload.load() == {"a": (1, 7)}
    await traffic.end()


@on_both_loops
async def test_one_principal_at_many_servers_leaves_room_in_the_total_for_others() -> None:
    traffic = Traffic(in_all=20, per_server=10, is_shared=True)
    for server in ("a", "b", "c", "d"):
        await traffic.called(server, 7)
    assert traffic.overload.held_count == 15
    (quick,) = await traffic.called("a", subject=BOB)
    assert quick in traffic.started
    (more,) = await traffic.called("d")
    assert traffic.refusal(more).code is ErrorCode.MEMORY_PRESSURE
    await traffic.end()


@on_both_loops
async def test_shares_end_where_nobody_else_can_call_any_more() -> None:
    traffic = Traffic(per_server=4, is_shared=True)
    calls = await traffic.called("a", 4)
    assert traffic.overload.load() == {"a": (3, 1)}
    traffic.overload.share(is_shared=False)
    await traffic.finish(calls[0])
    await traffic.called("a", 1)
    assert traffic.overload.load() == {"a": (4, 0)}
    await traffic.end()


async def test_a_slot_is_given_back_whatever_happens_inside() -> None:
    overload = Overload(max_in_flight=1, max_per_server=1, max_queued=1)

    async def fail_inside() -> None:
        async with overload.slot("files", "ann"):
            assert overload.load() == {"files": (1, 0)}
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        await fail_inside()
    assert overload.load() == {}
