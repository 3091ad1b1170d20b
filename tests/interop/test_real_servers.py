"""Seven servers people use, from PyPI and npm, behind one `/mcp`: every tool listed to clients of both eras, one of each called.

What a server lists when the official client asks it directly is what has to arrive. A tap in front of each server writes down
what the gateway sends it, which shows that a second list is answered without asking anyone.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from mcp import Client, StdioServerParameters

from tests.interop.pairings import PREPARE
from tests.interop.processes import HERE, NODE, NODE_FOLDER, PYTHON, SERVERS_FOLDER, Fleet
from tests.interop.raw import RawCaller

MODES = {"legacy": "legacy", "modern": "2026-07-28"}
PAGE = b"Seven servers behind one gateway"  # plain: for HTML this server would fetch a program from a registry
WAIT_S = 20

pytestmark = pytest.mark.interop

Sent = dict[str, list[str]]
"""The methods of every message each server got."""


class Real(NamedTuple):
    """A server, one of its tools, what to call it with and what the answer has to say. `package` is where it comes from."""

    id: str
    package: str
    words: tuple[str, ...]
    tool: str
    arguments: dict[str, Any]
    says: str
    env: tuple[str, ...] = ()

    @property
    def is_from_npm(self) -> bool:
        return self.package.startswith("@")

    def command(self) -> list[str]:
        program = [str(SERVERS_FOLDER / "bin" / self.package)]
        if self.is_from_npm:
            program = [str(NODE), str(NODE_FOLDER / "node_modules" / self.package / "dist" / "index.js")]
        return ["env", *self.env, *program, *self.words]

    def why_not_here(self) -> str | None:
        folder = NODE_FOLDER if self.is_from_npm else SERVERS_FOLDER
        if not (folder / ".installed").is_file():
            return f"NOT RUN: {self.package} is not installed: {PREPARE}"
        return "NOT RUN: the `git` program is missing" if self.id == "git" and shutil.which("git") is None else None


IDS = ("time", "git", "fetch", "everything", "filesystem", "memory", "sequential-thinking")


def real_servers(folder: Path, page: str) -> dict[str, Real]:
    """All seven, at work in this folder."""
    npm = "@modelcontextprotocol/server-"
    zones = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    thought = {"thought": "It arrives.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    entity = {"name": "gateway", "entityType": "program", "observations": ["remembers"]}
    files, repository, memory = (
        str(folder / "files"),
        str(folder / "repository"),
        f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}",
    )
    found = (
        Real("time", "mcp-server-time", ("--local-timezone", "UTC"), "convert_time", zones, "T21:00:00+09:00"),
        Real("git", "mcp-server-git", ("-r", repository), "git_log", {"repo_path": repository}, "the first commit"),
        Real("fetch", "mcp-server-fetch", ("--allow-private-ips",), "fetch", {"url": page}, "behind one gateway"),
        Real("everything", f"{npm}everything", ("stdio",), "echo", {"message": "hello"}, "Echo: hello"),
        Real("filesystem", f"{npm}filesystem", (files,), "list_directory", {"path": files}, "[FILE] a.txt"),
        Real("memory", f"{npm}memory", (), "create_entities", {"entities": [entity]}, "[", (memory,)),
        Real(
            "sequential-thinking", f"{npm}sequential-thinking", (), "sequentialthinking", thought, '"thoughtNumber": 1'
        ),
    )
    return {server.id: server for server in found}


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_page = self.path == "/page"
        body = PAGE if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a page on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/page"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    (folder / "files").mkdir()
    (folder / "files" / "a.txt").write_text("a file")
    if shutil.which("git") is not None:
        make_repository(str(folder / "repository"))
    return folder


def make_repository(path: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
    commit = ("commit", "--quiet", "--allow-empty", "--message", "the first commit")
    for words in (("init", "--quiet", path), ("-C", path, *who, *commit)):
        subprocess.run(["git", *words], check=True, capture_output=True, timeout=WAIT_S)


@pytest.fixture(scope="module")
def servers(folder: Path, page: str) -> dict[str, Real]:
    """Those that can run here."""
    return {id_: real for id_, real in real_servers(folder, page).items() if real.why_not_here() is None}


@pytest.fixture(scope="module")
def address(folder: Path, servers: dict[str, Real]) -> Iterator[str]:
    if not servers:
        pytest.skip(f"NOT RUN: none of the real servers is installed: {PREPARE}")
    with Fleet(folder) as fleet:
        for real in servers.values():
            fleet.add(
                real.id,
                [PYTHON, "-I", "-S", HERE / "servers" / "tap.py", log_of(folder, real.id), *real.command()],
                None,
            )
        yield fleet.start_gateway({real.id: real.tool for real in servers.values()})[1] + "/mcp"


def log_of(folder: Path, server: str) -> Path:
    return folder / f"{server}.sent"


@pytest.fixture(params=IDS)
def real(request: pytest.FixtureRequest, folder: Path, page: str) -> Real:
    found = real_servers(folder, page)[request.param]
    missing = found.why_not_here()
    if missing is not None:
        pytest.skip(missing)
    return found


@asynccontextmanager
async def client_of(target: str | StdioServerParameters, mode: Any) -> AsyncIterator[Client]:
    async with asyncio.timeout(WAIT_S), Client(target, mode=mode, read_timeout_seconds=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def listed_directly(servers: dict[str, Real]) -> dict[str, list[dict[str, Any]]]:
    """What the official client sees of each server without a gateway, under the names the gateway gives."""

    async def ask(real: Real) -> list[dict[str, Any]]:
        command, *words = real.command()
        async with client_of(StdioServerParameters(command=command, args=words), "auto") as client:
            return [{**tool.model_dump(), "name": f"{real.id}__{tool.name}"} for tool in await tools_of(client)]

    async def ask_all() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(ask(real) for real in servers.values()))

    return dict(zip(servers, asyncio.run(ask_all()), strict=True))


@pytest.mark.parametrize("era", MODES)
async def test_every_tool_is_listed_as_the_server_lists_it(
    real: Real, era: str, listed_directly: dict[str, list[dict[str, Any]]], address: str
) -> None:
    async with client_of(address, MODES[era]) as client:
        listed = [tool.model_dump() for tool in await tools_of(client) if tool.name.startswith(f"{real.id}__")]
    assert listed
    expected = sorted(listed_directly[real.id], key=lambda tool: str(tool["name"]))
    if era == "modern":  # which has no such member: how to run a tool as a task is said otherwise there
        expected = [{**tool, "execution": None} for tool in expected]
    assert listed == expected


async def tools_of(client: Client) -> list[Any]:
    return list((await client.list_tools()).tools)


@pytest.mark.parametrize("era", MODES)
async def test_one_tool_of_each_server_is_called(real: Real, era: str, address: str) -> None:
    async with client_of(address, MODES[era]) as client:
        result = await client.call_tool(f"{real.id}__{real.tool}", real.arguments)
    assert not result.is_error
    assert real.says in said(result)


async def test_what_one_era_leaves_with_a_server_the_other_finds(servers: Mapping[str, Real], address: str) -> None:
    if "memory" not in servers:
        pytest.skip(f"NOT RUN: the memory server is not installed: {PREPARE}")
    async with client_of(address, MODES["legacy"]) as client:
        await client.call_tool("memory__create_entities", servers["memory"].arguments)
    async with client_of(address, MODES["modern"]) as client:
        assert "remembers" in said(await client.call_tool("memory__read_graph", {}))


def said(result: Any) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


@pytest.mark.requirement("S0/ECO-001")
def test_a_second_list_is_answered_without_asking_anyone(
    servers: Mapping[str, Real], folder: Path, address: str
) -> None:
    def lines_sent() -> Sent:
        return {id_: methods_in(log_of(folder, id_)) for id_ in servers}

    def lists() -> list[str]:
        return [caller.request("tools/list") for caller in callers for _ in range(2)]

    callers = [RawCaller(address, era) for era in MODES]
    try:
        before, answers, after = nothing_else_going_on(lines_sent, lists)
    finally:
        for caller in callers:
            caller.close()
    assert all(sent.count("tools/list") >= 1 for sent in before.values())
    assert after == before
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]
    names = [[tool["name"] for tool in json.loads(answer)["tools"]] for answer in answers]
    assert names[0] == names[2]
    assert {name.partition("__")[0] for name in names[0]} == set(servers)


def nothing_else_going_on(look: Callable[[], Sent], ask: Callable[[], list[str]]) -> tuple[Sent, list[str], Sent]:
    """A server may announce a change at that very moment, and is asked again then: a second look tells the two apart."""
    for _ in range(3):
        before, answers, after = look(), ask(), look()
        if after == before:
            break
    return before, answers, after


def methods_in(log: Path) -> list[str]:
    return [json.loads(line).get("method", "") for line in log.read_text().splitlines()]
