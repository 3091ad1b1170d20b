"""`python -m bench regression`: compares the cost of a call with the recorded cost. Short enough for the ordinary test run.

The cost is the gateway's CPU time per call divided by that of a direct call to the same server, by medians of the same rounds,
because a slower or busier machine changes both. Wall-clock time plays no part. The requests are mixed, as real clients send them.
A call that costs 1.5 times the recorded cost is a regression, once two longer measurements confirm it. On one core, or when the
cost of direct calls varies too much, the check is inconclusive. After an improvement: `python -m bench regression --record`.
Exit code 0 without a regression, 1 with one, 2 when the check is inconclusive or could not run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import uvloop
from msgspec import Struct

from bench.lab import Lab, LabError, Row
from bench.load import LoadError, measure
from bench.workloads import HIT, WORKLOADS, Workload

RECORDED: Final = Path(__file__).with_name("recorded.json")
SLACK: Final = 1.5
_SPREAD: Final = 2.0
"""The check is inconclusive when the most and least expensive round of direct calls differ by more than this factor."""
_SECONDS: Final = 0.25
_ROUNDS: Final = (3, 5, 7)
_RECORD_ROUNDS: Final = 15
_DIRECT: Final = Row("direct", "direct")
_OURS: Final = Row("pactgate", "pactgate")
_BY_NAME: Final = {workload.name: workload for workload in WORKLOADS}
WATCHED: Final[dict[str, tuple[Workload, Row]]] = {
    "mixed, legacy": (_BY_NAME["mixed-32"], _OURS),
    "mixed, modern": (_BY_NAME["mixed-32-modern"], _OURS),
    "cached": (_BY_NAME["cache"], HIT),
}


class RegressionCheck(Struct, frozen=True):
    """The costs as multiples of a direct call, and the regressions; or the reason why the check is inconclusive."""

    ratios: dict[str, float]
    regressions: tuple[str, ...] = ()
    inconclusive: str | None = None


def recorded() -> dict[str, float]:
    return dict(json.loads(RECORDED.read_text())["ratios"])


def regressions(ratios: Mapping[str, float], known: Mapping[str, float]) -> tuple[str, ...]:
    """One sentence for each cost beyond the slack."""
    return tuple(
        f"{name} costs {ratio:.1f} times a direct call; {known[name]:.1f} is recorded, at most {known[name] * SLACK:.1f} allowed"
        for name, ratio in ratios.items()
        if ratio > known[name] * SLACK
    )


def unsteady(costs: Sequence[float]) -> str | None:
    """The reason why these costs of direct calls are no reference, if their middle half varies too much."""
    ordered = sorted(costs)
    rest = ordered[len(ordered) // 4 : len(ordered) - len(ordered) // 4]
    if not rest or rest[0] <= 0:
        return "the kernel does not count the processor time of threads"
    spread = rest[-1] / rest[0]
    return (
        f"direct calls cost between {rest[0]:.1f} and {rest[-1]:.1f} us: too much else runs here"
        if spread > _SPREAD
        else None
    )


def check(lab: Lab, known: Mapping[str, float]) -> RegressionCheck:
    """Measure; measure again, and longer, before a regression is reported."""
    if not lab.is_pinned:
        return RegressionCheck({}, inconclusive="only one core is available, so clients and gateway would share it")
    found = RegressionCheck({}, inconclusive="nothing measured")
    for rounds in _ROUNDS:
        ratios, direct = compare(lab, rounds)
        found = RegressionCheck(ratios, regressions(ratios, known), unsteady(direct))
        if found.inconclusive is None and not found.regressions:
            return found
    return found


def compare(lab: Lab, rounds: int) -> tuple[dict[str, float], list[float]]:
    """Each watched cost divided by that of a direct call, and the cost of direct calls in each round."""
    direct, costs = list[float](), {name: list[float]() for name in WATCHED}
    for _ in range(rounds):
        direct.append(_cost(lab, _BY_NAME["mixed-32"], _DIRECT))
        for name, (workload, row) in WATCHED.items():
            costs[name].append(_cost(lab, workload, row))
    reference = statistics.median(direct)
    ratios = {name: statistics.median(found) / reference if reference else 0.0 for name, found in costs.items()}
    return ratios, direct


def _cost(lab: Lab, workload: Workload, row: Row) -> float:
    target = lab.target(row)
    lab.pin(target.client_core)
    return uvloop.run(measure(workload.load(target, _SECONDS), target.pid)).cpu_us or 0.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench regression", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help=f"write the measured costs to bench/{RECORDED.name}")
    options = parser.parse_args(arguments)
    try:
        with Lab() as lab:
            if options.record:
                return _record(lab)
            found = check(lab, recorded())
    except (LabError, LoadError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    known = recorded()
    for name, ratio in found.ratios.items():
        print(f"{name:<16}{ratio:6.1f} times a direct call ({known[name]:.1f} recorded)")
    if found.inconclusive:
        print(f"inconclusive: {found.inconclusive}", file=sys.stderr)
        return 2
    print("\n".join(found.regressions) or "no regression")
    return 1 if found.regressions else 0


def _record(lab: Lab) -> int:
    ratios, direct = compare(lab, _RECORD_ROUNDS)
    problem = unsteady(direct)
    if problem or not lab.is_pinned:
        print(f"not recorded: {problem or 'one core only'}", file=sys.stderr)
        return 2
    rounded = {name: round(ratio, 2) for name, ratio in ratios.items()}
    RECORDED.write_text(json.dumps({"unit": "times a direct call, CPU", "ratios": rounded}, indent=2) + "\n")
    print(f"recorded in {RECORDED}: {rounded}")
    return 0
