"""`pactgate top` in a real terminal: it shows the traffic, takes keys, and leaves the terminal as it was."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest

from tests.cli.program import PROGRAM, WAIT_S, Served, demo, environment, heed_interrupts, write_config

OTHER_SCREEN, FORMER_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


class OnTerminal:
    """`pactgate top` in a terminal of 80 by 24."""

    def __init__(self, served: Served) -> None:
        self._ours, self._theirs = pty.openpty()
        termios.tcsetwinsize(self._theirs, (24, 80))
        self.before = termios.tcgetattr(self._theirs)
        env = environment(served.folder, PACTGATE_URL=served.url)
        terminal = self._theirs
        self.process = subprocess.Popen(
            [*PROGRAM, "top"],
            cwd=served.folder,
            env=env,
            preexec_fn=heed_interrupts,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + 2 * WAIT_S
        while text not in self.seen:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, self.seen
            self.seen += os.read(self._ours, 65536)

    def press(self, keys: bytes) -> None:
        self.seen = b""
        os.write(self._ours, keys)

    def ended(self) -> tuple[int, bool]:
        """The exit code, and whether the terminal is as it was."""
        self.wait_for(FORMER_SCREEN)
        code = self.process.wait(WAIT_S)
        return code, termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("top")
    write_config(folder, {"pad": demo("scratchpad")})
    with Served(folder) as gateway:
        gateway.wait_for("ok    pad")
        gateway.run("call", "pad.note_list")
        yield gateway


@pytest.fixture
def screen(served: Served) -> Iterator[OnTerminal]:
    terminal = OnTerminal(served)
    terminal.wait_for(OTHER_SCREEN)
    terminal.wait_for(b"LAST CALLS")
    yield terminal
    terminal.close()


def test_q_ends_it_and_the_terminal_is_as_it_was(screen: OnTerminal) -> None:
    screen.press(b"s")
    screen.wait_for(b"sorted by p95")
    screen.press(b"\r")
    screen.wait_for(b"request id")
    screen.press(b"q")
    screen.wait_for(b"LAST CALLS")
    screen.press(b"q")
    assert screen.ended() == (0, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(screen: OnTerminal, number: signal.Signals) -> None:
    screen.process.send_signal(number)
    assert screen.ended() == (0, True)


def test_once_with_json_is_for_programs(served: Served) -> None:
    shown = served.run("top", "--once", "--json")
    assert [row["server"] for row in json.loads(shown.stdout)] == ["pad"]
    assert served.run("top").returncode == 2
