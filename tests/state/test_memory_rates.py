"""Buckets: what goes through, what waiting is worth, and that neither floods nor clocks nor new settings get round them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.ports import Quota, RateRefusal

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
EXECUTION = Quota("execution", 30, 5)


class Callers:
    """Callers of one store, on a clock that is moved by hand."""

    def __init__(self, quota: Quota = EXECUTION, *, max_buckets: int = 1000, now_ns: int = 10**15) -> None:
        self.now_ns = now_ns
        self.quota = quota
        self.store = MemoryRateStore(lambda: self.now_ns, max_buckets)

    def call(self, subject: str = "ops") -> RateRefusal | None:
        return self.store.take(subject, self.quota)

    def passing(self, count: int, subject: str = "ops") -> int:
        """How many of so many calls at once go through."""
        return sum(self.call(subject) is None for _ in range(count))

    def refused(self, subject: str = "ops") -> RateRefusal:
        refusal = self.call(subject)
        assert refusal is not None
        return refusal

    def wait(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND_NS)


# What goes through.


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize(("rpm", "burst"), [(30, 5), (100, 20), (200, 50), (1, 1), (10_000, 1000)])
def test_a_burst_goes_through_and_the_next_call_does_not(rpm: int, burst: int) -> None:
    assert Callers(Quota("q", rpm, burst)).passing(burst + 10) == burst


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize(("rpm", "burst"), [(30, 5), (100, 20), (200, 50)])
def test_calls_in_step_with_the_rate_go_through_for_ever(rpm: int, burst: int) -> None:
    callers = Callers(Quota("q", rpm, burst))
    for _ in range(rpm * 3):
        assert callers.call() is None
        callers.wait(60 / rpm)


@pytest.mark.requirement("S2/MCP-006")
def test_the_call_after_the_last_of_a_minute_is_refused_though_tokens_came_back() -> None:
    callers = Callers()
    passed = callers.passing(5)
    for _ in range(25):
        callers.wait(2)
        passed += callers.passing(1)
    assert passed == 30
    callers.wait(2)
    assert callers.refused() == RateRefusal(retry_after_ms=8000, reset_in_ms=58_000, remaining_in_window=0)
    callers.wait(8)
    assert callers.passing(10) == 5


def test_a_burst_larger_than_the_minute_is_bounded_by_the_minute() -> None:
    callers = Callers(Quota("q", 3, 1000))
    assert callers.passing(10) == 3
    assert callers.refused().retry_after_ms == 60_000


@pytest.mark.requirement("S2/MCP-006")
def test_callers_and_quotas_do_not_touch_each_other() -> None:
    callers = Callers()
    assert callers.passing(9, "ops") == 5
    assert callers.passing(9, "dev") == 5
    callers.quota = Quota("other", 30, 5)
    assert callers.passing(9, "ops") == 5


@pytest.mark.requirement("S2/MCP-007")
def test_a_refusal_says_how_long_to_wait_and_what_is_left() -> None:
    callers = Callers()
    callers.passing(5)
    callers.wait(0.5)
    assert callers.refused() == RateRefusal(retry_after_ms=1500, reset_in_ms=59_500, remaining_in_window=25)


# The same for everything that can happen.

QUOTAS = st.builds(Quota, st.just("q"), st.integers(1, 40), st.integers(1, 12)) | st.builds(
    Quota, st.just("q"), st.integers(1, 10_000), st.integers(1, 1000)
)
GAPS_NS = st.just(0) | st.integers(0, 3 * SECOND_NS) | st.integers(0, 2 * MINUTE_NS) | st.just(MINUTE_NS)


@pytest.mark.requirement("S2/MCP-006")
@given(quota=QUOTAS, bouts=st.lists(st.tuples(GAPS_NS, st.integers(1, 20)), max_size=40))
def test_no_moment_has_more_than_the_burst_and_no_minute_more_than_the_rate(
    quota: Quota, bouts: list[tuple[int, int]]
) -> None:
    callers = Callers(quota)
    passed: list[int] = []
    for gap_ns, count in bouts:
        callers.now_ns += gap_ns
        passed += [callers.now_ns] * callers.passing(count)
    for place, start_ns in enumerate(passed):
        inside = [time_ns - start_ns for time_ns in passed[place:]]
        assert inside.count(0) <= quota.burst
        assert sum(since_ns < MINUTE_NS for since_ns in inside) <= quota.rpm
        for calls, since_ns in enumerate(inside, start=1):
            assert (calls - quota.burst) * (MINUTE_NS // quota.rpm) <= since_ns


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.requirement("S2/MCP-007")
@given(quota=QUOTAS, gaps_ns=st.lists(GAPS_NS, min_size=1, max_size=60))
def test_waiting_as_long_as_a_refusal_says_suffices_and_a_millisecond_less_does_not(
    quota: Quota, gaps_ns: list[int]
) -> None:
    callers = Callers(quota)
    for gap_ns in gaps_ns:
        callers.now_ns += gap_ns
        while (refusal := callers.call()) is None:
            pass
        refused_at_ns = callers.now_ns
        assert 1 <= refusal.retry_after_ms <= refusal.reset_in_ms
        callers.now_ns = refused_at_ns + (refusal.retry_after_ms - 1) * 1_000_000
        assert callers.call() is not None
        callers.now_ns = refused_at_ns + refusal.retry_after_ms * 1_000_000
        assert callers.call() is None


@pytest.mark.requirement("S2/MCP-006")
@given(quota=QUOTAS, bouts=st.lists(st.tuples(GAPS_NS, st.integers(1, 20)), max_size=40))
def test_refused_calls_leave_no_trace(quota: Quota, bouts: list[tuple[int, int]]) -> None:
    eager, patient = Callers(quota), Callers(quota)
    for gap_ns, count in bouts:
        eager.now_ns = patient.now_ns = eager.now_ns + gap_ns
        passed = eager.passing(count + 30)
        assert patient.passing(passed) == passed
        assert eager.call() == patient.call()


@given(quota=QUOTAS, bouts=st.lists(st.tuples(GAPS_NS, st.integers(1, 20)), min_size=1, max_size=20))
def test_after_the_time_to_reset_a_caller_is_as_good_as_new(quota: Quota, bouts: list[tuple[int, int]]) -> None:
    callers = Callers(quota)
    for gap_ns, count in bouts:
        callers.now_ns += gap_ns
        callers.passing(count)
    while (refusal := callers.call()) is None:
        pass
    callers.now_ns += refusal.reset_in_ms * 1_000_000
    assert callers.passing(quota.burst + 1) == min(quota.burst, quota.rpm)


# Other quotas under the same name.


@pytest.mark.requirement("S2/MCP-006")
def test_a_lower_limit_is_felt_by_the_next_call_and_a_higher_one_too() -> None:
    callers = Callers(Quota("q", 200, 50))
    assert callers.passing(40) == 40
    callers.quota = Quota("q", 30, 5)
    assert callers.refused() == RateRefusal(retry_after_ms=60_000, reset_in_ms=60_000, remaining_in_window=0)
    callers.quota = Quota("q", 200, 60)
    assert callers.passing(100) == 55, "a smaller bucket can't remember more tokens than it had"


@pytest.mark.requirement("S2/MCP-006")
@given(steps=st.lists(st.tuples(QUOTAS, GAPS_NS, st.integers(1, 20)), max_size=25))
def test_under_changing_quotas_each_call_keeps_to_the_one_in_force(steps: list[tuple[Quota, int, int]]) -> None:
    callers = Callers()
    passed: list[int] = []
    for quota, gap_ns, count in steps:
        callers.quota = quota
        callers.now_ns += gap_ns
        recent = sum(callers.now_ns - time_ns < MINUTE_NS for time_ns in passed)
        through = callers.passing(count)
        assert through <= quota.burst
        assert through <= max(0, quota.rpm - recent)
        passed += [callers.now_ns] * through


def test_the_same_numbers_anew_change_nothing() -> None:
    callers = Callers()
    callers.passing(4)
    callers.quota = Quota("execution", 30, 5)
    assert callers.passing(9) == 1


# Clocks.


@pytest.mark.parametrize("hours", [1, 24 * 365])
def test_a_clock_that_runs_back_locks_nobody_out(hours: int) -> None:
    callers = Callers()
    assert callers.passing(9) == 5
    callers.wait(-3600 * hours)
    assert callers.refused().retry_after_ms == 2000
    callers.wait(2)
    assert callers.passing(9) == 1
    callers.wait(60)
    assert callers.passing(9) == 5


def test_a_clock_that_jumps_ahead_gives_one_whole_bucket_and_not_more() -> None:
    callers = Callers()
    callers.passing(9)
    callers.wait(3600 * 24 * 365)
    assert callers.passing(99) == 5


# Bounds.


@pytest.mark.requirement("S2/MCP-006")
def test_a_hundred_thousand_fresh_callers_keep_to_the_bound_and_free_no_spent_one() -> None:
    callers = Callers(max_buckets=2000)
    assert callers.passing(9, "loop") == 5
    for number in range(100_000):
        assert callers.call(f"fresh-{number}") is None
        if number % 1000 == 0:
            assert callers.call("loop") is not None
    assert len(callers.store) == 2000
    assert callers.refused("loop").remaining_in_window == 25


def test_buckets_that_are_whole_again_are_dropped_while_others_come() -> None:
    callers = Callers()
    for number in range(500):
        callers.call(f"early-{number}")
    callers.wait(60)
    for number in range(80):
        callers.call(f"late-{number}")
        callers.wait(1)
    assert len(callers.store) <= 80, "those of the last minute, and the few nobody has looked at since"


def test_whole_buckets_go_before_spent_ones() -> None:
    callers = Callers(Quota("q", 30, 5), max_buckets=4)
    callers.call("whole")
    callers.wait(60)
    for name in ("a", "b", "c"):
        assert callers.passing(9, name) == 5
    callers.call("new")
    assert len(callers.store) == 4
    assert [callers.passing(9, name) for name in ("a", "b", "c")] == [0, 0, 0]


def test_of_callers_that_are_all_under_way_the_least_spent_is_forgotten() -> None:
    callers = Callers(max_buckets=3)
    spent = {"much": 5, "little": 1, "some": 3}
    for name, count in spent.items():
        callers.passing(count, name)
    callers.passing(5, "new")
    assert callers.passing(9, "much") == 0
    assert callers.passing(9, "some") == 2
    assert callers.passing(9, "little") == 5
