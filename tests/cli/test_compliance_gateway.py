"""`pactgate compliance gateway` as people run it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, environment, heed_interrupts, run
from tests.support.eventually import eventually_blocking


def test_checks_are_listed_and_explained(tmp_path: Path) -> None:
    done = run(tmp_path, "compliance", "gateway", "--list", "--only", "names,GWP-001")
    assert done.returncode == 0
    assert "GWP-001" in done.stdout
    assert "GWP-060" in done.stdout
    assert "GWP-002" not in done.stdout
    assert "2^53" in run(tmp_path, "compliance", "rules", "GWP-001").stdout


def test_a_run_without_a_gateway_passes_and_is_judged_again_from_its_recording(tmp_path: Path) -> None:
    kept = str(tmp_path / "run.json")
    done = run(
        tmp_path, "compliance", "gateway", "--for", "direct", "--only", "gwp-001", "-o", kept, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    again = run(tmp_path, "compliance", "gateway", "--from", kept, "--format", "json")
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert "100 %" in run(tmp_path, "compliance", "gateway", "--from", kept).stdout


def test_a_wrong_invocation_ends_with_two(tmp_path: Path) -> None:
    assert run(tmp_path, "compliance", "gateway").returncode == 2
    assert run(tmp_path, "compliance", "gateway", "--only", "GWP-999", "--for", "direct").returncode == 2
    assert run(tmp_path, "compliance", "gateway", "--url", "http://127.0.0.1:1/mcp", "--from", "x").returncode == 2
    assert run(tmp_path, "compliance", "gateway", "--for", "direct", "--servers", "x").returncode == 2
    assert run(tmp_path, "compliance", "gateway", "--start", "there-is-no-such-program").returncode == 2


SLEEPS = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()} '); time.sleep(60)"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_behind(tmp_path: Path, end: signal.Signals) -> None:
    told = tmp_path / "pid"
    start = shlex.join([sys.executable, "-c", SLEEPS, str(told)])
    words = [*PROGRAM, "compliance", "gateway", "--start", start]
    env = environment(tmp_path, TMPDIR=str(tmp_path))
    child = subprocess.Popen(words, env=env, cwd=tmp_path, preexec_fn=heed_interrupts, stderr=subprocess.DEVNULL)
    try:
        eventually_blocking(lambda: told.is_file() and told.read_text().endswith(" "))
        child.send_signal(end)
        assert child.wait(10) != 0
    finally:
        child.kill()
        child.wait()
    eventually_blocking(lambda: not list(running(str(tmp_path))))


def running(word: str) -> Iterator[str]:
    """The processes with this in their command: the scripted servers and the gateway have the folder of the test in theirs."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word in (command := path.read_text(errors="replace")):
                yield command
