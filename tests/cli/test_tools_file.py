"""A Python file of tools on the command line: checked, and served alone to any client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.program import Served, environment, run, run_program, write_config
from tests.runner.driving import write_tools

KIT = '@tool(**query)\ndef double(number: int) -> int:\n    "Doubles."\n    return 2 * number\n'
FIRST = '@tool(category="x", idempotent=2, effects=["y"])'
BAD = FIRST + '\ndef one() -> None:\n    "x"\n@tool(**query)\ndef two(a):\n    "x"\n'


def test_a_good_file_is_summed_up(tmp_path: Path) -> None:
    write_tools(tmp_path, KIT)
    done = run(tmp_path, "check", "kit.py")
    assert done.returncode == 0
    assert "kit.py is valid: 1 tool." in done.stdout
    assert json.loads(run(tmp_path, "check", "kit.py", "--json").stdout)["tools"][0]["name"] == "double"


def test_every_problem_of_a_bad_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = write_tools(tmp_path, BAD)
    done = run(tmp_path, "check", "kit.py")
    assert (done.returncode, done.stdout) == (1, "")
    line = path.read_text().splitlines().index(FIRST) + 1
    assert done.stderr.count(f"kit.py:{line}: one: ") == 3
    assert f"kit.py:{line + 3}: two: " in done.stderr
    assert json.loads(run(tmp_path, "check", "kit.py", "--json").stdout)["ok"] is False


@pytest.mark.parametrize("words", [["serve", "absent.py"], ["serve", "kit.txt"], ["check", "absent.py"]])
def test_a_file_that_is_not_there_or_no_python_is_a_wrong_invocation(tmp_path: Path, words: list[str]) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 2
    assert words[1] in done.stderr


def test_a_file_and_a_configuration_at_once_are_refused(tmp_path: Path) -> None:
    write_tools(tmp_path, KIT)
    write_config(tmp_path, {})
    assert run(tmp_path, "serve", "kit.py", "--config", "pactgate.json").returncode == 2


async def test_any_client_can_be_given_the_file_alone_under_its_own_names(tmp_path: Path) -> None:
    write_tools(tmp_path, KIT)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pactgate", "serve", "--stdio", "kit.py"],
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    with (tmp_path / "log").open("w") as log:
        async with (
            stdio_client(server, errlog=log) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["double"]
            result = await session.call_tool("double", {"number": 21})
            assert result.structured_content == {"result": 42}


def test_over_http_it_is_served_without_a_configuration(tmp_path: Path) -> None:
    write_tools(tmp_path, KIT)
    write_config(tmp_path, {"broken": {"command": "nothing"}})
    with Served(tmp_path, "kit.py") as gateway:
        gateway.wait_for("ok +kit")
        assert gateway.run("call", "double", "number:=4").stdout.split() == ["{", '"result":', "8", "}"]


def test_what_a_call_did_beside_its_declaration_is_shown_with_the_answer(tmp_path: Path) -> None:
    write_tools(
        tmp_path, '@tool(**query)\ndef read() -> str:\n    "Reads."\n    return open("/etc/hosts").readline()[:0]\n'
    )
    with Served(tmp_path, "kit.py") as gateway:
        gateway.wait_for("ok +kit")  # before that /api/tools answers from a snapshot without the tool
        done = gateway.run("call", "read")
        assert "kit.read did what it does not declare: filesystem.read /etc/hosts" in done.stderr
        assert "observed: none" in gateway.run("tools", "--verbose").stdout


def test_the_doctor_looks_at_the_file(tmp_path: Path) -> None:
    write_config(tmp_path, {"kit": {"tools": "absent.py"}})
    done = run_program(tmp_path, "doctor")
    assert "absent.py does not exist" in done.stdout


BARE = """
from pathlib import Path

@tool
def peek() -> str:
    "Reads."
    return Path("/proc/sys/kernel/ostype").read_text().strip()
@tool
def note(text: str) -> None:
    "Writes."
    Path("notes.txt").write_text(text)
@tool(category="query")
def never() -> None:
    "Is not called."
"""


def test_check_proposes_what_a_bare_tool_was_seen_to_do(tmp_path: Path) -> None:
    write_tools(tmp_path, BARE)
    with Served(tmp_path, "kit.py") as gateway:
        gateway.wait_for("ok +kit")
        assert gateway.run("call", "peek").returncode == 0
        assert gateway.run("call", "note", "text=x").returncode == 0
        assert "observed: not declared" in gateway.run("tools", "--verbose").stdout
        said = gateway.run("check", "kit.py").stdout
        proposals = json.loads(gateway.run("check", "kit.py", "--json").stdout)["proposals"]
    assert '  peek     @tool(category="query", idempotent=True, effects=["filesystem.read"])' in said
    assert '  note     @tool(category="mutation", idempotent=False, effects=["filesystem.write"])' in said
    assert "as it was seen to do in 1 call\n" in said
    assert "Nothing is known of what these do: never." in said
    assert "not declared" in said.splitlines()[2]
    assert (proposals["peek"]["calls"], proposals["never"]) == (1, None)
