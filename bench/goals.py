"""The goals and aims of the benchmark, as data.

A *goal* is a promise: `make bench` fails when a goal is missed. An *aim* is a figure to reach later: each run reports whether it
is reached, and it does not decide the exit code. An aim that is reached for good becomes a goal when its line moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from bench.lab import Row
from bench.workloads import (
    GATES,
    HIT,
    MIB,
    MISS,
    NOBODY,
    NOT_RECORDED,
    OVER_MCP,
    OVER_REST,
    OWN,
    RECORDED,
    RECORDING_US,
    SHARED,
    START,
)

OURS: Final = "pactgate"


class Figures(Struct, frozen=True):
    """Medians of a run: CPU time and calls per second by workload and row, start, memory, growth with servers."""

    cpu_us: dict[str, dict[str, float]]
    first_call_s: float | None = None
    idle_rss_bytes: float | None = None
    many_to_few: float | None = None
    gates_us: float | None = None
    tracing_off_us: float | None = None
    tracing_us: float | None = None
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
    return lambda figures: _quotient(figures.calls_per_s.get("mixed-32", {}), OURS, peer)


def _quotient(rows: dict[str, float], row: str, of: str) -> float | None:
    return rows[row] / rows[of] if row in rows and rows.get(of) else None


def _rest_over_mcp(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("rest-32", {})
    return rows[OVER_REST.label] - rows[OVER_MCP.label] if {OVER_REST.label, OVER_MCP.label} <= rows.keys() else None


def _recording(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("recorded", {})
    return (
        rows[RECORDED.label] - rows[NOT_RECORDED.label] if {RECORDED.label, NOT_RECORDED.label} <= rows.keys() else None
    )


def _token_cost(figures: Figures) -> float | None:
    with_token, without = (figures.cpu_us.get(name, {}).get(OURS) for name in ("aspect-jwt", "fixed-32"))
    return None if with_token is None or without is None else with_token - without


def _sign_in_cost(row: Row) -> Callable[[Figures], float | None]:
    def cost(figures: Figures) -> float | None:
        rows = figures.cpu_us.get("signed-in", {})
        return rows[row.label] - rows[NOBODY.label] if {row.label, NOBODY.label} <= rows.keys() else None

    return cost


def _mib(value: float | None) -> float | None:
    return None if value is None else value / MIB


def _rss(figures: Figures) -> float | None:
    return _mib(figures.idle_rss_bytes)


def _further(figures: Figures) -> float | None:
    return _mib(figures.further_server_bytes)


GOALS: Final = (
    Goal("mixed-32", "mixed, 32 clients (legacy), CPU per call", 60.0, "us", _cpu("mixed-32")),
    Goal("mixed-32", "mixed, 32 clients (legacy), CPU over nginx's", 3.0, "x", _share("mixed-32", OURS, "nginx")),
    Goal("mixed-32-modern", "mixed, 32 clients (modern), CPU per call", 60.0, "us", _cpu("mixed-32-modern")),
    Goal(
        "mixed-32-modern",
        "mixed, 32 clients (modern), CPU over nginx's",
        3.0,
        "x",
        _share("mixed-32-modern", OURS, "nginx"),
    ),
    Goal("mixed-1", "mixed, one client (legacy), CPU per call", 150.0, "us", _cpu("mixed-1")),
    Goal("stdio-32", "stdio server and child, 32 clients, CPU per call", 70.0, "us", _cpu("stdio-32")),
    Goal("cache", "cached response, 32 clients, CPU per call", 35.0, "us", _cpu("cache", HIT.label)),
    Goal(
        "cache", "cached response over one not cached, CPU per call", 0.5, "x", _share("cache", HIT.label, MISS.label)
    ),
    Goal("blob-256k", "result of 256 KiB, CPU per call", 400.0, "us", _cpu("blob-256k")),
    Goal("list-1000", "tools/list of 1000 tools, CPU per call", 1000.0, "us", _cpu("list-1000")),
    Goal("rest-32", "REST call over MCP call, more CPU", 60.0, "us", _rest_over_mcp),
    Goal(GATES, "gates for limits, schema, cache, metadata: CPU", 15.0, "us", lambda f: f.gates_us),
    Goal(GATES, "times of a call, tracing off: CPU", 0.3, "us", lambda f: f.tracing_off_us),
    Goal(GATES, "every call traced, before it is sent: CPU", 12.0, "us", lambda f: f.tracing_us),
    Goal("flat", "50 servers / 1000 tools over 1 / 20, CPU per call", 1.05, "x", lambda figures: figures.many_to_few),
    Goal(START, "resident memory, idle", 45.0, "MiB", _rss),
    Goal(START, "start to first answered call", 0.4, "s", lambda figures: figures.first_call_s),
)

AIMS: Final = (
    Goal("recorded", "recording both sides, more CPU per call", RECORDING_US, "us", _recording),
    Goal("mixed-32", "calls/s over FastMCP's best setting", 40.0, "x", _rate_over("fastmcp-shared"), is_at_least=True),
    Goal("mixed-32", "calls/s over FastMCP's default", 400.0, "x", _rate_over("fastmcp"), is_at_least=True),
    Goal("aspect-jwt", "a verified access token, more CPU per call", 1.5, "us", _token_cost),
    Goal("signed-in", "a sign-in at the server for all clients, more CPU per call", 1.0, "us", _sign_in_cost(SHARED)),
    Goal("signed-in", "one for each client, more CPU per call", 1.0, "us", _sign_in_cost(OWN)),
    Goal(START, "resident memory per further HTTP server", 0.2, "MiB", _further),
)
