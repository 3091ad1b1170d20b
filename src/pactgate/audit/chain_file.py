"""The file of an audit log: locked by one process, whole lines only, rotated when it is full.

`append` writes all of its records or none: after a failure the file is truncated to its former size. A half-written line that a killed
process left is cut off when the file is opened, and the next record says so. Rotated files are `audit.000001.jsonl`,
`audit.000002.jsonl` and so on; the chain continues across them. Blocks: for the writer's thread only.
Must not: decide what a failure means.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pactgate.audit import chain
from pactgate.audit.chain import MAX_LINE_BYTES, START, BrokenLineError
from pactgate.audit.record import own_facts

_LOCK_WAIT_S: Final = 2.0
"""A killed gateway releases its lock a moment later."""
_LOCK_STEP_S: Final = 0.02
_LOOK_S: Final = 1.0
_LINK_BYTES: Final = 200
"""More than a line has besides its facts."""


class LogLockedError(Exception):
    """Another process writes this log."""


class ChainFile:
    """One log. `path` is the file being written."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        max_files: int,
        fsync: bool,
        key: bytes = b"",
        about: dict[str, Any] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.last = START
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._fsync = fsync
        self._key = key
        self._about = about or {}
        self._wall = wall
        self._fd = -1
        self._lock_fd = -1
        self._inode = (0, 0)
        self._size = 0
        self._seen_until = 0.0
        self._opening: dict[str, Any] = {}
        """Facts about the state in which the file was found, for the next record of the log itself."""

    def lock(self) -> None:
        """Lock the log or raise LogLockedError. The lock ends with `close` or with the process."""
        name = f"{self.path}.lock"
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    os.close(fd)
                    raise LogLockedError(str(self.path)) from None
                time.sleep(_LOCK_STEP_S)
            else:
                self._lock_fd = fd
                return

    def open(self) -> None:
        """Find the end of the chain and cut off a half-written line. Raises OSError. Writes nothing else."""
        self._open()
        if self._size == 0:
            self._begin_after_others()
            return
        tail, cut_bytes = self._tail()
        if cut_bytes:
            os.ftruncate(self._fd, self._size - cut_bytes)
            self._size -= cut_bytes
            self._opening["repairedBytes"] = cut_bytes
        if self._size == 0:
            self._begin_after_others()
            return
        try:
            self.last = chain.read(tail, self._key)[1]
        except BrokenLineError as broken:
            self._rename_full_file()
            self._open()
            self._begin_anew(str(broken))

    def reopen(self) -> None:
        """Open the file again after a failure; the chain continues after this process's last record. Raises OSError."""
        same, written_bytes = self._inode, self._size
        self._close_file()
        self._open()
        if self._inode == same and self._size > written_bytes:
            os.ftruncate(self._fd, written_bytes)
            self._size = written_bytes

    def opened_facts(self) -> bytes:
        """The record that a start writes first."""
        said = own_facts("opened", self._wall(), **self._about, **self._opening)
        self._opening = {}
        return said

    def append(self, records: Sequence[bytes]) -> None:
        """Write these records, all or none, in one piece. Raises OSError."""
        self._check_not_deleted()
        if self._size and self._size + sum(len(facts) + _LINK_BYTES for facts in records) > self._max_bytes:
            self._rotate()
        last, lines, is_new = self.last, [], self._size == 0 and self.last.seq > 0
        if is_new:
            records = (own_facts("continued", self._wall(), **self._about, **self._opening), *records)
        for facts in records:
            line, last = chain.append_record(facts, last, self._key)
            lines.append(line)
        self._write(b"".join(lines))
        self.last = last
        if is_new:
            self._opening = {}

    def _check_not_deleted(self) -> None:
        """Raise OSError soon after the file of a running gateway was deleted: records must not be lost unnoticed."""
        now = time.monotonic()
        if now < self._seen_until:
            return
        if os.fstat(self._fd).st_nlink == 0:
            raise OSError(errno.ENOENT, "the file was deleted while it was being written")
        self._seen_until = now + _LOOK_S

    def close(self) -> None:
        self._close_file()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            if self._fsync:
                os.fdatasync(self._fd)
        except OSError:
            with suppress(OSError):  # what can't be cut off now is when the file is taken up again
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        fd = os.open(self.path, flags, 0o600)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "it is not a regular file")
        self._seen_until = 0.0
        self._fd, self._inode, self._size = fd, (found.st_dev, found.st_ino), found.st_size

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _tail(self) -> tuple[bytes, int]:
        """The last whole line, and how many bytes of a half-written one follow it."""
        start = max(0, self._size - 2 * MAX_LINE_BYTES)
        end = os.pread(self._fd, self._size - start, start)
        whole, newline, torn = end.rpartition(b"\n")
        if not newline and start:
            return end, 0  # longer than any record of ours: not half of one
        if not newline:
            return b"", len(torn)
        return whole.rpartition(b"\n")[2] + newline, len(torn)

    def _begin_after_others(self) -> None:
        """Continue the chain of the last rotated file: the process was killed between rotating and writing."""
        numbers = rotated_files(self.path)
        if not numbers:
            self.last = START
            return
        before = numbers[-1]
        try:
            self.last = chain.read(last_line(before), self._key)[1]
        except (BrokenLineError, OSError) as broken:
            self._begin_anew(str(broken), before)
            return
        self._opening["after"] = before.name

    def _begin_anew(self, why: str, before: Path | None = None) -> None:
        self.last = START
        self._opening["broken"] = (
            f"the chain of {(before or rotated_files(self.path)[-1]).name} can't be continued: {why}"
        )

    def _rotate(self) -> None:
        """Rename the full file and open an empty one. The oldest files beyond the bound are deleted."""
        self._opening["after"] = self._rename_full_file().name
        for old in rotated_files(self.path)[: -self._max_files]:
            old.unlink(missing_ok=True)
            self._opening["deleted"] = old.name
        self._open()

    def _rename_full_file(self) -> Path:
        numbers = rotated_files(self.path)
        number = _number(self.path, numbers[-1]) + 1 if numbers else 1
        aside = self.path.with_name(f"{self.path.stem}.{number:06}{self.path.suffix}")
        os.rename(self.path, aside)
        self._close_file()
        return aside


def rotated_files(path: Path) -> list[Path]:
    """The files of this log that were set aside, the oldest first."""
    if not path.parent.is_dir():
        return []
    found = [one for one in path.parent.iterdir() if _number(path, one)]
    return sorted(found, key=lambda one: _number(path, one))


def _number(path: Path, one: Path) -> int:
    match = re.fullmatch(re.escape(path.stem) + r"\.([0-9]{6,})" + re.escape(path.suffix), one.name)
    return int(match[1]) if match else 0


def last_line(path: Path) -> bytes:
    """The last line of a file, of bounded length."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2 * MAX_LINE_BYTES))
        lines = file.read(2 * MAX_LINE_BYTES).splitlines(keepends=True)
    return lines[-1] if lines else b""
