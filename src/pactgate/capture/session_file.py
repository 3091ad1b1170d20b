"""One capture on disk while it grows. After every `sync` the file is a whole capture, so that a crash leaves one that can be read.

The end of the text (what still waits, and what is known of the session) is written again each time, behind the exchanges that are
final; a new name and nothing else makes it a finished capture. A file being written is locked, which tells it from one that a crash
left behind. Must not: know what an exchange is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

PART: Final = ".part"
_MODE: Final = 0o600


class SessionFile:
    """`path` is its final name. Raises OSError wherever the disk does."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path = path
        self.part = path.with_name(path.name + PART)
        self.exchange_count = 0
        self._fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._final_bytes = 0
        self._disk_bytes = 0
        self._unwritten = [msgspec.json.encode(head)[:-1] + b',"exchanges":[']
        self._unwritten_bytes = len(self._unwritten[0])
        self.sync((), {})

    @property
    def size_bytes(self) -> int:
        return self._final_bytes + self._unwritten_bytes

    @property
    def unwritten_bytes(self) -> int:
        return self._unwritten_bytes

    def append(self, exchanges: Iterable[bytes]) -> None:
        texts = list(exchanges)
        if texts:
            piece = (b",\n" if self.exchange_count else b"\n") + b",\n".join(texts)
            self._unwritten.append(piece)
            self._unwritten_bytes += len(piece)
            self.exchange_count += len(texts)

    def sync(self, held: Iterable[bytes], facts: dict[str, Any]) -> None:
        """Make the file on disk whole."""
        final = b"".join(self._unwritten)
        waiting = list(held)
        lead = b",\n" if self.exchange_count and waiting else b"\n" if waiting else b""
        known = msgspec.json.encode(facts)[1:-1]
        end = lead + b",\n".join(waiting) + b"\n]" + (b"," + known if known else b"") + b"}\n"
        self._write(final + end)
        self._final_bytes += len(final)
        self._unwritten.clear()
        self._unwritten_bytes = 0

    def finish(self, facts: dict[str, Any], held: Iterable[bytes] = ()) -> Path:
        """Close it under its final name."""
        try:
            self.append(held)
            self.sync((), facts)
            self.part.rename(self.path)
        finally:
            self.abandon()
        return self.path

    def abandon(self) -> None:
        """Leave it as the last `sync` did."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, text: bytes) -> None:
        view, at = memoryview(text), self._final_bytes
        while view:
            count = os.pwrite(self._fd, view, at)
            view, at = view[count:], at + count
        if at < self._disk_bytes:
            os.ftruncate(self._fd, at)
        self._disk_bytes = at


def adopt_leftovers(folder: Path) -> list[Path]:
    """Give what a crash left behind its final name; files that somebody is writing are left alone."""
    adopted = []
    for part in sorted(folder.glob(f"*{PART}")):
        with suppress(OSError):
            fd = os.open(part, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                final = part.with_name(part.name.removesuffix(PART))
                part.rename(final)
                adopted.append(final)
            finally:
                os.close(fd)
    return adopted
