"""What is measured, and what must come out of it. Data only; a new workload is a new entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from bench.lab import Place, Target
from bench.load import Load

MIB: Final = 1024 * 1024
START: Final = "start"
GATES: Final = "gates"
RECORDING_US: Final = 20.0


class Workload(Struct, frozen=True):
    name: str
    title: str
    rows: tuple[Place, ...]
    kind: str = "echo"
    era: str = "legacy"
    connections: int = 1
    size: int = 32
    repeats: bool = False

    def load(self, target: Target, seconds: float) -> Load:
        return Load(
            url=target.url,
            tool=target.prefix + ("blob" if self.kind == "blob" else "echo"),
            kind=self.kind,
            era=self.era,
            connections=self.connections,
            seconds=seconds,
            warmup=self.connections * 4,
            size=self.size,
            tools=target.tools if self.kind == "list" else 0,
            repeats=self.repeats,
        )


def _beside(tools: int) -> tuple[Place, ...]:
    return tuple(Place(via, via, tools) for via in ("direct", "nginx", "pactgate"))


FEW: Final = Place("1 server, 20 tools", "pactgate", tools=20)
MANY: Final = Place("50 servers, 1000 tools", "pactgate", tools=20, upstreams=50)

MISS: Final = Place("asked every time", "pactgate", tools=23)
HIT: Final = Place("kept", "pactgate", tools=23, is_cached=True)

SILENT: Final = Place("not recorded", "pactgate", tools=23)
RECORDED: Final = Place("both legs recorded", "pactgate", tools=23, is_recorded=True)

OVER_MCP: Final = Place("an MCP server", "pactgate", tools=23)
OVER_REST: Final = Place("a REST endpoint", "pactgate", tools=23, transport="rest")

WORKLOADS: Final = (
    Workload("echo-1", "echo, one caller after the other (legacy)", _beside(23)),
    Workload("echo-32", "echo, 32 callers at once (legacy)", _beside(23), connections=32),
    Workload("echo-32-modern", "echo, 32 callers at once (modern)", _beside(23), era="modern", connections=32),
    Workload("blob-256k", "a result of 256 KiB, one caller", _beside(23), kind="blob", size=256 * 1024),
    Workload("list-23", "tools/list, 23 tools, one caller", _beside(23), kind="list"),
    Workload("list-1000", "tools/list, 1000 tools, one caller", _beside(1000), kind="list"),
    Workload(
        "stdio-32",
        "echo over a stdio upstream, 32 callers at once (CPU includes the child)",
        (Place("pactgate + child", "pactgate", transport="stdio"),),
        connections=32,
    ),
    Workload(
        "rest-32",
        "echo over MCP and over REST, 32 callers at once (modern)",
        (OVER_MCP, OVER_REST),
        era="modern",
        connections=32,
    ),
    Workload(
        "cache", "the same echo again, kept and not kept, 32 callers at once", (MISS, HIT), connections=32, repeats=True
    ),
    Workload("recorded", "echo, 32 callers at once, recorded and not", (SILENT, RECORDED), connections=32),
    Workload("flat", "echo, 32 callers at once, few and many servers", (FEW, MANY), connections=32),
)


class Figures(Struct, frozen=True):
    """Medians of what was measured: processor time by workload and row, start, memory, and the ratio of many to few."""

    cpu_us: dict[str, dict[str, float]]
    first_call_s: float | None
    idle_rss_bytes: float | None
    many_to_few: float | None
    gates_us: float | None = None


class Goal(Struct, frozen=True):
    workload: str
    title: str
    limit: float
    unit: str
    read: Callable[[Figures], float | None]

    def value(self, figures: Figures) -> float | None:
        return self.read(figures)


def _hit_to_miss(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("cache", {})
    return rows[HIT.label] / rows[MISS.label] if {HIT.label, MISS.label} <= rows.keys() else None


def _rest_over_mcp(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("rest-32", {})
    return rows[OVER_REST.label] - rows[OVER_MCP.label] if {OVER_REST.label, OVER_MCP.label} <= rows.keys() else None


def _recording(figures: Figures) -> float | None:
    rows = figures.cpu_us.get("recorded", {})
    return rows[RECORDED.label] - rows[SILENT.label] if {RECORDED.label, SILENT.label} <= rows.keys() else None


def _echo(workload: str) -> Callable[[Figures], float | None]:
    return lambda figures: figures.cpu_us.get(workload, {}).get("pactgate")


GOALS: Final = (
    Goal("echo-32", "CPU per echo call, 32 legacy callers", 150.0, "us", _echo("echo-32")),
    Goal("echo-32-modern", "CPU per echo call, 32 modern callers", 150.0, "us", _echo("echo-32-modern")),
    Goal("cache", "a kept answer over one that is asked for, CPU per call", 0.5, "x", _hit_to_miss),
    Goal("rest-32", "a REST tool over an MCP tool, both over HTTP, more CPU per call", 60.0, "us", _rest_over_mcp),
    Goal("recorded", "recording both legs, more CPU per call", RECORDING_US, "us", _recording),
    Goal(GATES, "limits, schema, cache, size and stamp together, CPU per call", 15.0, "us", lambda f: f.gates_us),
    Goal("flat", "50 servers / 1000 tools over 1 / 20, CPU per call", 1.10, "x", lambda figures: figures.many_to_few),
    Goal(
        START,
        "resident memory, idle",
        60.0,
        "MiB",
        lambda figures: None if figures.idle_rss_bytes is None else figures.idle_rss_bytes / MIB,
    ),
    Goal(START, "start to first answered call", 1.0, "s", lambda figures: figures.first_call_s),
)
