"""The files that captures are written to: one file per session, in a folder with a bounded number of files or under one given name.

After every `sync` a session's file is a complete capture, so a crash leaves a readable file. The end of the file (exchanges that still
wait, and what is known of the session) is written again each time, behind the exchanges that are final. A file being written is
locked, which distinguishes it from one that a crash left behind. A folder removes only files with names that it gives itself.
Must not: know what an exchange is.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

PART: Final = ".part"
_MODE: Final = 0o600
_OWN_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9]{4,}-[a-z0-9._-]{1,80}\.json")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9._-]+")
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_COPY_BYTES: Final = 1024 * 1024


class SessionFile:
    """The file of one session. `path` is its final name; until `finish` it has the suffix `.part`. Raises OSError."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path = path
        self.part = path.with_name(path.name + PART)
        self.exchange_count = 0
        self._fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._final_bytes = 0
        self._disk_bytes = 0
        self._unwritten = [msgspec.json.encode(head)[:-1] + b',"exchanges":[']
        self.sync((), {})

    def append(self, exchanges: Iterable[bytes]) -> None:
        """Add exchanges that are final. They reach the disk with the next `sync`."""
        for exchange in exchanges:
            self._unwritten += (b",\n" if self.exchange_count else b"\n", exchange)
            self.exchange_count += 1

    def sync(self, held: Iterable[bytes], facts: dict[str, Any]) -> None:
        """Write a complete capture. `held` are exchanges that may still change, `facts` the members after the exchanges."""
        waiting = b",\n".join(held)
        lead = b",\n" if self.exchange_count and waiting else b"\n" if waiting else b""
        members = msgspec.json.encode(facts)[1:-1]
        end = lead + waiting + b"\n]" + (b"," + members if members else b"") + b"}\n"
        data = b"".join((*self._unwritten, end))
        self._write(data)
        self._final_bytes += len(data) - len(end)
        self._unwritten.clear()

    def finish(self, facts: dict[str, Any], held: Iterable[bytes] = ()) -> Path:
        """Write everything, and close the file under its final name."""
        try:
            self.append(held)
            self.sync((), facts)
            self.part.rename(self.path)
        finally:
            self.abandon()
        return self.path

    def abandon(self) -> None:
        """Close the file and leave it as the last `sync` wrote it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        view, at = memoryview(data), self._final_bytes
        while view:
            count = os.pwrite(self._fd, view, at)
            view, at = view[count:], at + count
        if at < self._disk_bytes:
            os.ftruncate(self._fd, at)
        self._disk_bytes = at


class CaptureStore(Protocol):
    """Creates the files of sessions. `finished` is called with each complete file. Raises OSError."""

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile: ...

    def finished(self, path: Path) -> None: ...

    def close(self) -> None: ...


class CaptureFolder:
    """A folder that keeps the newest `max_files` captures."""

    def __init__(self, path: Path, max_files: int) -> None:
        self.path = path
        self._max_files = max_files
        self._count = 0
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        adopt_leftovers(path)
        self._prune()

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        stamp = datetime.now(UTC).strftime(_STAMP)
        name = _NOT_IN_NAMES.sub("-", label.lower()).strip("-")[:60] or "session"
        while True:
            self._count += 1
            try:
                return SessionFile(self.path / f"{stamp}-{self._count:04d}-{name}.json", head)
            except FileExistsError:
                continue  # another gateway writes into the same folder

    def finished(self, path: Path) -> None:
        self._prune()

    def close(self) -> None:
        return

    def _prune(self) -> None:
        own = sorted(file for file in self.path.glob("*.json") if _OWN_NAME.fullmatch(file.name))
        for old in own[: -self._max_files]:
            old.unlink(missing_ok=True)


class SingleCaptureFile:
    """One file for all sessions: an object for one session, an array for several. Replaces an existing file only at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sessions: list[Path] = []
        self._count = 0

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        while True:
            self._count += 1
            try:
                return SessionFile(self.path.with_name(f"{self.path.name}.{self._count}"), head)
            except FileExistsError:
                continue  # a file that a crash left behind is not overwritten

    def finished(self, path: Path) -> None:
        self._sessions.append(path)

    def close(self) -> None:
        if len(self._sessions) == 1:
            self._sessions[0].replace(self.path)
        elif self._sessions:
            self._join()
        self._sessions = []

    def _join(self) -> None:
        whole = self.path.with_name(self.path.name + ".whole")
        with whole.open("wb") as out:
            whole.chmod(_MODE)
            for number, session in enumerate(sorted(self._sessions, key=_number)):
                out.write(b",\n" if number else b"[\n")
                with session.open("rb") as file:
                    while piece := file.read(_COPY_BYTES):
                        out.write(piece)
            out.write(b"]\n")
        whole.replace(self.path)
        for session in self._sessions:
            session.unlink()


def adopt_leftovers(folder: Path) -> list[Path]:
    """Give files that a crash left behind their final names. Files that another process writes are left alone."""
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


def captures_in(folder: Path) -> list[Path]:
    """The captures that a gateway has written there, and those it is writing, the oldest first. Raises OSError."""
    return sorted(
        path for path in folder.iterdir() if _OWN_NAME.fullmatch(path.name.removesuffix(PART)) and path.is_file()
    )


def begun_at(path: Path) -> float | None:
    """When a capture in a folder was begun, by its name."""
    try:
        return datetime.strptime(path.name[:16], _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _number(path: Path) -> int:
    return int(path.name.rpartition(".")[2])
