"""The measurements of one run of the benchmark, their medians, and the comparison with goals and aims. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct

from bench.gates import RUNTIME, GateCost
from bench.goals import Figures, Goal
from bench.load import LoadResult
from bench.tracing import ALL, OFF
from bench.workloads import FEW, GATES, MANY, START

Results = dict[str, dict[str, list[LoadResult]]]


class GatewayStart(Struct, frozen=True):
    """One start of the gateway: seconds to the first answered call, and memory when idle afterwards."""

    first_call_s: float
    rss_bytes: int
    pss_bytes: int


class Measurements(Struct):
    """Everything that was measured in one run, by workload and row."""

    results: Results = {}
    starts: list[GatewayStart] = []
    further_server_bytes: list[float] = []
    gates: list[GateCost] = []

    @property
    def names(self) -> set[str]:
        return {*self.results, *([START] if self.starts else []), *([GATES] if self.gates else [])}

    @property
    def failed(self) -> int:
        return sum(run.failed for rows in self.results.values() for runs in rows.values() for run in runs)


class GoalResult(Struct, frozen=True):
    """A goal and the measured value."""

    goal: Goal
    value: float

    @property
    def is_met(self) -> bool:
        return self.goal.is_met_by(self.value)


def figures(measurements: Measurements) -> Figures:
    starts, gates = measurements.starts, measurements.gates
    return Figures(
        cpu_us=_medians(measurements.results, "cpu_us"),
        first_call_s=statistics.median(start.first_call_s for start in starts) if starts else None,
        idle_rss_bytes=statistics.median(start.rss_bytes for start in starts) if starts else None,
        many_to_few=_many_to_few(measurements.results.get("flat", {})),
        gates_us=sum(gate.cpu_us for gate in gates if gate.name in RUNTIME) if gates else None,
        tracing_off_us=_named(gates, OFF),
        tracing_us=_named(gates, ALL),
        calls_per_s=_medians(measurements.results, "calls_per_s"),
        further_server_bytes=median(measurements.further_server_bytes) if measurements.further_server_bytes else None,
    )


def _named(gates: Sequence[GateCost], name: str) -> float | None:
    return next((gate.cpu_us for gate in gates if gate.name == name), None)


def check_goals(measurements: Measurements, goals: Sequence[Goal]) -> list[GoalResult]:
    """The results of those goals whose figures were measured."""
    found, names = figures(measurements), measurements.names
    values = [(goal, goal.value(found)) for goal in goals if goal.workload in names]
    return [GoalResult(goal, value) for goal, value in values if value is not None]


def median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else 0.0


def _medians(results: Results, member: str) -> dict[str, dict[str, float]]:
    return {
        name: {row: median(getattr(run, member) for run in runs) for row, runs in rows.items()}
        for name, rows in results.items()
    }


def _many_to_few(rows: dict[str, list[LoadResult]]) -> float | None:
    """The median ratio of neighbouring runs, because the load of the machine is the same for both."""
    if not {FEW.label, MANY.label} <= rows.keys():
        return None
    pairs = zip(rows[FEW.label], rows[MANY.label], strict=False)
    return statistics.median((many.cpu_us or 0.0) / (few.cpu_us or 1.0) for few, many in pairs)
