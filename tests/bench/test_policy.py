"""What permissions and views cost with 1,000 tools, 200 rules and 50 classes stays within the goals."""

from __future__ import annotations

import pytest

from bench.policy import Row, measure


@pytest.mark.timing
def test_permissions_and_views_cost_no_more_than_their_goals() -> None:
    assert [row for row in measure() if not row.is_met] == []


def test_a_figure_beyond_its_goal_is_missed() -> None:
    assert [Row("cost", value, 0.5, "us").is_met for value in (0.4, 0.5, 0.6)] == [True, True, False]
