"""The scripted server as a program: it answers byte for byte in both eras, misbehaves as told, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, ServerScript
from tests.support.eventually import eventually_blocking

TOOLS = (
    ScriptedTool(
        "logs_@",
        steps=(
            ScriptStep("log", data='{"level":"info","data":1}'),
            ScriptStep("log", data='{"level":"error","data":2}'),
        ),
    ),
    ScriptedTool("long_@", steps=(ScriptStep("until_cancelled", seconds=20),)),
    ScriptedTool("odd_@", result='"content":[],"n":1e400'),
    ScriptedTool("crash_@", steps=(ScriptStep("crash"),)),
    ScriptedTool("noise_@", steps=(ScriptStep("raw", data="no json", count=2),)),
    ScriptedTool(
        "slow_@", steps=(ScriptStep("notify", data='{"jsonrpc":"2.0","method":"notifications/progress","t":@TOKEN@}'),)
    ),
)


class Child:
    """The server over stdio."""

    def __init__(self, folder: Path, era: str) -> None:
        script = ServerScript(tag="t", era=era, record=str(folder / "record.t"), tools=TOOLS, page_size=3)
        path = folder / "script.json"
        path.write_bytes(msgspec.json.encode(script))
        command = [sys.executable, "-I", "-m", "pactgate.conformance.gateway.server", str(path), "stdio"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, method: str, params: str = "{}", *, is_notice: bool = False) -> None:
        assert self.process.stdin is not None
        id_ = "" if is_notice else '"id":1,'
        self.process.stdin.write(f'{{"jsonrpc":"2.0",{id_}"method":"{method}","params":{params}}}\n'.encode())
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(5)


def recorded(folder: Path) -> list[tuple[bool, str]]:
    """What the server has recorded: whether it sent the message, and what it is about."""
    lines = [line for path in folder.glob("record.t.*") for line in path.read_text().splitlines()]
    return [(line[2], line[4]) for line in map(json.loads, lines)]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path, "legacy")
    yield child
    child.close()


def test_a_result_is_written_as_the_script_has_it_and_recorded(child: Child, tmp_path: Path) -> None:
    child.ask("tools/call", '{"name":"odd_t"}')
    assert child.read() == '{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1e400}}'
    assert recorded(tmp_path) == [(False, "odd_t"), (True, "odd_t")]


def test_it_pages_notifies_misbehaves_and_crashes_as_told(child: Child) -> None:
    child.ask("tools/list")
    assert json.loads(child.read())["result"]["nextCursor"] == "page-1"
    child.ask("tools/list", '{"cursor":"page-1"}')
    assert len(json.loads(child.read())["result"]["tools"]) == 3
    child.ask("tools/call", '{"name":"slow_t","_meta":{"progressToken":7}}')
    assert [json.loads(child.read()).get("t"), json.loads(child.read()).get("t")] == [7, None]
    child.ask("tools/call", '{"name":"noise_t"}')
    assert [child.read(), child.read()] == ["no json"] * 2
    assert "result" in json.loads(child.read())
    child.ask("tools/call", '{"name":"crash_t"}')
    assert child.process.wait(5) == 3


def test_it_logs_at_the_level_that_was_set(child: Child) -> None:
    child.ask("logging/setLevel", '{"level":"error"}')
    child.read()
    child.ask("tools/call", '{"name":"logs_t"}')
    assert [json.loads(child.read()).get("params"), json.loads(child.read()).get("params")] == [
        {"level": "error", "data": 2},
        None,
    ]


def test_a_call_that_is_cancelled_has_no_answer(child: Child, tmp_path: Path) -> None:
    child.ask("tools/call", '{"name":"long_t"}')
    eventually_blocking(lambda: len(recorded(tmp_path)) == 1)
    child.ask("notifications/cancelled", '{"requestId":1}', is_notice=True)
    eventually_blocking(lambda: recorded(tmp_path) == [(False, "long_t"), (False, "long_t")])
    child.ask("ping")
    assert json.loads(child.read())["result"] == {}
    assert recorded(tmp_path)[2:] == [(False, "ping"), (True, "ping")]
