"""`pactgate learn`: what a server was seen doing becomes a declaration that is enough for it, and no more."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.upstreams.process.sandbox import probe
from tests.cli.program import run, run_program, write_config

BUSY = Path(__file__).parents[1] / "support" / "busy_server.py"
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
needs_landlock = pytest.mark.skipif(probe().abi < 4, reason="this kernel can't hold ports")


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield int(listening.getsockname()[1])


def busy(folder: Path, port: int, **more: Any) -> dict[str, Any]:
    data = folder / "data" / "notes.txt"
    data.parent.mkdir(exist_ok=True)
    data.write_text("what is noted")
    plan = json.dumps({"file": str(data), "port": port})
    return {"command": sys.executable, "args": ["-I", "-S", str(BUSY), plan], "era": "legacy", **more}


@needs_strace
@needs_landlock
@pytest.mark.requirement("S2/MCP-002")
async def test_what_was_learned_is_enough_for_what_was_done_and_for_nothing_else(tmp_path: Path, port: int) -> None:
    write_config(tmp_path, {"busy": busy(tmp_path, port)})
    done = run_program(tmp_path, "learn", "busy")
    assert done.returncode == 0, done.stderr
    assert "called busy.look: answered" in done.stderr
    assert "skipped 1 of 2 tools" in done.stderr
    assert not (tmp_path / "data" / "made.txt").exists()
    effects = json.loads(done.stdout)["mcpServers"]["busy"]["effects"]
    assert effects["connect"] == [port]
    assert [path for path in effects["read"] if not path.startswith("/etc/")] == [str(tmp_path / "data" / "notes.txt")]
    assert (effects["write"], effects["sockets"]) == ([], True)
    assert [Path(program).name for program in effects["run"]] == ["echo"]

    held = write_config(tmp_path, {"busy": busy(tmp_path, port, effects=effects)})
    async with Gateway.open(load(held, environ={})) as gateway:
        looked = await gateway.invoke("busy.look")
        assert looked["success"], looked
        changed = await gateway.invoke("busy.change")
        assert not changed["success"]
    assert not (tmp_path / "data" / "made.txt").exists()


@pytest.mark.parametrize(
    ("servers", "word"),
    [
        ({}, "There is no server 'busy'"),
        ({"busy": {"url": "http://127.0.0.1:9/mcp"}}, "busy has no command"),
    ],
)
def test_only_programs_of_the_configuration_can_be_watched(servers: Any, word: str, tmp_path: Path) -> None:
    write_config(tmp_path, servers)
    done = run(tmp_path, "learn", "busy")
    assert done.returncode == 2
    assert word in done.stderr


@needs_strace
def test_a_server_that_does_not_start_is_said(tmp_path: Path) -> None:
    write_config(tmp_path, {"busy": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}})
    done = run(tmp_path, "learn", "busy", "--json")
    assert done.returncode == 1
    assert "ended with exit code 3" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_strace_it_says_what_to_install(tmp_path: Path, port: int) -> None:
    write_config(tmp_path, {"busy": busy(tmp_path, port)})
    done = run(tmp_path, "learn", "busy", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "Install the package strace" in done.stderr
