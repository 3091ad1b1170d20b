"""Verifies an audit log: reads its files in order and reports every place where the chain breaks.

Reads one line at a time, so a log may have any size. Must not: change or lock anything, because a gateway may be writing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from os import SEEK_END
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pactgate.audit import chain
from pactgate.audit.chain import GENESIS, MAX_LINE_BYTES, START, BrokenLineError, ChainLink
from pactgate.audit.chain_file import rotated_files

MAX_BREAKS: Final = 100
_NEWLINE: Final = b"\n"
_ATTEMPTS: Final = 3
_CONTINUED: Final = "continued"


class ChainBreak(Struct, frozen=True):
    """One place where the chain is broken. Lines count from 1."""

    file: str
    line: int
    why: str


class ChainVerification(Struct, frozen=True, rename="camel"):
    """`head` is the last valid record: its hash, kept elsewhere, proves later that nothing was cut off. `notes` are not faults."""

    files: tuple[str, ...]
    records: int
    calls: int
    head: ChainLink
    breaks: tuple[ChainBreak, ...]
    break_count: int
    notes: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        return not self.break_count


def files_of(path: Path) -> list[Path]:
    """All files of the log that is written to `path`, in the order of its chain."""
    return [*rotated_files(path), *([path] if path.exists() else [])]


def verify_log(path: Path, key: bytes = b"") -> ChainVerification:
    """Verify the log that is written to `path`, again when it was rotated meanwhile. Raises OSError."""
    for _ in range(_ATTEMPTS):
        paths = files_of(path)
        verdict = verify(paths, key)
        if verdict.is_valid or files_of(path) == paths:
            break
    return verdict


def verify(paths: list[Path], key: bytes = b"") -> ChainVerification:
    """Verify the chain across these files. Raises OSError where a file can't be read."""
    walk = _Walk(key)
    for path in paths:
        walk.file(path)
    return walk.verdict(tuple(path.name for path in paths))


class _Walk:
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._last: ChainLink | None = None
        self._missing: tuple[Path, str] | None = None
        """The first file where it continues a file that is not here, and the name of that file."""
        self._records = 0
        self._calls = 0
        self._breaks: list[ChainBreak] = []
        self._break_count = 0
        self._notes: list[str] = []

    def file(self, path: Path) -> None:
        for number, line in lines_of(path):
            if line.endswith(_NEWLINE):
                self._line(path, number, line)
            elif len(line) > MAX_LINE_BYTES:
                self._broken(path, number, "it is longer than any record")
            else:
                self._notes.append(
                    f"{path.name} ends with half a line of {len(line)} bytes, which is being written, or will be cut off at the next start"
                )

    def verdict(self, names: tuple[str, ...]) -> ChainVerification:
        if self._missing is not None:
            path, name = self._missing
            self._broken(path, 1, f"{name}, which it continues, is missing")
        if not self._records and not self._break_count:
            self._broken(
                Path(names[-1] if names else "?"), 1, "there is no record, though every start of a gateway writes one"
            )
        head = self._last or START
        return ChainVerification(
            names, self._records, self._calls, head, tuple(self._breaks), self._break_count, tuple(self._notes)
        )

    def _line(self, path: Path, number: int, line: bytes) -> None:
        try:
            head, link = chain.read(line, self._key)
        except BrokenLineError as broken:
            self._broken(path, number, str(broken))
            self._last = _claimed(line, self._last)
            return
        self._records += 1
        self._calls += head.kind == "call"
        if head.kind == _CONTINUED:
            self._continued(path, chain.facts(line))
        if self._last is None:
            self._first(path, head, number)
        elif head.seq == 1 and head.prev == GENESIS:
            self._broken(path, number, "a new chain begins here, because the one before could not be continued")
        elif why := chain.mismatch(head, self._last):
            self._broken(path, number, why)
        self._last = link

    def _first(self, path: Path, head: chain.RecordHead, number: int) -> None:
        if head.seq > 1 and self._missing is None:
            self._broken(path, number, f"the {head.seq - 1} records before it are missing")
        elif head.seq == 1 and head.prev != GENESIS:
            self._broken(path, number, "the first record of all does not begin a chain")

    def _continued(self, path: Path, said: dict[str, Any]) -> None:
        """A record that follows a rotated file. It may name a file that the gateway itself has deleted since, beyond `maxFiles`."""
        if self._last is None and isinstance(said.get("after"), str):
            self._missing = (path, said["after"])
        if self._missing is not None and said.get("deleted") == self._missing[1]:
            self._notes.append(
                f"{self._missing[0].name} is the oldest file kept: the gateway deleted {said['deleted']}"
            )
            self._missing = None

    def _broken(self, path: Path, number: int, why: str) -> None:
        self._break_count += 1
        if len(self._breaks) < MAX_BREAKS:
            self._breaks.append(ChainBreak(path.name, number, why))


def _claimed(line: bytes, last: ChainLink | None) -> ChainLink | None:
    """The link that a broken line claims, so that one changed line is one break and not two."""
    found = chain.claimed_hash(line)
    return ChainLink((last or START).seq + 1, found) if found else last


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number. Of a line that is too long only the beginning."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, line
            while not line.endswith(_NEWLINE) and (line := file.readline(MAX_LINE_BYTES)):
                pass


def find_call(paths: list[Path], request_id: str, key: bytes = b"") -> dict[str, Any] | None:
    """The record of one call, the newest file first. Raises OSError."""
    wanted = f'"requestId":"{request_id}"'.encode()
    for path in reversed(paths):
        for _, line in lines_of(path):
            if wanted in line and (said := _sound(line, key)) is not None and said.get("requestId") == request_id:
                return said
    return None


def latest(
    paths: list[Path], count: int, key: bytes = b"", wanted: Callable[[dict[str, Any]], bool] | None = None
) -> list[dict[str, Any]]:
    """The last records that can be read, and are wanted; the oldest first. Raises OSError."""
    found: list[dict[str, Any]] = []
    for path in reversed(paths):
        lines: Iterator[bytes] = (line for _, line in lines_of(path))
        if wanted is None:
            lines = iter(deque(lines, maxlen=count))
        said = (one for line in lines if (one := _sound(line, key)) is not None)
        found = [*deque((one for one in said if wanted is None or wanted(one)), maxlen=count), *found][-count:]
        if len(found) >= count:
            break
    return found


def follow(path: Path, key: bytes = b"") -> Iterator[dict[str, Any] | None]:
    """The records that are written from now on, across rotations; None where there is nothing new yet. Raises OSError."""
    file = path.open("rb")
    try:
        file.seek(0, SEEK_END)
        rest = b""
        while True:
            data = file.read(MAX_LINE_BYTES)
            if data:
                *lines, rest = (rest + data).split(_NEWLINE)
                yield from (one for line in lines if (one := _sound(line + _NEWLINE, key)) is not None)
            elif path.exists() and path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                file.close()
                file, rest = path.open("rb"), b""
            else:
                yield None
    finally:
        file.close()


def _sound(line: bytes, key: bytes) -> dict[str, Any] | None:
    try:
        chain.read(line, key)
    except BrokenLineError:
        return None
    return chain.facts(line)
