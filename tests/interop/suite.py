"""Runs the official conformance suite and reads what it found: which required scenarios failed, by what."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.interop.processes import HERE, NODE, PYTHON, ROOT, TOOLS, Program

FOLDER = TOOLS / "conformance"
PROGRAM = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
EXPECTED = json.loads((HERE / "expected_failures.json").read_text())
SCENARIO_MS = 20_000
RUN_S = 120

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ROW = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed", re.MULTILINE)
_UNSCORED = re.compile(r"^  [✓✗] (\S+) \(", re.MULTILINE)


class Found(NamedTuple):
    """The required scenarios of one run, and those of them that failed."""

    required: set[str]
    failed: set[str]
    text: str


def why_not_here() -> str | None:
    missing = not (FOLDER / ".installed").is_file() or not NODE.exists()
    return (
        "NOT RUN: the conformance suite is not installed: run `make interop` and read what it says" if missing else None
    )


def judge_server(url: str, revision: str, folder: Path) -> Found:
    """The server scenarios a revision requires, against what answers at the URL."""
    arguments = ["server", "--url", url, "--requirements", revision, "--timeout", str(SCENARIO_MS), "-o", str(folder)]
    text = _run(arguments).stdout
    summary = text.partition("=== SUMMARY ===")[2]
    unscored = set(_UNSCORED.findall(summary))
    rows = [(mark, name) for mark, name in _ROW.findall(summary) if name not in unscored]
    assert rows, f"the suite did not run: {text[-2000:]}"
    failed = {name for mark, name in rows if mark == "✗"}
    return Found({name for _, name in rows}, failed, _explain(folder, failed))


@contextmanager
def driver(folder: Path) -> Iterator[Path]:
    """The socket at which a program waits that plays the gateway as a client."""
    place = folder / "driver"
    program = Program([PYTHON, HERE / "clients" / "gateway.py", place], folder / "driver.log")
    try:
        program.wait_until(place.exists, "the driver listens")
        yield place
    finally:
        program.stop()


def judge_client(scenario: str, revision: str, folder: Path, place: Path) -> str | None:
    """One client scenario, with the gateway as the client: None when it passed, else what the suite said."""
    command = f"{PYTHON} -I -S {HERE / 'clients' / 'errand.py'} {place}"
    arguments = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision]
    done = _run([*arguments, "--timeout", str(SCENARIO_MS), "--force", "-o", str(folder)])
    return None if done.returncode == 0 else done.stdout[-4000:]


def _run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(NODE), str(PROGRAM), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, _COLOURS.sub("", done.stdout + done.stderr))


def _explain(folder: Path, failed: set[str]) -> str:
    """The first message of each failed check, for whoever reads the test's failure."""
    lines = []
    for checks in sorted(folder.rglob("checks.json")):
        if any(name in checks.parent.name for name in failed):
            found = [check for check in json.loads(checks.read_text()) if check["status"] == "FAILURE"]
            lines += [f"{checks.parent.name}: {check['id']}: {check.get('errorMessage')}" for check in found]
    return "\n".join(lines)
