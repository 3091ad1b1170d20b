from __future__ import annotations

import pytest

from bench.soak import Sample, SoakResult, slope

KIB = 1024


def soaked(rss_kib: list[int], descriptors: list[int] | None = None, failed: int = 0) -> SoakResult:
    opened = descriptors or [40] * len(rss_kib)
    pairs = zip(rss_kib, opened, strict=True)
    samples = tuple(Sample(number * 10_000, kib * KIB, count) for number, (kib, count) in enumerate(pairs))
    return SoakResult(samples, failed, "503" if failed else "", 10_000.0, 5_000.0)


def test_what_is_kept_once_in_the_first_half_is_no_growth() -> None:
    assert soaked([40_000, 44_000, 47_000, 48_000, 48_000, 48_000, 48_010, 48_000]).problems == []


def test_memory_that_keeps_growing_is_a_problem() -> None:
    leaking = soaked([40_000 + 65 * number for number in range(12)])
    assert leaking.growth_bytes == pytest.approx(65 * KIB)
    assert leaking.problems == ["memory grew by 65.0 KiB per 10000 calls"]
    assert soaked([40_000 + 63 * number for number in range(12)]).problems == []


def test_descriptors_that_keep_growing_are_a_problem() -> None:
    flat = [40_000] * 12
    assert soaked(flat, [10, 40, 40, 41, 40, 39, 40, 40, 41, 40, 40, 42]).problems == []
    assert soaked(flat, [40 + number for number in range(12)]).problems == [
        "3 more descriptors in the last quarter than in the one before"
    ]


def test_one_failed_call_is_a_problem() -> None:
    assert soaked([40_000] * 8, failed=1).problems == ["1 calls failed, the last: 503"]


def test_a_slope_needs_two_points() -> None:
    assert slope([5.0], [7.0]) == slope([5.0, 5.0], [7.0, 9.0]) == 0.0
    assert slope([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]) == pytest.approx(2.0)
