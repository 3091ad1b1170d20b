"""`python -m chaos`: one run, or several with consecutive seeds. Exit code 0 when every promise held, 1 when one was broken, 2 when it
could not run."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys

import msgspec

from chaos.run import ChaosError, Outcome, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long each run takes (default: %(default)g)")
    parser.add_argument("--seed", type=int, help="repeats the faults of an earlier run (default: a new one)")
    parser.add_argument("--runs", type=int, default=1, help="how many runs, each with the next seed (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    first = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    is_broken = False
    for seed in range(first, first + options.runs):
        print(f"seed {seed}: {options.minutes:g} min; repeat with --seed {seed}", file=sys.stderr, flush=True)
        try:
            outcome = asyncio.run(run(seed, options.minutes * 60, _say))
        except ChaosError as problem:
            print(f"chaos: {problem}", file=sys.stderr)
            return 2
        if options.json:
            print(json.dumps(msgspec.to_builtins(outcome)))
        else:
            _show(outcome)
        is_broken = is_broken or bool(outcome.problems)
    return 1 if is_broken else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(outcome: Outcome) -> None:
    print(f"seed {outcome.seed}: {outcome.calls} calls beside {outcome.faults} faults in {outcome.seconds:g} s")
    for name, count in outcome.outcomes.items():
        print(f"  {count:8} {name}")
    print(
        f"  steady servers: p50 {outcome.steady_p50_ms:.1f} ms, p99 {outcome.steady_p99_ms:.1f} ms\n"
        f"  memory {outcome.first_rss_bytes / 2**20:.1f} -> {outcome.last_rss_bytes / 2**20:.1f} MiB, "
        f"descriptors {outcome.further_descriptors:+g}, audit records {outcome.audit_records}"
    )
    for problem in outcome.problems:
        print(f"PROBLEM: {problem}")
    if not outcome.problems:
        print("  nothing lost, nothing crossed, nobody left behind")


if __name__ == "__main__":
    sys.exit(main())
