"""The gateway that a run starts ends with all its children."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from pactgate.conformance.gateway.gateway_process import GatewayProcess, StartError
from tests.support.eventually import eventually

PARENT = (
    "import subprocess, sys, os; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "open(sys.argv[1], 'w').write(f'{c.pid} '); c.wait()"
)


async def test_a_gateway_is_ended_with_its_children(tmp_path: Path) -> None:
    process, told = GatewayProcess(tmp_path / "log"), tmp_path / "pid"
    await process.start(f"{sys.executable} -c {shlex.quote(PARENT)} {{config}}", {"config": str(told)})
    await eventually(lambda: told.is_file() and told.read_text().endswith(" "))
    await process.close()
    pid = told.read_text().strip()
    await eventually(lambda: not is_running(pid))


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


async def test_a_gateway_that_ends_at_once_is_reported_with_its_last_output(tmp_path: Path) -> None:
    process = GatewayProcess(tmp_path / "log")
    await process.start(f"{sys.executable} -c 'raise SystemExit(\"no such setting\")'", {})

    def is_reported() -> bool:
        try:
            process.require_running()
        except StartError as problem:
            return "no such setting" in str(problem)
        return False

    await eventually(is_reported)
    await process.close()


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="there-is-no-such-program"):
        await GatewayProcess(tmp_path / "log").start("there-is-no-such-program {port}", {"port": "1"})


async def test_the_command_of_the_server_is_several_words_or_one_in_quotes(tmp_path: Path) -> None:
    show = f"{sys.executable} -c 'import sys; print(sys.argv[1:])' {{command}} \"{{command}}\""
    process = GatewayProcess(tmp_path / "log")
    await process.start(show, {"command": "run '/a b' stdio"})
    await eventually(lambda: process.last_output().endswith("\n"))
    await process.close()
    assert process.last_output() == "['run', '/a b', 'stdio', \"run '/a b' stdio\"]\n"
