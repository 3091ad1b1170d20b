"""The file of one recording, as jobs for the thread that writes: begin, bring up to date, finish.

Must not: let an error of the disk out. It ends the file, is told once, and `has_failed` says it to whoever records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pactgate.capture.capture_files import CaptureStore
from pactgate.capture.session_file import SessionFile


class FinishedCapture(Struct, frozen=True):
    """What came of one recording."""

    path: Path
    exchange_count: int
    missing: int


class Sheet:
    """Each method is one job, done in the order of the calls."""

    def __init__(
        self, store: CaptureStore, on_end: Callable[[FinishedCapture], None], on_trouble: Callable[[str], None]
    ) -> None:
        self.has_failed = False
        self._store = store
        self._on_end = on_end
        self._on_trouble = on_trouble
        self._file: SessionFile | None = None

    def begin(self, label: str, head: dict[str, Any]) -> None:
        try:
            self._file = self._store.begin(label, head)
        except OSError as problem:
            self._fail(problem)

    def sync(self, final: Sequence[bytes], held: Sequence[bytes], facts: dict[str, Any]) -> None:
        """Add the exchanges that are final, and show those that are not."""
        if self._file is None:
            return
        try:
            self._file.append(final)
            self._file.sync(held, facts)
        except OSError as problem:
            self._fail(problem)

    def finish(self, final: Sequence[bytes], facts: dict[str, Any], missing: int) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            path = file.finish(facts, final)
            self._store.finished(path)
        except OSError as problem:
            self._fail(problem)
            return
        self._on_end(FinishedCapture(path, file.exchange_count, missing))

    def _fail(self, problem: OSError) -> None:
        self.has_failed = True
        file, self._file = self._file, None
        if file is not None:
            file.abandon()
        self._on_trouble(f"{problem.strerror or problem}")
