"""What is measured. Data only; a new workload is a new entry, and what must come out of it a line in `goals`."""

from __future__ import annotations

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

    def load(self, target: Target, seconds: float, warmup_each: int = 4) -> Load:
        return Load(
            url=target.url,
            tool=target.prefix + ("blob" if self.kind == "blob" else "echo"),
            kind=self.kind,
            era=self.era,
            connections=self.connections,
            seconds=seconds,
            warmup=self.connections * warmup_each,
            size=self.size,
            tools=target.tools if self.kind == "list" else 0,
            repeats=self.repeats,
            tokens=target.tokens,
        )


def _beside(tools: int, answers: str = "json") -> tuple[Place, ...]:
    return tuple(Place(via, via, tools, answers=answers) for via in ("direct", "nginx", "pactgate"))


FEW: Final = Place("1 server, 20 tools", "pactgate", tools=20)
MANY: Final = Place("50 servers, 1000 tools", "pactgate", tools=20, upstreams=50)

MISS: Final = Place("asked every time", "pactgate", tools=23)
HIT: Final = Place("kept", "pactgate", tools=23, is_cached=True)

SILENT: Final = Place("not recorded", "pactgate", tools=23)
RECORDED: Final = Place("both legs recorded", "pactgate", tools=23, is_recorded=True)

ONE: Final = Place("1 process, a core of its own", "pactgate", tokens=32)
TWO: Final = Place("2 workers, all cores", "pactgate", workers=2, tokens=32)
ONE_STDIO: Final = Place("1 process, a core of its own", "pactgate", transport="stdio", tokens=32)
TWO_STDIO: Final = Place("2 workers, all cores", "pactgate", transport="stdio", workers=2, tokens=32)

OVER_STDIO: Final = Place("pactgate", "pactgate", transport="stdio")
OVER_MCP: Final = Place("an MCP server", "pactgate", tools=23)
OVER_REST: Final = Place("a REST endpoint", "pactgate", tools=23, transport="rest")

WORKLOADS: Final = (
    Workload("echo-1", "echo, one caller (legacy)", _beside(23)),
    Workload("echo-1-modern", "echo, one caller (modern)", _beside(23), era="modern"),
    Workload("echo-32", "echo, 32 callers at once (legacy)", _beside(23), connections=32),
    Workload("echo-32-modern", "echo, 32 callers at once (modern)", _beside(23), era="modern", connections=32),
    Workload(
        "sse-32", "echo, answered as an event stream, 32 callers at once (legacy)", _beside(23, "sse"), connections=32
    ),
    Workload("blob-1k", "a result of 1 KiB, one caller", _beside(23), kind="blob", size=1024),
    Workload("blob-256k", "a result of 256 KiB, one caller", _beside(23), kind="blob", size=256 * 1024),
    Workload("list-23", "tools/list, 23 tools, one caller", _beside(23), kind="list"),
    Workload("list-1000", "tools/list, 1000 tools, one caller", _beside(1000), kind="list"),
    Workload("stdio-1", "echo over a stdio upstream, one caller (CPU includes the child)", (OVER_STDIO,)),
    Workload(
        "stdio-32",
        "echo over a stdio upstream, 32 callers at once (CPU includes the child)",
        (OVER_STDIO,),
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
    Workload(
        "audit-32",
        "echo without and with an audit log, 32 callers at once",
        (Place("no audit log", "pactgate"), Place("audit log", "pactgate", is_audited=True)),
        connections=32,
    ),
    Workload("workers", "echo, 32 callers with tokens at once", (ONE, TWO), connections=32),
    Workload(
        "workers-stdio",
        "echo over one stdio upstream, 32 callers with tokens at once (CPU includes the child)",
        (ONE_STDIO, TWO_STDIO),
        connections=32,
    ),
    Workload("flat", "echo, 32 callers at once, few and many servers", (FEW, MANY), connections=32),
)
