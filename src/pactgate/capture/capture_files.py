"""Where captures go: a folder with many of them, the oldest of which make room, or one file that was asked for by name.

Only its own files are ever removed: those with the names it gives. Must not: know what a session is.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from pactgate.capture.session_file import SessionFile, adopt_leftovers

_OURS: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9]{4,}-[a-z0-9._-]{1,80}\.json")
_UNFIT: Final = re.compile(r"[^a-z0-9._-]+")
_COPY_BYTES: Final = 1024 * 1024


class CaptureStore(Protocol):
    """Makes files for sessions and takes them back when they are finished. Raises OSError."""

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile: ...

    def finished(self, path: Path) -> None: ...

    def close(self) -> None: ...


class CaptureFolder:
    """Keeps the newest `max_files` captures of a folder."""

    def __init__(self, path: Path, max_files: int) -> None:
        self.path = path
        self._max_files = max_files
        self._count = 0
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        adopt_leftovers(path)
        self._prune()

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        words = _UNFIT.sub("-", label.lower()).strip("-")[:60] or "session"
        while True:
            self._count += 1
            try:
                return SessionFile(self.path / f"{stamp}-{self._count:04d}-{words}.json", head)
            except FileExistsError:
                continue  # another gateway writes into the same folder

    def finished(self, path: Path) -> None:
        self._prune()

    def close(self) -> None:
        return

    def _prune(self) -> None:
        ours = sorted(file for file in self.path.glob("*.json") if _OURS.fullmatch(file.name))
        for old in ours[: -self._max_files]:
            old.unlink(missing_ok=True)


class SingleCaptureFile:
    """One capture under one name: a session, or an array of them where there were several. Replaced only when all is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts: list[Path] = []
        self._count = 0

    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        while True:
            self._count += 1
            try:
                return SessionFile(self.path.with_name(f"{self.path.name}.{self._count}"), head)
            except FileExistsError:
                continue  # what a crash left behind is not ours to overwrite

    def finished(self, path: Path) -> None:
        self._parts.append(path)

    def close(self) -> None:
        if len(self._parts) == 1:
            self._parts[0].replace(self.path)
        elif self._parts:
            self._join()
        self._parts = []

    def _join(self) -> None:
        whole = self.path.with_name(self.path.name + ".whole")
        with whole.open("wb") as out:
            whole.chmod(0o600)
            for number, part in enumerate(sorted(self._parts, key=_number)):
                out.write(b",\n" if number else b"[\n")
                with part.open("rb") as file:
                    while piece := file.read(_COPY_BYTES):
                        out.write(piece)
            out.write(b"]\n")
        whole.replace(self.path)
        for part in self._parts:
            part.unlink()


def _number(path: Path) -> int:
    return int(path.name.rpartition(".")[2])
