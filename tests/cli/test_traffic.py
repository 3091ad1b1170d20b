"""What `pactgate top` computes from two readings."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.cli.traffic import quantile, traffic_between

BOUNDS = [1, 10, 100]


def reading(at_ms: int, calls: int, counts: list[int], **more: Any) -> dict[str, Any]:
    sums = {"failed": 0, "serverMs": 0.0, "queueMs": 0.0, "gatesMs": 0.0, "gatewayMs": 0.0, "running": 0, "waiting": 0}
    row = {"serverId": "files", "calls": calls, "counts": counts, **sums, **more}
    return {"atMs": at_ms, "boundsMs": BOUNDS, "servers": [row]}


def test_rates_and_means_are_of_the_calls_between_the_readings() -> None:
    before = reading(0, 10, [10, 0, 0, 0], failed=5, serverMs=1000.0)
    after = reading(2000, 14, [10, 4, 0, 0], failed=6, serverMs=1020.0, queueMs=8.0, running=2, waiting=3)
    (row,) = traffic_between(before, after)
    assert (row.calls_per_s, row.failed_percent, row.server_ms, row.queue_ms) == (2.0, 25.0, 5.0, 2.0)
    assert (row.running, row.waiting) == (2, 3)
    assert row.p50_ms == pytest.approx(5.5)


def test_a_server_without_calls_has_no_durations_but_what_is_under_way() -> None:
    (row,) = traffic_between(reading(0, 4, [4, 0, 0, 0]), reading(1000, 4, [4, 0, 0, 0], running=1))
    assert (row.calls_per_s, row.p95_ms, row.running) == (0.0, None, 1)


@pytest.mark.parametrize(
    ("counts", "part", "expected"), [([4, 0, 0, 0], 0.5, 0.5), ([0, 0, 2, 0], 1.0, 100), ([0, 0, 0, 3], 0.5, 100)]
)
def test_a_quantile_is_interpolated_in_its_bucket(counts: list[int], part: float, expected: float) -> None:
    assert quantile(counts, BOUNDS, part) == pytest.approx(expected)
