"""Renders the measurements as tables and as JSON. Pure, except for the function that writes the file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from bench.load import LoadResult
from bench.measurements import GoalResult, Measurements, median
from bench.workloads import MIB, Workload

RESULTS: Final = Path(__file__).resolve().parent / "results"
_LEGEND: Final = (
    "CPU us: CPU time per call of the row's own processes (direct: of the server); x: the ratio of CPU times.\n"
    "added us: p50 minus that of the direct call."
)
_COMPARED: Final = ("nginx", "direct")


def table(workloads: Sequence[Workload], measurements: Measurements, compared: Sequence[str] = _COMPARED) -> str:
    measured = [(workload, measurements.results.get(workload.name)) for workload in workloads]
    blocks = [_block(workload, rows, compared) for workload, rows in measured if rows]
    if measurements.starts:
        first = statistics.median(start.first_call_s for start in measurements.starts)
        memory = statistics.median(start.rss_bytes for start in measurements.starts) / MIB
        shared = statistics.median(start.pss_bytes for start in measurements.starts) / MIB
        blocks.append(
            f"start and memory, {len(measurements.starts)} starts\n"
            f"  first answered call after {first * 1000:.0f} ms; idle {memory:.1f} MiB resident ({shared:.1f} MiB PSS)\n"
            f"  each further HTTP server {median(measurements.further_server_bytes) / MIB:.3f} MiB resident"
        )
    if measurements.gates:
        costs = "".join(f"\n  {gate.name:<14}{gate.cpu_us:6.2f} us" for gate in measurements.gates)
        blocks.append(f"gates of a tool call, CPU of each (for a tool whose results are cached){costs}")
    return "\n\n".join([_LEGEND, *blocks])


def goals(judged: Sequence[GoalResult]) -> str:
    """The goals, met or missed."""
    lines = [f"  {'met   ' if result.is_met else 'MISSED'}  {_sentence(result)}" for result in judged]
    return "\n".join(["goals", *lines]) if lines else ""


def aims(judged: Sequence[GoalResult]) -> str:
    """The aims, reached or not; they do not decide the exit code."""
    lines = [f"  {'reached' if result.is_met else 'not yet'}  {_sentence(result)}" for result in judged]
    return "\n".join(["aims (they do not decide the exit code)", *lines]) if lines else ""


def remeasured(first: Sequence[GoalResult]) -> str:
    """The first figures of missed goals. Only misses are measured again, which favours passing, so they stay visible."""
    lines = [f"  {result.goal.title}: {result.value:.2f} {result.goal.unit} at first" for result in first]
    return "missed at first, then measured again (the figures above are of all rounds together)\n" + "\n".join(lines)


def write(name: str, document: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write one file of results, with the time and the machine."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{name}.json"
    stamped = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": machine(), **document}
    path.write_text(json.dumps(stamped, indent=1) + "\n")
    return path


def as_document(
    measurements: Measurements,
    goals: Sequence[GoalResult],
    aimed: Sequence[GoalResult],
    missed_at_first: Sequence[GoalResult] = (),
) -> dict[str, Any]:
    return {
        "workloads": {
            name: {row: [structs.asdict(run) for run in runs] for row, runs in rows.items()}
            for name, rows in measurements.results.items()
        },
        "starts": [structs.asdict(start) for start in measurements.starts],
        "furtherServerBytes": measurements.further_server_bytes,
        "gates": {gate.name: gate.cpu_us for gate in measurements.gates},
        "missedAtFirst": [_judged(result) for result in missed_at_first],
        "goals": [_judged(result) for result in goals],
        "aims": [_judged(result) for result in aimed],
    }


def machine() -> dict[str, Any]:
    names = ("pactgate", "httptools", "msgspec", "uvloop", "jsonschema-rs")
    versions = {dist.metadata["Name"].lower().replace("_", "-"): dist.version for dist in metadata.distributions()}
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memoryMib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB,
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "packages": {name: versions[name] for name in names if name in versions},
        "commit": _commit(),
    }


def _sentence(result: GoalResult) -> str:
    return f"{result.goal.title}: {result.value:.2f} {result.goal.unit} ({result.goal.bound})"


def _judged(result: GoalResult) -> dict[str, Any]:
    goal = result.goal
    return {
        "title": goal.title,
        "value": result.value,
        "limit": goal.limit,
        "unit": goal.unit,
        "isAtLeast": goal.is_at_least,
        "met": result.is_met,
    }


def _block(workload: Workload, rows: dict[str, list[LoadResult]], compared: Sequence[str]) -> str:
    width = max(len(row) for row in rows) + 2
    cpu = {row: median(run.cpu_us for run in runs) for row, runs in rows.items()}
    p50 = {row: median(run.p50_us for run in runs) for row, runs in rows.items()}
    columns = ("CPU us", *(f"x {name}" for name in compared), "p50 us", "added us", "p99 us", "calls/s", "failed")
    lines = [workload.title, "  " + " " * width + "".join(f"{column:>11}" for column in columns)]
    for row, runs in rows.items():
        cells = (
            f"{cpu[row]:.1f}",
            *(_ratio(cpu[row], cpu.get(name)) for name in compared),
            f"{p50[row]:.0f}",
            f"{p50[row] - p50['direct']:+.0f}" if "direct" in p50 and row != "direct" else "-",
            f"{median(run.p99_us for run in runs):.0f}",
            f"{median(run.calls_per_s for run in runs):.0f}",
            str(sum(run.failed for run in runs)),
        )
        lines.append(f"  {row:<{width}}" + "".join(f"{cell:>11}" for cell in cells))
        failure = next((run.last_failure for run in runs if run.failed), None)
        if failure:
            lines.append(f"    last failure: {failure}")
    return "\n".join(lines)


def _ratio(value: float, reference: float | None) -> str:
    return f"{value / reference:.1f}" if reference else "-"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except OSError:
        return None
    return said.stdout.strip() or None
