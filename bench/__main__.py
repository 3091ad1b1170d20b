"""`python -m bench`: the gateway beside the same calls sent directly and through nginx, in interleaved rounds.

A missed goal is measured again with twice the rounds; all rounds count and the report says so, because a pass after that is
weaker than a pass at once. With `--seconds` nothing is measured again. Exit code 0 when each goal of what was measured is met,
1 when a goal is missed or calls failed, 2 when the benchmark could not run. Aims are reported and do not decide the exit code.
All figures are medians. Compare CPU microseconds, and ratios within one run; wall-clock figures move with whatever
else the machine does. While developing: `--only mixed --seconds 3`.

Further commands, each with its own --help:
  python -m bench peers       other gateways in front of the same server
  python -m bench gateways    the gateway profile played against other gateways
  python -m bench replicas    what a shared store and a hop between replicas cost
  python -m bench soak        half of the capacity for a long time: failed calls, memory, descriptors
  python -m bench regression  compare the cost of a call with the recorded cost
  python -m bench calls       how many Python and C functions a call runs, by module
  python -m bench policy      permissions and views: what a call, a change and a list cost
  python -m bench publish     write the figures of the latest runs into docs/performance.*
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench import calls, policy, publish, regression, replicas, report, soak
from bench.gateways import score
from bench.goals import AIMS, GOALS
from bench.lab import Lab, LabError
from bench.load import LoadError
from bench.measurements import GoalResult, check_goals
from bench.peers import compare
from bench.rounds import Bench, Plan, Progress
from bench.workloads import GATES, GROUPS, START, WORKLOADS, Workload

FULL: Final = Plan(rounds=5, seconds=1.0, starts=5, idle_s=1.0)
QUICK: Final = Plan(rounds=2, seconds=0.25, starts=2, idle_s=0.3)
_ROUNDS_AT_LEAST: Final = 3
NAMES: Final = (*(workload.name for workload in WORKLOADS), START, GATES)
COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "peers": compare.main,
    "gateways": score.main,
    "soak": soak.main,
    "replicas": replicas.main,
    "regression": regression.main,
    "policy": policy.main,
    "publish": publish.main,
    "calls": calls.main,
}


def run(lab: Lab, progress: Progress, options: argparse.Namespace) -> int:
    plan = _plan(options)
    vias = [via for via in options.targets.split(",") if via != "nginx" or lab.nginx]
    names = _names(options.only)
    chosen = [w for w in WORKLOADS if w.name in names and any(row.via in vias for row in w.rows)]
    bench = Bench(lab, progress, vias, plan)
    if START in names and "pactgate" in vias:
        bench.start()
    if GATES in names and "pactgate" in vias:
        bench.gates()
    bench.rounds(chosen, plan.rounds, "round")
    missed_at_first = [result for result in check_goals(bench.measurements, GOALS) if not result.is_met]
    if options.seconds:
        missed_at_first = []
    if missed_at_first:
        _again(bench, chosen, plan, {result.goal.workload for result in missed_at_first})
    progress.clear()
    return _conclude(bench, chosen, missed_at_first, options)


def _plan(options: argparse.Namespace) -> Plan:
    if not options.seconds:
        return QUICK if options.quick else FULL
    rounds = max(_ROUNDS_AT_LEAST, round(options.seconds))
    return Plan(rounds=rounds, seconds=options.seconds / rounds, starts=rounds, idle_s=QUICK.idle_s)


def _names(only: str | None) -> Sequence[str]:
    """The workloads to measure; a group counts for all of its workloads."""
    if only is None:
        return NAMES
    return [name for word in only.split(",") for name in GROUPS.get(word, (word,))]


def _again(bench: Bench, chosen: Sequence[Workload], plan: Plan, missed: set[str]) -> None:
    again = [workload for workload in chosen if workload.name in missed]
    bench.rounds(again, plan.rounds * 2, "a goal was missed, measuring again:")
    if START in missed:
        bench.start()


def _conclude(
    bench: Bench, chosen: Sequence[Workload], missed_at_first: Sequence[GoalResult], options: argparse.Namespace
) -> int:
    measurements = bench.measurements
    goals, aimed = check_goals(measurements, GOALS), check_goals(measurements, AIMS)
    parts = [report.table(chosen, measurements), report.goals(goals), report.aims(aimed)]
    if missed_at_first:
        parts.append(report.remeasured(missed_at_first))
    print("\n\n".join(part for part in parts if part))
    document = report.as_document(measurements, goals, aimed, missed_at_first)
    path = report.write("run", {"options": vars(options), **document})
    print(f"\nwritten to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    if measurements.failed:
        print(f"{measurements.failed} calls failed", file=sys.stderr)
    return 1 if measurements.failed or any(not result.is_met for result in goals) else 0


def main() -> int:
    """Run a command; on SIGTERM too, end the processes that it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _main()
    except KeyboardInterrupt:
        print("\nstopped; nothing written", file=sys.stderr)
        return 130


def _main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        return COMMANDS[sys.argv[1]](sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = ", ".join((*GROUPS, *NAMES))
    parser.add_argument("--quick", action="store_true", help="about a minute instead of six, and less to be trusted")
    parser.add_argument("--only", metavar="NAMES", help=f"comma-separated workloads or groups out of: {known}")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="measure each row for S seconds in all, and once only"
    )
    parser.add_argument("--targets", default="direct,nginx,pactgate", help="what to measure (default: %(default)s)")
    options = parser.parse_args()
    unknown = set(_names(options.only)) - set(NAMES)
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are: {known}")
    if options.seconds is not None and options.seconds <= 0:
        parser.error("--seconds must be more than 0")
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
