"""The figures as a table for people and as JSON for machines. Pure, except for the function that writes the file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from bench.gates import RUNTIME, GateCost
from bench.load import Measured
from bench.workloads import GATES, GOALS, MIB, START, Figures, Goal, Workload

_LEGEND: Final = (
    "CPU us: processor time per call of the row's own processes (for direct: of the upstream); x: that, compared.\n"
    "added us: p50 minus that of the direct call."
)
_COLUMNS: Final = ("CPU us", "x nginx", "x direct", "p50 us", "added us", "p99 us", "calls/s", "failed")


class Start(Struct, frozen=True):
    """One start of the gateway: seconds to the first answered call, memory when idle afterwards."""

    first_call_s: float
    rss_bytes: int
    pss_bytes: int


class Verdict(Struct, frozen=True):
    goal: Goal
    value: float | None

    @property
    def is_met(self) -> bool:
        return self.value is not None and self.value <= self.goal.limit


Results = dict[str, dict[str, list[Measured]]]


def figures(results: Results, starts: Sequence[Start], gates: Sequence[GateCost] = ()) -> Figures:
    cpu = {name: {row: _median(m.cpu_us for m in runs) for row, runs in rows.items()} for name, rows in results.items()}
    many_to_few = None
    if "flat" in results:
        few, many = results["flat"].values()
        pairs = zip(few, many, strict=False)
        many_to_few = statistics.median((b.cpu_us or 0.0) / (a.cpu_us or 1.0) for a, b in pairs)
    return Figures(
        cpu_us=cpu,
        first_call_s=statistics.median(start.first_call_s for start in starts) if starts else None,
        idle_rss_bytes=statistics.median(start.rss_bytes for start in starts) if starts else None,
        many_to_few=many_to_few,
        gates_us=sum(gate.cpu_us for gate in gates if gate.name in RUNTIME) if gates else None,
    )


def judge(found: Figures, measured: Iterable[str]) -> list[Verdict]:
    """Every goal of what was measured."""
    names = set(measured)
    return [Verdict(goal, goal.value(found)) for goal in GOALS if goal.workload in names]


def table(
    workloads: Sequence[Workload], results: Results, starts: Sequence[Start], gates: Sequence[GateCost] = ()
) -> str:
    blocks = [_block(workload, results[workload.name]) for workload in workloads if workload.name in results]
    if starts:
        memory = statistics.median(start.rss_bytes for start in starts) / MIB
        shared = statistics.median(start.pss_bytes for start in starts) / MIB
        first = statistics.median(start.first_call_s for start in starts)
        blocks.append(
            f"start and memory, {len(starts)} starts\n"
            f"  first answered call after {first * 1000:.0f} ms; idle {memory:.1f} MiB resident ({shared:.1f} MiB PSS)"
        )
    if gates:
        costs = "".join(f"\n  {gate.name:<14}{gate.cpu_us:6.2f} us" for gate in gates)
        blocks.append(f"gates of a tool call, CPU of each (a kept tool, so that recall and remember work){costs}")
    return "\n\n".join([_LEGEND, *blocks])


def verdicts(judged: Sequence[Verdict]) -> str:
    lines = []
    for verdict in judged:
        goal = verdict.goal
        value = "not measured" if verdict.value is None else f"{verdict.value:.2f} {goal.unit}"
        word = "met   " if verdict.is_met else "MISSED"
        lines.append(f"  {word}  {goal.title}: {value} (at most {goal.limit:g} {goal.unit})")
    return "goals\n" + "\n".join(lines) if lines else ""


def remeasured(first: Sequence[Verdict]) -> str:
    """Only misses are measured again, which favours passing, so what the first attempt gave stays visible."""
    lines = [f"  {v.goal.title}: {v.value:.2f} {v.goal.unit} at first" for v in first if v.value is not None]
    return "missed at first, then measured again (the figures above are of all rounds together)\n" + "\n".join(lines)


def write(
    folder: Path,
    options: dict[str, Any],
    results: Results,
    starts: Sequence[Start],
    judged: Sequence[Verdict],
    missed_at_first: Sequence[Verdict] = (),
    gates: Sequence[GateCost] = (),
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime("%Y%m%d-%H%M%S.json", time.gmtime())
    document = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "options": options,
        "workloads": {
            name: {row: [structs.asdict(run) for run in runs] for row, runs in rows.items()}
            for name, rows in results.items()
        },
        "starts": [structs.asdict(start) for start in starts],
        "gates": {gate.name: gate.cpu_us for gate in gates},
        "missedAtFirst": [{"title": v.goal.title, "value": v.value, "limit": v.goal.limit} for v in missed_at_first],
        "goals": [
            {"title": v.goal.title, "value": v.value, "limit": v.goal.limit, "unit": v.goal.unit, "met": v.is_met}
            for v in judged
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    names = ("pactgate", "httptools", "msgspec", "uvloop")
    versions = {dist.metadata["Name"]: dist.version for dist in metadata.distributions()}
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "packages": {name: versions.get(name) for name in names},
    }


def _block(workload: Workload, rows: dict[str, list[Measured]]) -> str:
    width = max(len(row) for row in rows) + 2
    cpu = {row: _median(run.cpu_us for run in runs) for row, runs in rows.items()}
    p50 = {row: _median(run.p50_us for run in runs) for row, runs in rows.items()}
    lines = [workload.title, "  " + " " * width + "".join(f"{column:>10}" for column in _COLUMNS)]
    for row, runs in rows.items():
        cells = (
            f"{cpu[row]:.1f}",
            _ratio(cpu[row], cpu.get("nginx")),
            _ratio(cpu[row], cpu.get("direct")),
            f"{p50[row]:.0f}",
            f"{p50[row] - p50['direct']:+.0f}" if "direct" in p50 and row != "direct" else "-",
            f"{_median(run.p99_us for run in runs):.0f}",
            f"{_median(run.calls_per_s for run in runs):.0f}",
            str(sum(run.failed for run in runs)),
        )
        lines.append(f"  {row:<{width}}" + "".join(f"{cell:>10}" for cell in cells))
        failure = next((run.last_failure for run in runs if run.failed), None)
        if failure:
            lines.append(f"    last failure: {failure}")
    return "\n".join(lines)


def _ratio(value: float, reference: float | None) -> str:
    return f"{value / reference:.1f}" if reference else "-"


def _median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else 0.0


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def measured_names(results: Results, starts: Sequence[Start], gates: Sequence[GateCost] = ()) -> list[str]:
    return [*results, *([START] if starts else []), *([GATES] if gates else [])]
