"""A relay between any client and any stdio server: it forwards every byte unchanged, and a recorder gets the lines.

The child inherits stderr and gets the end of input and the signals that this process gets; its exit code becomes that of this process.
Two threads forward, each with one buffer, so back-pressure works as it would without the relay.
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
_DRAIN_S: Final = 5.0
_FORWARDED_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class LineRecorder:
    """Gives the lines of one direction to the recorder. Of a line that is too long it gives an empty one, which counts as noise."""

    def __init__(self, recorder: ConnectionRecorder, *, from_client: bool, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._recorder = recorder
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
            self._recorder.passed(line, from_client=self._from_client)
        self._kept.clear()
        self._is_too_long = False


def relay(command: Sequence[str], recorder: ConnectionRecorder, *, stdin: int = 0, stdout: int = 1) -> int:
    """Run the command between stdin and stdout and return its exit code. Raises OSError if it can't be started."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    before = {number: signal.signal(number, _forwarder(child)) for number in _FORWARDED_SIGNALS}
    to_server = threading.Thread(
        target=_pump,
        args=(stdin, child.stdin.fileno(), LineRecorder(recorder, from_client=True), child.stdin),
        daemon=True,
    )
    to_client = threading.Thread(
        target=_pump, args=(child.stdout.fileno(), stdout, LineRecorder(recorder, from_client=False), None), daemon=True
    )
    try:
        to_server.start()
        to_client.start()
        code = child.wait()
        to_client.join(_DRAIN_S)  # with a limit: a grandchild may hold the pipe for ever
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        recorder.closed()
    return code if code >= 0 else 128 - code


def _forwarder(child: subprocess.Popen[bytes]) -> Any:
    def forward(number: int, _frame: object) -> None:
        child.send_signal(number)

    return forward


def _pump(source: int, target: int, lines: LineRecorder, ends: Any) -> None:
    """Forward everything. When the target is gone the rest is read and dropped, so that the source never blocks."""
    is_gone = False
    while data := _read(source):
        lines.feed(data)  # before writing, else a response could be recorded before its request
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
