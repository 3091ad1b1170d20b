"""The counts of `bench.calls` are the same in each run, and no call path has grown unnoticed."""

from __future__ import annotations

from typing import Final

import pytest

from bench.calls import ROWS, CallRow, measure_calls, table

MOST_PYTHON_CALLS: Final = {"legacy": 145, "modern": 145, "token": 145, "jwt": 145, "cached": 112}
"""A little more than today: looking for the catalog of a caller and for the times of a call are part of it. A larger number needs a
reason: each function costs every call of every client 0.1 to 0.5 us."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_tool_call_runs_no_more_functions_than_it_did(row: CallRow) -> None:
    found = measure_calls(row)
    shown = table({row.name: found})
    assert 0 < found.python_per_call <= MOST_PYTHON_CALLS[row.name], shown
    assert "in all" in shown
