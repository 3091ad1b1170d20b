"""`pactgate tools -- CMD` and its sisters: a server without a gateway, and nothing left of it afterwards."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.program import EVIL_SERVER, run, run_on_terminal, run_program

ALMANAC = [sys.executable, "-m", "pactgate.demo.almanac"]
KEEPER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                  "serverInfo": {"name": "keeper", "version": "1"}}
    elif asked.get("method") == "prompts/list":
        result = {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
    elif asked.get("method") == "prompts/get":
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello " + asked["params"]["arguments"]["who"]}}]}
    elif asked.get("method") == "resources/list":
        result = {"resources": [{"uri": "keep://pid", "name": "pid"}]}
    elif asked.get("method") == "resources/read":
        result = {"contents": [{"uri": "keep://pid", "text": f"{os.getpid()} {os.environ.get('KEPT')}"}]}
    else:
        result = {"tools": [], "resourceTemplates": []}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def keeper(tmp_path: Path) -> list[str]:
    (tmp_path / "keeper.py").write_text(KEEPER)
    return [sys.executable, "keeper.py"]


def test_tools_of_a_server_are_listed_and_called_under_their_own_names(tmp_path: Path) -> None:
    listed = run(tmp_path, "tools", "--json", "--", *ALMANAC)
    assert [tool["exposedName"] for tool in json.loads(listed.stdout)] == [
        "convert_units",
        "date_facts",
        "days_between",
    ]
    called = run(tmp_path, "call", "convert_units", "value=2", "from=km", "to=m", "--", *ALMANAC)
    assert json.loads(called.stdout)["result"] == 2000
    assert run(tmp_path, "call", "nothing", "--", *ALMANAC).returncode == 1


def test_prompts_and_resources_too_with_the_environment_of_the_shell_and_no_process_left(
    tmp_path: Path, keeper: list[str]
) -> None:
    assert "greet   who" in run(tmp_path, "prompts", "--", *keeper).stdout
    assert "Hello you" in run(tmp_path, "prompt", "greet", "who=you", "--", *keeper).stdout
    assert "keep://pid" in run(tmp_path, "resources", "--", *keeper).stdout
    done = run_program(tmp_path, "read", "keep://pid", "--", *keeper, KEPT="mine")
    pid, kept = done.stdout.split()
    assert kept == "mine"
    assert not os.path.exists(f"/proc/{pid}")


def test_a_server_that_can_not_be_used_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    absent = run(tmp_path, "tools", "--", "no-such-program")
    assert (absent.returncode, "was not found on PATH" in absent.stderr) == (1, True)
    crashing = run(tmp_path, "tools", "--", sys.executable, "-c", "import sys; sys.exit('no key is set')")
    assert (crashing.returncode, "no key is set" in crashing.stderr) == (1, True)
    assert run(tmp_path, "tools", "--").returncode == 2


def test_a_hostile_server_does_not_reach_the_terminal_here_either(tmp_path: Path) -> None:
    code, shown = run_on_terminal(tmp_path, "tools", "--", sys.executable, str(EVIL_SERVER))
    assert code == 0
    assert b"\x1b]0;" not in shown
