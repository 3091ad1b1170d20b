"""The record of a scripted server: a file of JSON lines, bounded, that the runner reads while the server runs."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pactgate.conformance.gateway.recording import Frame, ScriptedSide

_MAX_BYTES: Final = 128 * 1024 * 1024
_MAX_EQUAL: Final = 10
"""Of a flood, so many messages are kept."""


class ServerLog:
    """One server writes its messages. Every process of the server has a file of its own."""

    def __init__(self, tag: str, path: Path) -> None:
        self.lock = threading.Lock()
        self._tag = tag
        self._written = 0
        self._last = ("", 0)
        """The last message, and how often it came in a row."""
        self._file = path.with_name(f"{path.name}.{os.getpid()}").open("w", encoding="ascii")

    def add(
        self,
        *,
        is_sent: bool,
        data: str,
        label: str,
        exchange: str,
        status: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        line = json.dumps([time.time(), self._tag, is_sent, data, label, exchange, status, headers])
        with self.lock:
            self._last = data, self._last[1] + 1 if self._last[0] == data else 1
            if self._last[1] > _MAX_EQUAL:
                return
            self._written += len(line)
            if self._written < _MAX_BYTES:
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        self._file.close()


class ScriptedLogs:
    """Reads the records of all servers in a folder; each call continues where the last one ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.frames: list[Frame] = []

    def refresh(self) -> list[Frame]:
        """All frames until now, in the order in which they were read."""
        for path in sorted(self._folder.glob("record.*")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read(_MAX_BYTES)
            whole = data.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            self.frames += map(_frame, data[:whole].splitlines())
        return self.frames

    def processes(self, tag: str) -> list[int]:
        """The process ids that a server had so far."""
        return [int(path.name.rpartition(".")[2]) for path in self._folder.glob(f"record.{tag}.*")]

    def about(self, labels: Iterable[str]) -> list[Frame]:
        wanted = set(labels)
        return [frame for frame in self.refresh() if frame.label in wanted]


def _frame(line: bytes) -> Frame:
    at, tag, is_sent, data, label, exchange, status, headers = json.loads(line)
    return Frame(
        at=at,
        side=ScriptedSide.SERVER,
        who=tag,
        is_sent=is_sent,
        data=data,
        label=label,
        exchange=exchange,
        status=status,
        headers=tuple((name, value) for name, value in headers),
    )
