"""`python -m bench soak`: loads one gateway with half of its capacity for a long time, by clients of both eras.

The capacity is measured first. Then mixed calls come at half that rate in slices of ten seconds; after each slice all sessions end,
and memory and descriptors are read. The second half counts, after all caches are filled. Exit code 0 when no call failed,
memory grew by at most 64 KiB per 10,000 calls and descriptors did not grow; 1 otherwise; 2 when it could not run.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import uvloop
from msgspec import Struct, structs

from bench import report
from bench.cpu import descriptors, rss_bytes
from bench.lab import Lab, LabError, Row, Target
from bench.load import Load, LoadError, LoadResult, measure
from bench.traffic import MIXED

GROWTH_BYTES: Final = 64 * 1024
PER_CALLS: Final = 10_000
_FURTHER_DESCRIPTORS: Final = 2
_SLICE_S: Final = 10.0
_CAPACITY_S: Final = 5.0
_CONNECTIONS: Final = 32
_SAMPLES_AT_LEAST: Final = 8


class Sample(Struct, frozen=True):
    """Resident memory and open descriptors after so many calls."""

    calls: int
    rss_bytes: int
    descriptors: int


class SoakResult(Struct, frozen=True):
    """All samples of a soak test and the problems that they show."""

    samples: tuple[Sample, ...]
    failed: int
    last_failure: str
    capacity_per_s: float
    rate_per_s: float

    @property
    def second_half(self) -> tuple[Sample, ...]:
        return self.samples[len(self.samples) // 2 :]

    @property
    def growth_bytes(self) -> float:
        """The slope of memory per 10,000 calls in the second half."""
        half = self.second_half
        return slope([sample.calls for sample in half], [sample.rss_bytes for sample in half]) * PER_CALLS

    @property
    def further_descriptors(self) -> float:
        """The growth of descriptors from the third quarter to the last, by medians."""
        half = self.second_half
        before, after = half[: len(half) // 2], half[len(half) // 2 :]
        return statistics.median(s.descriptors for s in after) - statistics.median(s.descriptors for s in before)

    @property
    def problems(self) -> list[str]:
        found = []
        if self.failed:
            found.append(f"{self.failed} calls failed, the last: {self.last_failure}")
        if self.growth_bytes > GROWTH_BYTES:
            found.append(f"memory grew by {self.growth_bytes / 1024:.1f} KiB per {PER_CALLS} calls")
        if self.further_descriptors > _FURTHER_DESCRIPTORS:
            found.append(f"{self.further_descriptors:g} more descriptors in the last quarter than in the one before")
        return found


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The slope of the regression line; 0 with fewer than two points."""
    if len(set(xs)) < 2:
        return 0.0
    return statistics.linear_regression(xs, ys).slope


def soak(lab: Lab, seconds: float) -> SoakResult:
    target, _ = lab.start_gateway(Row("pactgate", "pactgate", 23))
    lab.pin(target.client_core)
    capacity = _slice(target, "legacy", _CAPACITY_S, None).calls_per_s
    rate = capacity / 2
    slice_s = min(_SLICE_S, seconds / _SAMPLES_AT_LEAST)
    print(f"capacity {capacity:.0f} calls/s now; {rate:.0f} calls/s for {seconds / 60:g} minutes", file=sys.stderr)
    samples, calls, failed, last_failure = [_sample(target, 0)], 0, 0, ""
    until = time.monotonic() + seconds
    for era in itertools.cycle(("legacy", "modern")):
        done = _slice(target, era, slice_s, rate)
        calls, failed, last_failure = calls + done.calls, failed + done.failed, done.last_failure or last_failure
        samples.append(_sample(target, calls))
        left = until - time.monotonic()
        _say(samples[-1], failed, left)
        if left <= 0:
            break
    return SoakResult(tuple(samples), failed, last_failure, capacity, rate)


def _slice(target: Target, era: str, seconds: float, rate: float | None) -> LoadResult:
    load = Load(
        target.url,
        f"{target.prefix}echo",
        era=era,
        connections=_CONNECTIONS,
        seconds=seconds,
        warmup=0,
        calls_per_s=rate,
        shape=MIXED,
    )
    return uvloop.run(measure(load))


def _sample(target: Target, calls: int) -> Sample:
    return Sample(calls, rss_bytes(target.pid), descriptors(target.pid))


def _say(sample: Sample, failed: int, left_s: float) -> None:
    print(
        f"{max(0.0, left_s) / 60:5.1f} min left  {sample.calls} calls, {failed} failed, "
        f"{sample.rss_bytes / 1024 / 1024:.1f} MiB, {sample.descriptors} descriptors",
        file=sys.stderr,
        flush=True,
    )


def as_document(found: SoakResult, minutes: float) -> dict[str, Any]:
    return {
        "minutes": minutes,
        "calls": found.samples[-1].calls,
        "failed": found.failed,
        "capacityPerS": found.capacity_per_s,
        "ratePerS": found.rate_per_s,
        "growthBytesPer10kCalls": found.growth_bytes,
        "furtherDescriptors": found.further_descriptors,
        "firstRssBytes": found.samples[0].rss_bytes,
        "lastRssBytes": found.samples[-1].rss_bytes,
        "problems": found.problems,
        "samples": [structs.asdict(sample) for sample in found.samples],
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: %(default)g)")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error("--minutes must be more than 0")
    try:
        with Lab() as lab:
            found = soak(lab, options.minutes * 60)
    except (LabError, LoadError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    print(
        f"{found.samples[-1].calls} calls in {options.minutes:g} minutes, {found.failed} failed\n"
        f"memory in the second half: {found.growth_bytes / 1024:+.1f} KiB per {PER_CALLS} calls (at most "
        f"{GROWTH_BYTES / 1024:g}); {found.samples[0].rss_bytes / 1024 / 1024:.1f} MiB at first, "
        f"{found.samples[-1].rss_bytes / 1024 / 1024:.1f} MiB at last\n"
        f"descriptors, last quarter over the one before: {found.further_descriptors:+g}"
    )
    print(f"written to {report.write('soak', as_document(found, options.minutes))}")
    for found_problem in found.problems:
        print(f"PROBLEM: {found_problem}", file=sys.stderr)
    return 1 if found.problems else 0
