"""Between any client and any stdio server: every byte is passed on as it came, and a tap is told of the lines in it.

The child inherits stderr, gets the end of our input as the end of its own, and every signal we are told to stop by; its exit code is
ours. Two threads pump, each with one buffer, so that a side that does not read makes the other wait as it would without us.
Must not: change, delay or hold back a byte for the sake of the recording.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from pactgate.core.recording import ConnectionRecorder

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_LAST_WORDS_S: Final = 5.0
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class LineRecorder:
    """The lines of one direction. One that is too long to be kept is passed over."""

    def __init__(self, tap: ConnectionRecorder, *, from_client: bool, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._tap = tap
        self._from_client = from_client
        self._max_bytes = max_bytes
        self._kept = bytearray()
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._keep(piece)
            self._end_line()
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        if len(self._kept) + len(piece) > self._max_bytes:
            self._is_too_long = True
            self._kept.clear()
        elif not self._is_too_long:
            self._kept += piece

    def _end_line(self) -> None:
        line = bytes(self._kept).strip()
        if line or self._is_too_long:
            self._tap.passed(
                line, from_client=self._from_client
            )  # of one that is too long nothing, so that it is counted
        self._kept.clear()
        self._is_too_long = False


def relay(command: Sequence[str], tap: ConnectionRecorder, *, stdin: int = 0, stdout: int = 1) -> int:
    """Run the command between our input and output until it ends; its exit code. Raises OSError if it can't be started."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    before = {number: signal.signal(number, _teller(child)) for number in _PASSED_ON}
    to_server = threading.Thread(
        target=_pump, args=(stdin, child.stdin.fileno(), LineRecorder(tap, from_client=True), child.stdin), daemon=True
    )
    to_client = threading.Thread(
        target=_pump, args=(child.stdout.fileno(), stdout, LineRecorder(tap, from_client=False), None), daemon=True
    )
    try:
        to_server.start()
        to_client.start()
        code = child.wait()
        to_client.join(_LAST_WORDS_S)  # a grandchild may hold the pipe for ever
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        tap.closed()
    return code if code >= 0 else 128 - code


def _teller(child: subprocess.Popen[bytes]) -> Any:
    def tell(number: int, _frame: object) -> None:
        child.send_signal(number)

    return tell


def _pump(source: int, target: int, lines: LineRecorder, ends: Any) -> None:
    """Pass everything on. When the target is gone the rest is read and thrown away, so that the source is never blocked."""
    is_gone = False
    while data := _read(source):
        lines.feed(data)  # first, or an answer could be noted before its request
        if not is_gone:
            is_gone = not _write_all(target, data)
    if ends is not None:
        with suppress(OSError):
            ends.close()


def _read(source: int) -> bytes:
    try:
        return os.read(source, _READ_BYTES)
    except OSError:
        return b""


def _write_all(target: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError:
        return False
    return True
