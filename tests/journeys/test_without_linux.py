"""On the way of an import, a connection and a call there is nothing that only Linux has. What is simulated: `without_linux.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import WAIT_S, environment
from tests.runner.driving import write_tools

PROGRAM = [sys.executable, str(Path(__file__).with_name("without_linux.py"))]
ALMANAC = [sys.executable, "-m", "pactgate.demo.almanac"]
DESKTOP = Path("Library/Application Support/Claude/claude_desktop_config.json")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder as macOS has it, with a client in it."""
    (tmp_path / DESKTOP).parent.mkdir(parents=True)
    entry = {"command": ALMANAC[0], "args": ALMANAC[1:]}
    (tmp_path / DESKTOP).write_text(json.dumps({"mcpServers": {"Almanac": entry}}))
    return tmp_path


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=4 * WAIT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_servers_of_a_client_are_taken_over_and_the_client_is_connected(home: Path) -> None:
    before = (home / DESKTOP).read_bytes()
    assert run(home, "import", "--yes").returncode == 0
    assert list(json.loads((home / "pactgate.json").read_text())["mcpServers"]) == ["almanac"]
    connected = run(home, "connect", "claude-desktop", "--json")
    assert "pactgate" in json.loads((home / DESKTOP).read_text())["mcpServers"], connected.stderr
    assert run(home, "disconnect", "claude-desktop").returncode == 0
    assert (home / DESKTOP).read_bytes() == before


def test_a_server_is_listed_and_called_and_so_is_a_file_of_python_tools(home: Path) -> None:
    called = run(home, "call", "convert_units", "value=1", "from=km", "to=m", "--", *ALMANAC)
    assert (called.returncode, json.loads(called.stdout)["result"]) == (0, 1000), called.stderr
    write_tools(home, '@tool(**query)\ndef double(number: int) -> int:\n    "Doubles."\n    return 2 * number\n')
    own = run(home, "call", "double", "number=4", "--", *PROGRAM, "serve", "--stdio", "kit.py")
    assert (own.returncode, json.loads(own.stdout)) == (0, {"result": 8}), own.stderr


def test_what_the_kernel_can_not_enforce_there_is_said(home: Path) -> None:
    entry = {"command": ALMANAC[0], "args": ALMANAC[1:], "effects": {"enforce": True}}
    (home / "pactgate.json").write_text(json.dumps({"mcpServers": {"almanac": entry}}))
    doctor = run(home, "doctor")
    assert "macOS: the kernel can't enforce the effects of servers" in doctor.stdout
    live = json.loads(run(home, "check", "--live", "--json").stdout)
    assert "can't be enforced" in json.dumps(live)
