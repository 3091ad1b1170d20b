"""The regression gate of `make test-timing`: a call must not cost more CPU time than is recorded, with slack."""

from __future__ import annotations

import pytest

from bench.lab import Lab
from bench.regression import SLACK, WATCHED, check, recorded, regressions, unsteady


@pytest.mark.timing
@pytest.mark.timeout(150)  # a few seconds on a quiet machine; more when it must measure again
def test_a_call_costs_no_more_cpu_time_than_is_recorded() -> None:
    with Lab() as lab:
        found = check(lab, recorded())
    if found.inconclusive:
        pytest.fail(f"inconclusive, the cost of a call: {found.inconclusive}")
    assert not found.regressions, "\n".join(found.regressions)


def test_each_watched_cost_is_recorded() -> None:
    assert recorded().keys() == WATCHED.keys()


def test_only_a_cost_beyond_the_slack_is_a_regression() -> None:
    assert regressions({"a call": 10 * SLACK}, {"a call": 10.0}) == ()
    assert regressions({"a call": 10 * SLACK + 0.1, "another": 3.0}, {"a call": 10.0, "another": 3.0}) == (
        "a call costs 15.1 times a direct call; 10.0 is recorded, at most 15.0 allowed",
    )


def test_direct_calls_of_varying_cost_are_no_reference() -> None:
    assert unsteady([10.0, 11.0, 10.5]) is None
    assert unsteady([10.0, 10.5, 11.0, 12.0, 90.0]) is None, "one outlier does not count"
    assert "too much else runs here" in (unsteady([10.0, 30.0, 25.0, 9.0, 31.0]) or "")
    assert "does not count" in (unsteady([0.0, 0.0, 0.0]) or "")
