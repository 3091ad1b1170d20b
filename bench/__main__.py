"""`python -m bench`: the gateway beside the same calls sent directly and through nginx, in interleaved rounds.

A goal that is missed is measured again with twice the rounds, all rounds count, and the report says so: a pass after
that is weaker than a pass at once. Exit code 0 when every goal of what was measured is met, 1 when one is missed or calls
failed, 2 when it could not run.
What is shown are medians. Compare CPU microseconds, and ratios within one run; wall-clock figures move with whatever
else the machine does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop
from msgspec import Struct

from bench import report
from bench.cpu import pss_bytes, rss_bytes
from bench.gates import GateCost, measure_gates
from bench.lab import Lab, LabError, Place
from bench.load import LoadError, measure
from bench.workloads import GATES, START, WORKLOADS, Workload

_RESULTS: Final = Path(__file__).resolve().parent / "results"
_FLAT_SHARE: Final = 3
_MAIN: Final = Place("pactgate", "pactgate", 23)


class Plan(Struct, frozen=True):
    """How long and how often."""

    rounds: int
    seconds: float
    starts: int
    idle_s: float


FULL: Final = Plan(rounds=5, seconds=1.0, starts=5, idle_s=1.0)
QUICK: Final = Plan(rounds=2, seconds=0.25, starts=2, idle_s=0.3)


class Progress:
    """One line on standard error that says what is running: rewritten on a terminal, one line a round elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._last_round = ""

    def say(self, part: str, detail: str) -> None:
        if self._is_terminal:
            line = f"{time.monotonic() - self._began:5.0f} s  {part}: {detail}"
            print(f"\r\x1b[K{line[:110]}", end="", file=sys.stderr, flush=True)
        elif part != self._last_round:
            print(f"{time.monotonic() - self._began:5.0f} s  {part}", file=sys.stderr, flush=True)
        self._last_round = part

    def clear(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, lab: Lab, progress: Progress, vias: Sequence[str]) -> None:
        self._lab = lab
        self._progress = progress
        self._vias = vias
        self.results: report.Results = {}
        self.starts: list[report.Start] = []
        self.gates: list[GateCost] = []
        self.missed_at_first: list[report.Verdict] = []

    def rounds(self, workloads: Sequence[Workload], count: int, seconds: float, title: str) -> None:
        """Each round takes every row of every workload; every other round in reverse, so that drift cancels out."""
        for number in range(count):
            part = f"{title} {number + 1} of {count}"
            for workload in workloads:
                repeats = _FLAT_SHARE if workload.name == "flat" else 1
                for _ in range(repeats):
                    self._pass(workload, seconds, part, reverse=bool(number % 2))

    def start(self, plan: Plan) -> None:
        for number in range(plan.starts):
            self._progress.say("start and memory", f"{number + 1} of {plan.starts}")
            target, first_call_s = self._lab.start_gateway(_MAIN)
            time.sleep(plan.idle_s)
            self.starts.append(report.Start(first_call_s, rss_bytes(target.pid), pss_bytes(target.pid)))
            self._lab.stop(target)

    def _pass(self, workload: Workload, seconds: float, part: str, *, reverse: bool) -> None:
        rows = [row for row in workload.rows if row.via in self._vias]
        kept = self.results.setdefault(workload.name, {row.label: [] for row in rows})
        for row in reversed(rows) if reverse else rows:
            self._progress.say(part, f"{workload.title}, {row.label}")
            target = self._lab.target(row)
            self._lab.pin(target.client_core)
            kept[row.label].append(uvloop.run(measure(workload.load(target, seconds), target.pid)))


def run(lab: Lab, progress: Progress, options: argparse.Namespace) -> int:
    plan = QUICK if options.quick else FULL
    vias = [via for via in options.targets.split(",") if via != "nginx" or lab.nginx]
    names = options.only.split(",") if options.only else [*(workload.name for workload in WORKLOADS), START, GATES]
    chosen = [w for w in WORKLOADS if w.name in names and any(row.via in vias for row in w.rows)]
    bench = Bench(lab, progress, vias)
    if START in names and "pactgate" in vias:
        bench.start(plan)
    if GATES in names and "pactgate" in vias:
        progress.say("gates", "each alone")
        bench.gates = measure_gates()
    bench.rounds(chosen, plan.rounds, plan.seconds, "round")
    missed = _missed(bench)
    bench.missed_at_first = [verdict for verdict in _judged(bench) if not verdict.is_met]
    if missed:
        again = [workload for workload in chosen if workload.name in missed]
        bench.rounds(again, plan.rounds * 2, plan.seconds, "a goal was missed, measuring again:")
        if START in missed:
            bench.start(plan)
    progress.clear()
    return _conclude(bench, chosen, options)


def _judged(bench: Bench) -> list[report.Verdict]:
    found = report.figures(bench.results, bench.starts, bench.gates)
    measured = report.measured_names(bench.results, bench.starts, bench.gates)
    return [verdict for verdict in report.judge(found, measured) if verdict.value is not None]


def _missed(bench: Bench) -> set[str]:
    return {verdict.goal.workload for verdict in _judged(bench) if not verdict.is_met}


def _conclude(bench: Bench, chosen: Sequence[Workload], options: argparse.Namespace) -> int:
    judged = _judged(bench)
    print(report.table(chosen, bench.results, bench.starts, bench.gates))
    print(f"\n{report.verdicts(judged)}" if judged else "")
    if bench.missed_at_first:
        print(f"\n{report.remeasured(bench.missed_at_first)}")
    path = report.write(
        _RESULTS, vars(options), bench.results, bench.starts, judged, bench.missed_at_first, bench.gates
    )
    print(f"\nwritten to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    failed = sum(run.failed for rows in bench.results.values() for runs in rows.values() for run in runs)
    if failed:
        print(f"{failed} calls failed", file=sys.stderr)
    return 1 if failed or any(not verdict.is_met for verdict in judged) else 0


def main() -> int:
    names = ", ".join([*(workload.name for workload in WORKLOADS), START, GATES])
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="about 20 seconds instead of two minutes")
    parser.add_argument("--only", metavar="NAMES", help=f"comma-separated workloads out of: {names}")
    parser.add_argument("--targets", default="direct,nginx,pactgate", help="what to measure (default: %(default)s)")
    options = parser.parse_args()
    unknown = set((options.only or START).split(",")) - {*(workload.name for workload in WORKLOADS), START, GATES}
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are: {names}")
    progress = Progress()
    try:
        with Lab() as lab:
            if not lab.nginx and "nginx" in options.targets:
                print("nginx is not installed: measured without it", file=sys.stderr)
            return run(lab, progress, options)
    except (LabError, LoadError) as problem:
        progress.clear()
        print(f"bench: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
