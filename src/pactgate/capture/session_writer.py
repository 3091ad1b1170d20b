"""One recorded session on its way from messages to its file.

A session longer than the bound is recorded up to it: a beginning can be judged, a capture with holes can't. What is missing is
counted in the file. Must not: touch the disk itself; what it has for the file goes to whoever does, in few large pieces.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from msgspec import Struct

from pactgate.capture.capture_files import CaptureStore
from pactgate.capture.file_jobs import FinishedCapture, Sheet
from pactgate.capture.format import CAPTURE_VERSION
from pactgate.capture.redaction import Redaction
from pactgate.capture.transcript import Transcript

_SYNC_BYTES: Final = 1024 * 1024
_SHOWN_HELD_BYTES: Final = 256 * 1024
_BETWEEN_BYTES: Final = 2


class RecordedConnection(Struct, frozen=True):
    """What a recording is of. `is_shared`: several clients in one capture, whose ids and tokens may coincide."""

    label: str
    leg: str
    transport: str
    is_shared: bool = False


class Do(Protocol):
    """How a job for the disk gets done: `Writer.put`, or at once."""

    def __call__(self, size_bytes: int, act: Callable[..., None], /, *details: Any) -> None: ...


def _at_once(_size_bytes: int, act: Callable[..., None], /, *details: Any) -> None:
    act(*details)


class SessionWriter:
    """Writes what it is told; `on_end` hears what came of it, `on_trouble` why it could not go on."""

    def __init__(
        self,
        subject: RecordedConnection,
        store: CaptureStore,
        redaction: Redaction,
        max_bytes: int,
        on_end: Callable[[FinishedCapture], None],
        on_trouble: Callable[[str], None],
        do: Do = _at_once,
    ) -> None:
        self.subject = subject
        self.is_open = True
        self.missing = 0
        self._transcript = Transcript(redaction)
        self._max_bytes = max_bytes
        self._do = do
        self._is_dirty = False
        self._is_closed = False
        self._final: list[bytes] = []
        self._unwritten_bytes = 0
        self._size_bytes = 0
        self._sheet = Sheet(store, on_end, on_trouble)
        head = {
            "server_label": subject.label,
            "capture_version": CAPTURE_VERSION,
            "leg": subject.leg,
            "transport": subject.transport,
            "transport_id": secrets.token_hex(8),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **({"shared": True} if subject.is_shared else {}),
        }
        do(0, self._sheet.begin, f"{subject.leg}-{subject.label}", head)

    def take(self, what: str, *details: Any) -> None:
        """One thing that passed, by the name of the transcript's method for it."""
        if not self.is_open or self._sheet.has_failed:
            self.missing += 1
            return
        getattr(self._transcript, what)(*details)
        self._is_dirty = True
        fresh = self._transcript.ready()
        if fresh:
            self._keep(fresh)

    def sync(self) -> None:
        """Bring the file up to date."""
        if not self._is_dirty or self._is_closed or self._sheet.has_failed:
            return
        self._is_dirty = False
        held = self._transcript.held()
        held_bytes = sum(map(len, held))
        if held_bytes > _SHOWN_HELD_BYTES:
            held, held_bytes = [], 0
        final, size_bytes = self._final, self._unwritten_bytes
        self._final, self._unwritten_bytes = [], 0
        self._do(size_bytes + held_bytes, self._sheet.sync, final, held, self._facts(is_closed=False))

    def close(self, missing: int = 0) -> None:
        """Finish the file. `missing` is how many messages never reached this scribe."""
        self.missing += missing
        self.is_open = False
        if self._is_closed:
            return
        self._is_closed = True
        final = [*self._final, *self._transcript.held()]
        self._final = []
        self._do(sum(map(len, final)), self._sheet.finish, final, self._facts(is_closed=True), self.missing)

    def _keep(self, exchanges: list[bytes]) -> None:
        size_bytes = sum(map(len, exchanges)) + _BETWEEN_BYTES * len(exchanges)
        self._final += exchanges
        self._unwritten_bytes += size_bytes
        self._size_bytes += size_bytes
        if self._size_bytes > self._max_bytes:
            self.is_open = False
        elif self._unwritten_bytes > _SYNC_BYTES:
            self.sync()

    def _facts(self, *, is_closed: bool) -> dict[str, Any]:
        missing = {"missing": self.missing} if self.missing else {}
        return {**self._transcript.facts(), **missing, "closed": is_closed or not self.is_open}
