"""Writes one recorded session to its file.

A session longer than the bound is recorded up to the bound, because a beginning can be checked and a capture with gaps can't. The file
says how many messages are missing. The file begins with the first message, so a connection without messages leaves no file.
Must not: touch the disk on the caller's thread; jobs for the disk go to the writer thread in few large pieces.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVarTuple

from msgspec import Struct

from pactgate.capture.capture_files import CaptureStore, SessionFile
from pactgate.capture.format import CAPTURE_VERSION
from pactgate.capture.redaction import Redaction
from pactgate.capture.transcript import Transcript
from pactgate.core.events import CaptureEnded, CaptureFailed, Emit

_SYNC_BYTES: Final = 1024 * 1024
_SHOWN_HELD_BYTES: Final = 256 * 1024
_SEPARATOR_BYTES: Final = 2

Ts = TypeVarTuple("Ts")


class RecordedConnection(Struct, frozen=True):
    """What a recording is of. `is_shared`: one capture has several clients, whose ids and tokens may coincide. `started_at` is the moment
    from which the times of its messages count, which are read later."""

    label: str
    leg: str
    transport: str
    started_at: str
    is_shared: bool = False


class JobQueue(Protocol):
    """Runs jobs one after the other, on the writer thread. `size_bytes` is the memory that a job holds until it ran."""

    def put(self, size_bytes: int, job: Callable[[*Ts], None], *details: *Ts) -> None: ...


class RecordingContext(Struct, frozen=True):
    """What all recordings of one recorder share. `emit` is called on the writer thread."""

    store: CaptureStore
    redaction: Redaction
    jobs: JobQueue
    max_file_bytes: int
    emit: Emit


def _recorded(step: Callable[[Transcript, *Ts], None]) -> Callable[[SessionWriter, *Ts], None]:
    """The method of a writer that adds an event to its transcript, unless the file is full or broken."""

    def record(writer: SessionWriter, *details: *Ts) -> None:
        if writer.takes():
            writer.has_news = True
            step(writer.transcript, *details)

    return record


class SessionWriter:
    """Takes the events of one session, in order, and writes them. The bound of the file is checked with each `keep`."""

    def __init__(self, subject: RecordedConnection, context: RecordingContext) -> None:
        self.is_open = True
        self.has_news = False
        """Whether there were events since the last `keep`."""
        self.missing = 0
        self._subject = subject
        self._put = context.jobs.put
        self._max_bytes = context.max_file_bytes
        self.transcript = Transcript(context.redaction)
        self._file = _FileJobs(context)
        self._has_begun = False
        self._is_dirty = False
        self._is_closed = False
        self._final: list[bytes] = []
        self._unwritten_bytes = 0
        self._size_bytes = 0

    message = _recorded(Transcript.message)
    requested = _recorded(Transcript.requested)
    answered = _recorded(Transcript.answered)
    streaming = _recorded(Transcript.streaming)
    events = _recorded(Transcript.events)
    ended = _recorded(Transcript.ended)

    def sync(self) -> None:
        """Bring the file up to date."""
        if not self._is_dirty or self._is_closed or self._file.has_failed:
            return
        self._is_dirty = False
        held = self.transcript.held()
        held_bytes = sum(map(len, held))
        if held_bytes > _SHOWN_HELD_BYTES:
            held, held_bytes = [], 0
        final, size_bytes = self._final, self._unwritten_bytes
        self._final, self._unwritten_bytes = [], 0
        self._put(size_bytes + held_bytes, self._file.sync, final, held, self._facts(is_closed=False))

    def close(self, missing: int = 0) -> None:
        """Finish the file. `missing` messages never reached this writer."""
        self.missing += missing
        self.is_open = False
        if self._is_closed:
            return
        self._is_closed = True
        final = [*self._final, *self.transcript.held()]
        self._final = []
        self._put(sum(map(len, final)), self._file.finish, final, self._facts(is_closed=True), self.missing)

    def takes(self) -> bool:
        """Whether the next event is recorded. One that is not counts as missing."""
        if not self.is_open or self._file.has_failed:
            self.missing += 1
            return False
        if not self._has_begun:
            self._has_begun = True
            self._begin()
        return True

    def _begin(self) -> None:
        subject = self._subject
        head = {
            "server_label": subject.label,
            "capture_version": CAPTURE_VERSION,
            "leg": subject.leg,
            "transport": subject.transport,
            "transport_id": secrets.token_hex(8),
            "started_at": subject.started_at,
            **({"shared": True} if subject.is_shared else {}),
        }
        self._put(0, self._file.begin, f"{subject.leg}-{subject.label}", head)

    def keep(self) -> None:
        """Take the exchanges that are final now, and write them when there are many. Called after some events, not after each."""
        if not self.has_news:
            return
        self.has_news = False
        self._is_dirty = True
        exchanges = self.transcript.ready()
        if not exchanges:
            return
        size_bytes = sum(map(len, exchanges)) + _SEPARATOR_BYTES * len(exchanges)
        self._final += exchanges
        self._unwritten_bytes += size_bytes
        self._size_bytes += size_bytes
        if self._size_bytes > self._max_bytes:
            self.is_open = False
        elif self._unwritten_bytes > _SYNC_BYTES:
            self.sync()

    def _facts(self, *, is_closed: bool) -> dict[str, Any]:
        missing = {"missing": self.missing} if self.missing else {}
        return {**self.transcript.facts(), **missing, "closed": is_closed or not self.is_open}


class _FileJobs:
    """The jobs for one file. They run on the writer thread and never raise: an OSError ends the file and is reported once."""

    def __init__(self, context: RecordingContext) -> None:
        self.has_failed = False
        self._context = context
        self._file: SessionFile | None = None

    def begin(self, label: str, head: dict[str, Any]) -> None:
        with self._failing():
            self._file = self._context.store.begin(label, head)

    def sync(self, final: Sequence[bytes], held: Sequence[bytes], facts: dict[str, Any]) -> None:
        if self._file is not None:
            with self._failing():
                self._file.append(final)
                self._file.sync(held, facts)

    def finish(self, final: Sequence[bytes], facts: dict[str, Any], missing: int) -> None:
        if self._file is not None:
            with self._failing():
                path = self._file.finish(facts, final)
                self._context.store.finished(path)
                self._context.emit(CaptureEnded(str(path), self._file.exchange_count, missing))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.has_failed = True
            file, self._file = self._file, None
            if file is not None:
                file.abandon()
            self._context.emit(CaptureFailed(problem.strerror or str(problem)))
