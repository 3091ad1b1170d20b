"""A caller whose large requests are refused again and again has to wait; nobody else does."""

from __future__ import annotations

import pytest

from pactgate.core.failures import Kind
from pactgate.policy import refused_bytes
from pactgate.policy.refused_bytes import BUDGET_BYTES, LARGE_BYTES, REFILL_BYTES_PER_S, RefusedBytes

TEN_MEGABYTES = 10_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_refused_bytes_beyond_the_budget_stop_further_large_requests_of_that_caller_alone(clock: Clock) -> None:
    refused = RefusedBytes(clock)
    for _ in range(BUDGET_BYTES // TEN_MEGABYTES):
        refused.add("alice", TEN_MEGABYTES)
        assert refused.check("alice") is None
    refused.add("alice", TEN_MEGABYTES)
    failure = refused.check("alice")
    assert failure is not None
    assert failure.kind is Kind.RATE_LIMITED
    assert failure.retry_after_ms is not None
    assert failure.details["retryAfter"] == -(-failure.retry_after_ms // 1000)
    assert refused.check("bob") is None


def test_whoever_waits_as_long_as_told_may_send_again(clock: Clock) -> None:
    refused = RefusedBytes(clock)
    refused.add("alice", BUDGET_BYTES + TEN_MEGABYTES)
    failure = refused.check("alice")
    assert failure is not None
    assert failure.retry_after_ms is not None
    clock.now += failure.retry_after_ms / 1000 - 0.5
    assert refused.check("alice") is not None
    clock.now += 0.5
    assert refused.check("alice") is None


def test_small_requests_do_not_count(clock: Clock) -> None:
    refused = RefusedBytes(clock)
    for _ in range(2 * BUDGET_BYTES // LARGE_BYTES):
        refused.add("alice", LARGE_BYTES)
    assert refused.check("alice") is None
    assert len(refused) == 0


def test_the_number_of_callers_is_bounded_and_no_spent_budget_can_be_pushed_out(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_bytes, "MAX_CALLERS", 100)
    refused = RefusedBytes(clock)
    refused.add("alice", 2 * BUDGET_BYTES)
    for number in range(1000):
        refused.add(f"caller {number}", LARGE_BYTES + 1 + number)
    assert len(refused) == 100
    assert refused.check("alice") is not None
    clock.now += BUDGET_BYTES / REFILL_BYTES_PER_S
    refused.add("one more", TEN_MEGABYTES)
    assert len(refused) == 2
