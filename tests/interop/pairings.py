"""Which clients meet which upstreams on which path, and what each of them needs to run here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.interop.processes import CLIENTS_FOLDER, HERE, MCP1_PYTHON, NODE, NODE_FOLDER, PYTHON

PREPARE = "run `make interop` and read what it says"


SERVER = "/mcp/{id}"
VIEW = "/mcp/v/greeters"
SEARCH = "/mcp/v/lazy"
VIEWS = {"greeters": {"tools": ["*.greet"]}, "lazy": {"tools": ["*.greet"], "surface": "search"}}


class Upstream(NamedTuple):
    """`server` is the program under servers/ with its arguments before the transport."""

    id: str
    server: tuple[str, ...]
    transport: str
    path: str = "/mcp"

    def command(self) -> list[str | Path]:
        program, *arguments = self.server
        python = MCP1_PYTHON if program == "sdk1.py" else PYTHON
        return [python, HERE / "servers" / program, self.id, *arguments, self.transport]


class Pairing(NamedTuple):
    client: str
    upstream: Upstream
    path: str

    @property
    def tool(self) -> str:
        """The tool that the client calls; on the search surface, the one that calls it."""
        if self.path == SEARCH:
            return "call_tool"
        return "greet" if self.path == SERVER else f"{self.upstream.id}__greet"

    @property
    def arguments(self) -> dict[str, object]:
        given: dict[str, object] = {"who": self.client}
        return {"name": f"{self.upstream.id}__greet", "arguments": given} if self.path == SEARCH else given


UPSTREAMS = (
    Upstream("legacy-stdio", ("sdk1.py",), "stdio"),
    Upstream("legacy-http", ("sdk1.py",), "http"),
    Upstream("legacy-sse", ("sdk1.py",), "sse", path="/sse"),
    Upstream("dual-stdio", ("sdk2.py",), "stdio"),
    Upstream("dual-http", ("sdk2.py",), "http"),
    Upstream("modern-stdio", ("scripted.py", "modern", "plain"), "stdio"),
    Upstream("modern-http", ("scripted.py", "modern", "plain"), "http"),
)

PATHS = ("/mcp", SERVER, VIEW, SEARCH)

DRIVERS: dict[str, list[str | Path]] = {
    "sdk2": [PYTHON, "-m", "tests.interop.clients.sdk2"],
    "sdk1": [MCP1_PYTHON, "-m", "tests.interop.clients.sdk1"],
    "frameworks": [CLIENTS_FOLDER / "bin" / "python", "-m", "tests.interop.clients.frameworks"],
    "frameworks1": [MCP1_PYTHON, "-m", "tests.interop.clients.frameworks"],
    "typescript": [NODE, HERE / "clients" / "typescript.mjs", NODE_FOLDER],
    "inspector": [NODE, HERE / "clients" / "inspector.mjs", NODE_FOLDER],
}

CLIENTS = {
    "sdk2-legacy": "sdk2",
    "sdk2-auto": "sdk2",
    "sdk2-modern": "sdk2",
    "sdk1": "sdk1",
    "ts1": "typescript",
    "ts2-legacy": "typescript",
    "ts2-auto": "typescript",
    "ts2-modern": "typescript",
    "inspector-legacy": "inspector",
    "inspector-auto": "inspector",
    "inspector-modern": "inspector",
    "fastmcp": "frameworks",
    "openai-agents": "frameworks",
    "pydantic-ai": "frameworks",
    "langchain": "frameworks1",
    "mcp-use": "frameworks1",
}
"""Each client and the driver that plays it."""


def every_pairing() -> Iterator[Pairing]:
    for client in CLIENTS:
        for upstream in UPSTREAMS:
            for path in PATHS:
                yield Pairing(client, upstream, path)


def why_not_here(*, upstream: Upstream, client: str | None = None) -> str | None:
    """What is missing on this machine, or None."""
    driver = None if client is None else CLIENTS[client]
    needs_mcp1 = upstream.server[0] == "sdk1.py" or driver in ("sdk1", "frameworks1")
    if needs_mcp1 and not (MCP1_PYTHON.parent.parent / ".installed").is_file():
        return f"NOT RUN: the 1.x Python SDK is not installed: {PREPARE}"
    if driver == "frameworks" and not (CLIENTS_FOLDER / ".installed").is_file():
        return f"NOT RUN: FastMCP, OpenAI Agents and Pydantic AI are not installed: {PREPARE}"
    if driver in ("typescript", "inspector") and not (NODE_FOLDER / ".installed").is_file():
        return f"NOT RUN: the TypeScript clients are not installed: {PREPARE}"
    return None
