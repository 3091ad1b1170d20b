"""`python -m bench`: the gateway beside the same calls sent directly and through nginx, in interleaved rounds.

A goal that is missed is measured again with twice the rounds, all rounds count, and the report says so: a pass after
that is weaker than a pass at once. Exit code 0 when every goal of what was measured is met, 1 when one is missed or calls
failed, 2 when it could not run. Aims are reported, reached or not, and do not decide it.
What is shown are medians. Compare CPU microseconds, and ratios within one run; wall-clock figures move with whatever
else the machine does.

Further words, each with its own --help:
  python -m bench peers       other gateways in front of the same upstream
  python -m bench soak        half of capacity for a long time: failed calls, memory, descriptors
  python -m bench regression  what a call costs over a direct one, against what is recorded
  python -m bench publish     write the figures of the latest runs into docs/performance.*
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench import publish, regression, report, soak
from bench.goals import AIMS, GOALS
from bench.lab import Lab, LabError
from bench.load import LoadError
from bench.outcome import Verdict, judge
from bench.peers import compare
from bench.rounds import Bench, Plan, Progress
from bench.workloads import GATES, START, WORKLOADS, Workload

FULL: Final = Plan(rounds=5, seconds=1.0, starts=5, idle_s=1.0)
QUICK: Final = Plan(rounds=2, seconds=0.25, starts=2, idle_s=0.3)
NAMES: Final = (*(workload.name for workload in WORKLOADS), START, GATES)
WORDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "peers": compare.main,
    "soak": soak.main,
    "regression": regression.main,
    "publish": publish.main,
}


def run(lab: Lab, progress: Progress, options: argparse.Namespace) -> int:
    plan = QUICK if options.quick else FULL
    vias = [via for via in options.targets.split(",") if via != "nginx" or lab.nginx]
    names = options.only.split(",") if options.only else NAMES
    chosen = [w for w in WORKLOADS if w.name in names and any(row.via in vias for row in w.rows)]
    bench = Bench(lab, progress, vias, plan)
    if START in names and "pactgate" in vias:
        bench.start()
    if GATES in names and "pactgate" in vias:
        bench.gates()
    bench.rounds(chosen, plan.rounds, "round")
    missed_at_first = [verdict for verdict in judge(bench.outcome, GOALS) if not verdict.is_met]
    if missed_at_first:
        _again(bench, chosen, plan, {verdict.goal.workload for verdict in missed_at_first})
    progress.clear()
    return _conclude(bench, chosen, missed_at_first, options)


def _again(bench: Bench, chosen: Sequence[Workload], plan: Plan, missed: set[str]) -> None:
    again = [workload for workload in chosen if workload.name in missed]
    bench.rounds(again, plan.rounds * 2, "a goal was missed, measuring again:")
    if START in missed:
        bench.start()


def _conclude(
    bench: Bench, chosen: Sequence[Workload], missed_at_first: Sequence[Verdict], options: argparse.Namespace
) -> int:
    outcome = bench.outcome
    goals, aimed = judge(outcome, GOALS), judge(outcome, AIMS)
    parts = [report.table(chosen, outcome), report.verdicts(goals), report.aims(aimed)]
    if missed_at_first:
        parts.append(report.remeasured(missed_at_first))
    print("\n\n".join(part for part in parts if part))
    document = report.as_document(outcome, goals, aimed, missed_at_first)
    path = report.write("run", {"options": vars(options), **document})
    print(f"\nwritten to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    if outcome.failed:
        print(f"{outcome.failed} calls failed", file=sys.stderr)
    return 1 if outcome.failed or any(not verdict.is_met for verdict in goals) else 0


def main() -> int:
    """Ends what it started also when it is told to end itself."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _main()
    except KeyboardInterrupt:
        print("\nstopped; nothing written", file=sys.stderr)
        return 130


def _main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in WORDS:
        return WORDS[sys.argv[1]](sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="about a minute instead of four, and less to be trusted")
    parser.add_argument("--only", metavar="NAMES", help=f"comma-separated workloads out of: {', '.join(NAMES)}")
    parser.add_argument("--targets", default="direct,nginx,pactgate", help="what to measure (default: %(default)s)")
    options = parser.parse_args()
    unknown = set((options.only or START).split(",")) - set(NAMES)
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
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
