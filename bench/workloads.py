"""The workloads of the benchmark, as data. A new workload is a new entry here; its goal is a line in `goals`.

Unless a name says otherwise the requests are those of real clients (`MIXED` in `bench.traffic`). The workloads `aspect-...`
add one property of real requests at a time to the fixed shape, so that each one's cost can be seen.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bench.lab import Row, Target
from bench.load import Load
from bench.tokens import NO_TOKENS, Tokens
from bench.traffic import FIXED, MIXED, Shape

MIB: Final = 1024 * 1024
START: Final = "start"
GATES: Final = "gates"
RECORDING_US: Final = 20.0
CLIENTS: Final = 32


class Workload(Struct, frozen=True):
    """What is sent, and the rows that answer it."""

    name: str
    title: str
    rows: tuple[Row, ...]
    kind: str = "echo"
    era: str = "legacy"
    connections: int = 1
    size: int = 32
    shape: Shape = MIXED

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
            shape=self.shape,
            tokens=target.tokens,
        )


def _beside(tools: int = 23, answers: str = "json") -> tuple[Row, ...]:
    return tuple(Row(via, via, tools, answers=answers) for via in ("direct", "nginx", "pactgate"))


def _aspect(name: str, title: str, shape: Shape, *, order: str = "python", tokens: Tokens = NO_TOKENS) -> Workload:
    rows = tuple(Row(via, via, order=order, tokens=tokens) for via in ("nginx", "pactgate"))
    return Workload(f"aspect-{name}", f"fixed shape, but {title}", rows, connections=CLIENTS, shape=shape)


FEW: Final = Row("1 server, 20 tools", "pactgate", tools=20)
MANY: Final = Row("50 servers, 1000 tools", "pactgate", tools=20, upstreams=50)

MISS: Final = Row("not cached", "pactgate")
HIT: Final = Row("cached", "pactgate", is_cached=True)

NOT_RECORDED: Final = Row("not recorded", "pactgate")
RECORDED: Final = Row("both sides recorded", "pactgate", is_recorded=True)

OVER_STDIO: Final = Row("pactgate", "pactgate", transport="stdio")
OVER_MCP: Final = Row("an MCP server", "pactgate")
OVER_REST: Final = Row("a REST endpoint", "pactgate", transport="rest")

NOBODY: Final = Row("no sign-in", "pactgate", order="python", tokens=Tokens(CLIENTS))
SHARED: Final = replace(NOBODY, label="a sign-in for all", who="shared")
OWN: Final = replace(NOBODY, label="one for each client", who="user")

IN_A_URL: Final = replace(MIXED, text_bytes=(1, 200), tools=1, is_prose=False)
"""Texts that can be part of a URL path, and the one tool that a REST endpoint provides."""

MAIN: Final = (
    Workload("mixed-32", "mixed, 32 clients (legacy)", _beside(), connections=CLIENTS),
    Workload("mixed-32-modern", "mixed, 32 clients (modern)", _beside(), era="modern", connections=CLIENTS),
    Workload("mixed-1", "mixed, one client (legacy)", _beside()),
)
FURTHER: Final = (
    Workload("mixed-1-modern", "mixed, one client (modern)", _beside(), era="modern"),
    Workload("stdio-1", "mixed, stdio server, one client (CPU includes the child)", (OVER_STDIO,)),
    Workload(
        "stdio-32", "mixed, stdio server, 32 clients (CPU includes the child)", (OVER_STDIO,), connections=CLIENTS
    ),
    Workload("sse-32", "mixed, answered as event streams, 32 clients", _beside(answers="sse"), connections=CLIENTS),
    Workload(
        "cache",
        "mixed, the same texts again, cached and not, 32 clients",
        (MISS, HIT),
        connections=CLIENTS,
        shape=replace(MIXED, repeats=True),
    ),
    Workload("blob-1k", "a result of 1 KiB, one client", _beside(), kind="blob", size=1024),
    Workload("blob-256k", "a result of 256 KiB, one client", _beside(), kind="blob", size=256 * 1024),
    Workload("list-23", "tools/list, 23 tools, one client", _beside(), kind="list"),
    Workload("list-1000", "tools/list, 1000 tools, one client", _beside(1000), kind="list"),
    Workload(
        "rest-32",
        "an MCP server and a REST endpoint, 32 clients (modern)",
        (OVER_MCP, OVER_REST),
        era="modern",
        connections=CLIENTS,
        shape=IN_A_URL,
    ),
    Workload("recorded", "mixed, recorded and not, 32 clients", (NOT_RECORDED, RECORDED), connections=CLIENTS),
    Workload(
        "audit-32",
        "mixed, without and with an audit log, 32 clients",
        (Row("no audit log", "pactgate"), Row("audit log", "pactgate", is_audited=True)),
        connections=CLIENTS,
    ),
    Workload(
        "signed-in",
        "fixed shape, sign-ins at the server, 32 clients",
        (NOBODY, SHARED, OWN),
        connections=CLIENTS,
        shape=FIXED,
    ),
    Workload("flat", "mixed, few and many servers, 32 clients", (FEW, MANY), connections=CLIENTS),
)
ASPECTS: Final = (
    Workload(
        "fixed-32",
        "fixed shape (a curiosity), 32 clients (legacy)",
        tuple(Row(via, via, order="python") for via in ("direct", "nginx", "pactgate")),
        connections=CLIENTS,
        shape=FIXED,
    ),
    _aspect("lengths", "texts of 1 to 2,000 bytes", replace(FIXED, text_bytes=(1, 2000))),
    _aspect("prose", "texts with quotes, line breaks, umlauts", replace(FIXED, is_prose=True)),
    _aspect("ids", "ids that count from 1", replace(FIXED, first_id=1)),
    _aspect("typescript", "TypeScript member order", replace(FIXED, orders=("typescript",))),
    _aspect("responses", "responses in TypeScript member order", FIXED, order="typescript"),
    _aspect("spaces", "JSON with spaces", replace(FIXED, is_spaced=True)),
    _aspect("tools", "three tools in turn", replace(FIXED, tools=3)),
    _aspect("headers", "the further headers of an SDK", replace(FIXED, has_sdk_headers=True)),
    _aspect("traceparent", "a traceparent header", replace(FIXED, is_traced=True)),
    _aspect("token", "a bearer token", FIXED, tokens=Tokens(CLIENTS)),
    _aspect("key", "an API key", FIXED, tokens=Tokens(CLIENTS, "key")),
    _aspect("jwt", "an access token (JWT)", FIXED, tokens=Tokens(CLIENTS, "jwt")),
)
WORKLOADS: Final = (*MAIN, *FURTHER, *ASPECTS)
GROUPS: Final = {
    "mixed": tuple(workload.name for workload in MAIN),
    "aspects": tuple(workload.name for workload in ASPECTS),
}
"""Words that stand for several workloads on the command line."""
