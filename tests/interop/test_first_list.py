"""Four clients people use list the tools of five real servers once, right after the start, and see all of them.

One of the servers starts 4 s late, as `npx` and `uvx` make it the first time. Clients like these list once, so a tool that is missing
then is missing for the whole session.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import StdioServerParameters

from tests.interop.pairings import PREPARE
from tests.interop.processes import (
    CLIENTS_FOLDER,
    GATEWAY,
    HERE,
    MCP1_PYTHON,
    NODE,
    NODE_FOLDER,
    TOOLS,
    Program,
    free_port,
    listens,
)
from tests.interop.test_real_servers import Real, client_of, make_repository, real_servers, tools_of

CLIENTS: Final = ("inspector", "fastmcp", "langchain", "openai-agents")
SERVERS: Final = ("everything", "memory", "filesystem", "time", "git")
LATE: Final = "git"
LATE_S: Final = 4
LIMIT_S: Final = 60
pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Real]:
    work = tmp_path_factory.mktemp("five")
    (work / "files").mkdir()
    found = {id_: real for id_, real in real_servers(work, "").items() if id_ in SERVERS}
    missing = next((why for real in found.values() if (why := real.why_not_here())), None)
    if missing is None and not all((folder / ".installed").is_file() for folder in (CLIENTS_FOLDER, TOOLS / "mcp1")):
        missing = f"NOT RUN: the clients are not installed: {PREPARE}"
    if missing is not None:
        pytest.skip(missing)
    make_repository(str(work / "repository"))
    return found


@pytest.fixture(scope="module")
def expected(servers: dict[str, Real]) -> set[str]:
    """The tools that each server lists when it is asked directly, by a client that can do nothing else."""

    async def ask(id_: str, real: Real) -> list[str]:
        command, *words = real.command()
        async with client_of(StdioServerParameters(command=command, args=words), "auto") as client:
            return [f"{id_}__{tool.name}" for tool in await tools_of(client)]

    async def ask_all() -> set[str]:
        return {name for names in await asyncio.gather(*(ask(*one) for one in servers.items())) for name in names}

    return asyncio.run(ask_all())


@pytest.fixture(scope="module")
def config(servers: dict[str, Real], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gateway") / "pactgate.json"
    path.write_text(json.dumps({"mcpServers": {id_: entry(real) for id_, real in servers.items()}}))
    return path


def entry(real: Real) -> dict[str, Any]:
    words = real.command()
    if real.id == LATE:
        words = ["sh", "-c", f'sleep {LATE_S}; exec "$@"', "sh", *words]
    return {"command": words[0], "args": words[1:], "connectionTimeoutMs": 30_000}


def serve(config: Path, *words: str) -> list[str]:
    return [*map(str, GATEWAY), "serve", "--config", str(config), *words]


@contextmanager
def client_ready(client: str) -> Iterator[Callable[[Mapping[str, Any]], set[str]]]:
    """What lists the tools with one client, whose program has loaded what it needs. Inspector is its own program for each list."""
    if client == "inspector":
        yield inspect
        return
    python = MCP1_PYTHON if client == "langchain" else CLIENTS_FOLDER / "bin" / "python"
    with running([str(python), str(HERE / "clients" / "first_list.py"), client]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield lambda target: set(json.loads(said_by(process, json.dumps(target) + "\n")))


def inspect(target: Mapping[str, Any]) -> set[str]:
    where = [target["url"], "--transport", "http"] if "url" in target else [target["command"], *target["args"]]
    program = NODE_FOLDER / "node_modules" / ".bin" / "mcp-inspector"
    with running([str(NODE), str(program), "--cli", *where, "--method", "tools/list", "--format", "json"]) as process:
        listed = json.loads(said_by(process, ""))
    return {tool["name"] for tool in listed.get("result", listed)["tools"]}


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said_by(process: subprocess.Popen[str], sent: str) -> str:
    said, errors = process.communicate(sent, LIMIT_S)
    assert process.returncode == 0, errors[-2000:]
    return said


@pytest.fixture(scope="module")
def over_http(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, set[str]]]:
    """What each client sees that asks a gateway as soon as it listens."""
    port = free_port()
    with ExitStack() as stack:
        listers = [stack.enter_context(client_ready(client)) for client in CLIENTS]
        gateway = Program(serve(config, "--port", str(port)), tmp_path_factory.mktemp("log") / "gateway.log")
        stack.callback(gateway.stop)
        gateway.wait_until(lambda: listens(port), "it listens")
        target = {"url": f"http://127.0.0.1:{port}/mcp"}
        with ThreadPoolExecutor(len(CLIENTS)) as pool:
            yield dict(zip(CLIENTS, pool.map(lambda names: names(target), listers), strict=True))


@pytest.mark.parametrize("client", CLIENTS)
def test_the_first_list_over_http_is_whole(client: str, over_http: dict[str, set[str]], expected: set[str]) -> None:
    assert expected - over_http[client] == set()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_first_list_over_stdio_is_whole(client: str, config: Path, expected: set[str]) -> None:
    assert expected - over_stdio(client, config) == set()


def test_a_list_that_is_cut_at_one_second_lacks_the_late_server(
    config: Path, expected: set[str], tmp_path: Path
) -> None:
    """The tests above would notice: what they check does depend on the wait."""
    cut = tmp_path / "pactgate.json"
    cut.write_text(json.dumps({**json.loads(config.read_text()), "discovery": {"firstListWaitMs": 1000}}))
    missing = expected - over_stdio("fastmcp", cut)
    assert {name for name in expected if name.startswith(f"{LATE}__")} <= missing


def over_stdio(client: str, config: Path) -> set[str]:
    """What a client sees that starts the gateway itself, by a script: Inspector takes `--config` for an option of its own."""
    script = config.with_name("gateway.sh")
    script.write_text(f"#!/bin/sh\nexec {shlex.join(serve(config, '--stdio'))}\n")
    script.chmod(0o755)
    with client_ready(client) as names:
        return names({"command": str(script), "args": []})
