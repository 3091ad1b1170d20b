"""The fixture for authors of servers, in a pytest run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pactgate.pytest_plugin import Compliance

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "support" / "stdio_upstream.py"

TESTS = f"""
import asyncio, json, sys

GOOD, BAD = json.dumps({{"era": "dual"}}), json.dumps({{"era": "legacy", "broken_lists": ["tools/list"]}})

def test_good(mcp_compliance):
    mcp_compliance(sys.executable, {str(SERVER)!r}, GOOD)

def test_bad(mcp_compliance):
    mcp_compliance(sys.executable, {str(SERVER)!r}, BAD)

def test_missing(mcp_compliance):
    mcp_compliance("no-such-program")

def test_capture(mcp_compliance):
    report = mcp_compliance(capture={str(ROOT / "examples" / "captures" / "almanac.json")!r})
    assert report.passed

def test_on_a_loop(mcp_compliance):
    async def inside():
        mcp_compliance(sys.executable, {str(SERVER)!r}, GOOD, era="modern", rules="all")
    asyncio.run(inside())

def test_unclear(mcp_compliance):
    mcp_compliance("x", url="http://127.0.0.1:1/mcp")
"""


def test_a_server_author_gates_a_run_with_one_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_server.py").write_text(TESTS)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "pactgate.pytest_plugin",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False, cwd=tmp_path)
    said = done.stdout
    assert "3 failed, 3 passed" in said, said + done.stderr
    assert "INV-004" in said
    assert "The capture is in" in said
    assert "no-such-program can't be asked" in said
    assert "TypeError: name one of" in said


def test_each_session_is_kept_under_a_name_of_its_own(tmp_path: Path) -> None:
    check = Compliance(tmp_path)
    for _ in range(2):
        assert check(sys.executable, SERVER, "{}").passed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["session-1.json", "session-2.json"]
