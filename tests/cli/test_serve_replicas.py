"""`pactgate serve --replicas N`: one port, several gateways, and nothing of them left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually_blocking
from tests.support.plain_requests import modern
from tests.support.processes import command_line, descendants_of
from tests.support.servers import UPSTREAM

_ASKING = Path(UPSTREAM).with_name("asking_upstream.py")


def config(folder: Path, **sections: Any) -> Path:
    asking = {"command": sys.executable, "args": [str(_ASKING), json.dumps({"era": "modern"})]}
    file = folder / "pactgate.json"
    file.write_text(json.dumps({"mcpServers": {"asking": asking}, "rateLimits": {"enabled": False}, **sections}))
    return file


def words(*more: str) -> list[str]:
    return [sys.executable, "-m", "pactgate", "serve", "--replicas", "3", "--port", "0", *more]


@contextmanager
def running(folder: Path, file: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process, and the address once every replica listens."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(words("--config", str(file)), stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually_blocking(lambda: log.read_text().count('"GatewayStarted"') == 3, within_s=20)
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        assert found is not None
        yield process, found[0]
    finally:
        process.kill()
        process.wait()


def test_replicas_share_a_port_and_open_each_others_states_without_a_store(tmp_path: Path) -> None:
    with running(tmp_path, config(tmp_path)) as (_, address):
        states = set()
        for _ in range(12):  # each on a connection of its own, which the kernel gives to one of them
            params: dict[str, Any] = {"name": "asking__ask", "arguments": {}}
            asked = modern(address, "tools/call", params, elicitation={})["result"]
            answers = {"q": {"action": "accept", "content": {"name": "x"}}}
            again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            result = modern(address, "tools/call", again, elicitation={})["result"]
            assert "accept" in result["content"][0]["text"]
            states.add(asked["requestState"])
        assert len(states) == 12
        status = [sys.executable, "-m", "pactgate", "status"]
        done = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, "for a command, replicas of one port are one gateway: " + done.stderr
        assert "not shared: legacy sessions" in done.stdout


def _at_least(number: int, pids: list[int]) -> list[int]:
    return pids if len(pids) >= number else []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_all_of_them(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, config(tmp_path)) as (process, _):
        started = eventually_blocking(lambda: _at_least(6, descendants_of(process.pid)))
        process.send_signal(number)
        assert process.wait(10) == 0
        eventually_blocking(lambda: not any(map(command_line, started)))


def test_nothing_survives_when_the_parent_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, config(tmp_path)) as (process, _):
        started = descendants_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        eventually_blocking(lambda: not any(map(command_line, started)))


def test_what_replicas_need_is_said_before_any_of_them_starts(tmp_path: Path) -> None:
    file = config(tmp_path, auth={"anonymous": False})
    done = subprocess.run(words("--config", str(file)), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert "auth.tokens" in done.stderr
    file = config(tmp_path, auth={"anonymous": True}, audit={"file": "audit.jsonl"})
    done = subprocess.run(words("--config", str(file)), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert "audit log" in done.stderr


def test_a_console_that_replicas_do_not_serve_is_said(tmp_path: Path) -> None:
    with running(tmp_path, config(tmp_path)):
        assert "Replicas serve no console" in (tmp_path / "log").read_text()
    with running(tmp_path, config(tmp_path, console={"enabled": False})):
        assert "console" not in (tmp_path / "log").read_text()
