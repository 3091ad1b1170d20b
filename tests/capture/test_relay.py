"""The relay for stdio, run as people run it: nothing on the wire changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.relay import LineRecorder
from tests.capture.taps import Noted

PACTGATE = [sys.executable, "-m", "pactgate"]
ECHO = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]


def record(folder: Path, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    words = [*PACTGATE, "record", "-o", str(folder / "session.json"), "--", *command]
    return subprocess.run(words, capture_output=True, timeout=20, check=False, **options)


def test_every_byte_passes_as_it_came(tmp_path: Path) -> None:
    sent = b'\xff\x00no json\r\n\n  {"id":1,"method":"x"}  \n{"a":\n' + os.urandom(300_000) + b"\n" + b"x" * 200_000
    done = record(tmp_path, ECHO, input=sent)
    assert done.stdout == sent
    assert done.returncode == 0
    capture = json.loads((tmp_path / "session.json").read_text())
    assert capture["exchanges"][0]["request"] == {"id": 1, "method": "x"}
    assert capture["noise"] > 2


@pytest.mark.parametrize(("program", "code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_code_is_the_commands_own(tmp_path: Path, program: str, code: int) -> None:
    assert record(tmp_path, [sys.executable, "-c", program], input=b"").returncode == code


def test_stderr_of_the_command_is_passed_on(tmp_path: Path) -> None:
    done = record(tmp_path, [sys.executable, "-c", "import sys; sys.stderr.write('a word')"], input=b"")
    assert b"a word" in done.stderr


def test_a_program_that_does_not_exist_is_said_in_plain_words(tmp_path: Path) -> None:
    done = record(tmp_path, ["no-such-program"], input=b"")
    assert done.returncode == 127
    assert b"no-such-program can't be started" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_the_capture_is_finished(tmp_path: Path, number: int) -> None:
    program = (
        "import signal, sys\n"
        "for n in (signal.SIGTERM, signal.SIGINT): signal.signal(n, lambda *_: sys.exit(5))\n"
        'print(\'{"method":"ready"}\', flush=True)\nsys.stdin.read()'
    )
    words = [*PACTGATE, "record", "-o", str(tmp_path / "s.json"), "--", sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b'{"method":"ready"}\n'
        running.send_signal(number)
        assert running.wait(10) == 5
    capture = json.loads((tmp_path / "s.json").read_text())
    assert [each["request"]["method"] for each in capture["exchanges"]] == ["ready"]


def test_what_a_killed_recorder_leaves_can_be_judged(tmp_path: Path) -> None:
    program = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    words = [*PACTGATE, "record", "-o", str(tmp_path / "s.json"), "--", sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b'{"jsonrpc":"2.0","method":"x"}\n')
        running.stdin.flush()
        assert running.stdout.readline()
        _until(lambda: any(json.loads(part.read_text())["exchanges"] for part in tmp_path.glob("*.part")))
        running.kill()
    (left,) = tmp_path.iterdir()
    done = subprocess.run(
        [*PACTGATE, "compliance", "invariants", "--capture", str(left)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _until(condition: Any) -> None:
    import threading

    tick = threading.Event()
    for _ in range(100):
        if condition():
            return
        tick.wait(0.05)
    raise AssertionError("not within 5 s")


def test_a_line_too_long_to_keep_is_passed_over_and_the_next_one_is_not() -> None:
    tap = Noted()
    lines = LineRecorder(tap, from_client=True, max_bytes=10)
    for piece in (b"x" * 8, b"y" * 8, b"z\n", b'{"a":1}\n', b"x" * 30 + b'\n{"b":2}\n'):
        lines.feed(piece)
    assert [text for text, _ in tap.passed_texts] == [b"", b'{"a":1}', b"", b'{"b":2}']
