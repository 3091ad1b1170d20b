"""What must come out, and what is aimed at. Data only.

A *goal* is a promise that holds: missing one makes `make bench` fail. An *aim* is where the data plane is meant to get; whether it is
reached is reported each time, and does not decide the exit code, so that a figure that is not there yet is neither hidden nor a
light that is always red. An aim that is reached for good becomes a goal by moving its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from bench.workloads import GATES, HIT, MIB, MISS, OVER_MCP, OVER_REST, RECORDED, RECORDING_US, SILENT, START

OURS: Final = "pactgate"


class Figures(Struct, frozen=True):
    """Medians of what was measured: processor time and rate by workload and row, start, memory, growth with servers."""

    cpu_us: dict[str, dict[str, float]]
    first_call_s: float | None = None
    idle_rss_bytes: float | None = None
    many_to_few: float | None = None
    gates_us: float | None = None
    calls_per_s: dict[str, dict[str, float]] = {}
    further_server_bytes: float | None = None


class Goal(Struct, frozen=True):
    workload: str
    title: str
    limit: float
    unit: str
    read: Callable[[Figures], float | None]
    is_at_least: bool = False

    def value(self, figures: Figures) -> float | None:
        return self.read(figures)

    def is_met_by(self, value: float) -> bool:
        return value >= self.limit if self.is_at_least else value <= self.limit

    @property
    def bound(self) -> str:
        return f"at {'least' if self.is_at_least else 'most'} {self.limit:g} {self.unit}"


def _cpu(workload: str, row: str = OURS) -> Callable[[Figures], float | None]:
    return lambda figures: figures.cpu_us.get(workload, {}).get(row)


def _share(workload: str, row: str, of: str) -> Callable[[Figures], float | None]:
    return lambda figures: _quotient(figures.cpu_us.get(workload, {}), row, of)


def _rate_over(peer: str) -> Callable[[Figures], float | None]:
    return lambda figures: _quotient(figures.calls_per_s.get("echo-32", {}), OURS, peer)


def _quotient(rows: dict[str, float], row: str, of: str) -> float | None:
    return rows[row] / rows[of] if row in rows and rows.get(of) else None


def _rest_over_mcp(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("rest-32", {})
    return rows[OVER_REST.label] - rows[OVER_MCP.label] if {OVER_REST.label, OVER_MCP.label} <= rows.keys() else None


def _recording(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("recorded", {})
    return rows[RECORDED.label] - rows[SILENT.label] if {RECORDED.label, SILENT.label} <= rows.keys() else None


def _mib(value: float | None) -> float | None:
    return None if value is None else value / MIB


def _rss(figures: Figures) -> float | None:
    return _mib(figures.idle_rss_bytes)


def _further(figures: Figures) -> float | None:
    return _mib(figures.further_server_bytes)


GOALS: Final = (
    Goal("echo-32", "CPU per echo call, 32 legacy callers", 100.0, "us", _cpu("echo-32")),
    Goal("echo-32-modern", "CPU per echo call, 32 modern callers", 100.0, "us", _cpu("echo-32-modern")),
    Goal("echo-32", "tools/call, 32 callers, CPU over nginx's", 3.3, "x", _share("echo-32", OURS, "nginx")),
    Goal("stdio-32", "stdio upstream, child included, CPU per call", 75.0, "us", _cpu("stdio-32")),
    Goal("cache", "kept answer, CPU per call", 40.0, "us", _cpu("cache", HIT.label)),
    Goal("list-1000", "tools/list of 1000 tools, CPU per call", 1000.0, "us", _cpu("list-1000")),
    Goal(
        "cache",
        "a kept answer over a fresh one, CPU per call",
        0.5,
        "x",
        _share("cache", HIT.label, MISS.label),
    ),
    Goal("rest-32", "a REST call over an MCP call, more CPU", 60.0, "us", _rest_over_mcp),
    Goal(GATES, "limits, schema, cache, size, stamp: CPU together", 15.0, "us", lambda f: f.gates_us),
    Goal("flat", "50 servers / 1000 tools over 1 / 20, CPU per call", 1.05, "x", lambda figures: figures.many_to_few),
    Goal(START, "resident memory, idle", 45.0, "MiB", _rss),
    Goal(START, "start to first answered call", 0.4, "s", lambda figures: figures.first_call_s),
)

AIMS: Final = (
    Goal("recorded", "recording both legs, more CPU per call", RECORDING_US, "us", _recording),
    Goal("echo-32", "tools/call, 32 callers, CPU per call", 60.0, "us", _cpu("echo-32")),
    Goal("echo-1", "tools/call, one caller, CPU per call", 180.0, "us", _cpu("echo-1")),
    Goal("echo-32", "calls/s over FastMCP's best setting", 40.0, "x", _rate_over("fastmcp-shared"), is_at_least=True),
    Goal("echo-32", "calls/s over FastMCP's default", 400.0, "x", _rate_over("fastmcp"), is_at_least=True),
    Goal("blob-256k", "result of 256 KiB, CPU per call", 400.0, "us", _cpu("blob-256k")),
    Goal(START, "resident memory per further HTTP server", 0.2, "MiB", _further),
)
