"""The gate of the ordinary test run: a call must not cost more of the processor than is recorded, with slack."""

from __future__ import annotations

import pytest

from bench.lab import Lab
from bench.regression import SLACK, WATCHED, check, dearer, recorded, unsteady


@pytest.mark.timeout(150)  # seconds where nothing else runs; more when it must look again on a busy machine
def test_a_call_costs_no_more_of_the_processor_than_is_recorded() -> None:
    with Lab() as lab:
        found = check(lab, recorded())
    if found.unsure:
        pytest.skip(f"NOT JUDGED, the cost of a call: {found.unsure}")
    assert not found.dearer, "\n".join(found.dearer)


def test_everything_that_is_watched_is_recorded() -> None:
    assert recorded().keys() == WATCHED.keys()


def test_only_what_is_beyond_the_slack_is_dearer() -> None:
    assert dearer({"a call": 10 * SLACK}, {"a call": 10.0}) == ()
    assert dearer({"a call": 10 * SLACK + 0.1, "another": 3.0}, {"a call": 10.0, "another": 3.0}) == (
        "a call costs 15.1 times a direct call; 10.0 is recorded, 15.0 is too much",
    )


def test_a_machine_that_says_now_this_now_that_is_not_believed() -> None:
    assert unsteady([10.0, 11.0, 10.5]) is None
    assert unsteady([10.0, 10.5, 11.0, 12.0, 90.0]) is None, "one round in which something else ran is no matter"
    assert "too much else runs here" in (unsteady([10.0, 30.0, 25.0, 9.0, 31.0]) or "")
    assert "does not count" in (unsteady([0.0, 0.0, 0.0]) or "")
