"""One recorded session on its way from messages to its file. Lives on the recorder's thread.

A session longer than the bound is recorded up to it: a beginning can be judged, a capture with holes can't. What is missing is
counted in the file. Must not: let an error of the disk out; it ends the recording of this session and is told once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pactgate.capture.format import CAPTURE_VERSION
from pactgate.capture.redaction import Redaction
from pactgate.capture.session_file import SessionFile
from pactgate.capture.store import Store
from pactgate.capture.transcript import Transcript

_SYNC_BYTES: Final = 256 * 1024
_SHOWN_HELD_BYTES: Final = 256 * 1024


class Subject(Struct, frozen=True):
    """What a recording is of. `is_shared`: several clients in one capture, whose ids and tokens may coincide."""

    label: str
    leg: str
    transport: str
    is_shared: bool = False


class Ending(Struct, frozen=True):
    """What came of one recording."""

    path: Path
    exchange_count: int
    missing: int


class Scribe:
    """Writes what it is told; `on_end` hears what came of it, `on_trouble` why it could not go on."""

    def __init__(
        self,
        subject: Subject,
        store: Store,
        redaction: Redaction,
        max_bytes: int,
        on_end: Callable[[Ending], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self.subject = subject
        self.is_open = True
        self.missing = 0
        self._transcript = Transcript(redaction)
        self._store = store
        self._max_bytes = max_bytes
        self._on_end = on_end
        self._on_trouble = on_trouble
        self._is_dirty = False
        self._file: SessionFile | None = None
        head = {
            "server_label": subject.label,
            "capture_version": CAPTURE_VERSION,
            "leg": subject.leg,
            "transport": subject.transport,
            "transport_id": secrets.token_hex(8),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **({"shared": True} if subject.is_shared else {}),
        }
        try:
            self._file = store.begin(f"{subject.leg}-{subject.label}", head)
        except OSError as problem:
            self._fail(problem)

    def take(self, what: str, *details: Any, **more: Any) -> None:
        """One thing that passed, by the name of the transcript's method for it."""
        if not self.is_open:
            self.missing += 1
            return
        getattr(self._transcript, what)(*details, **more)
        self._is_dirty = True
        file = self._file
        if file is None:
            return
        file.append(self._transcript.ready())
        if file.size_bytes > self._max_bytes:
            self.is_open = False
        elif file.unwritten_bytes > _SYNC_BYTES:
            self.sync()

    def sync(self) -> None:
        """Bring the file up to date."""
        if not self._is_dirty or self._file is None:
            return
        self._is_dirty = False
        held = self._transcript.held()
        try:
            self._file.sync(held if sum(map(len, held)) < _SHOWN_HELD_BYTES else (), self._facts(is_closed=False))
        except OSError as problem:
            self._fail(problem)

    def close(self, missing: int = 0) -> None:
        """Finish the file. `missing` is how many messages never reached this scribe."""
        self.missing += missing
        self.is_open = False
        file, self._file = self._file, None
        if file is None:
            return
        try:
            path = file.finish(self._facts(is_closed=True), self._transcript.held())
            self._store.finished(path)
        except OSError as problem:
            self._fail(problem)
            return
        self._on_end(Ending(path, file.exchange_count, self.missing))

    def _facts(self, *, is_closed: bool) -> dict[str, Any]:
        missing = {"missing": self.missing} if self.missing else {}
        return {**self._transcript.facts(), **missing, "closed": is_closed or not self.is_open}

    def _fail(self, problem: OSError) -> None:
        self.is_open = False
        file, self._file = self._file, None
        if file is not None:
            file.abandon()
        self._on_trouble(f"{problem.strerror or problem}")
