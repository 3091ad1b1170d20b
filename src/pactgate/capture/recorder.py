"""Records sessions without holding anybody up: who talks leaves a note in a bounded list; a little later many notes are read at once.

A note is a few references and a time. Reading is done where the notes are made, on the event loop, some notes at a time and after the
calls that they are of: a thread would take the interpreter away from calls in the middle of their work, which costs more than the
reading. A thread only writes, in few large pieces. Without an event loop that thread reads too.

When reading or writing falls behind the bound, the recording concerned ends there; how much is missing is counted and said in its
file. `close` ends the thread, within a bound; what is written by then is whole. Must not: raise towards who talks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from msgspec import Struct

from pactgate.capture.capture_files import CaptureStore
from pactgate.capture.file_jobs import FinishedCapture
from pactgate.capture.redaction import Redaction
from pactgate.capture.router import SessionRouter
from pactgate.capture.session_writer import RecordedConnection, SessionWriter
from pactgate.capture.writer import WriterThread
from pactgate.core.recording import ConnectionRecorder, Headers, HttpExchangeRecorder

MAX_QUEUED_BYTES: Final = 16 * 1024 * 1024
"""For notes, and as much again for what is on its way to the disk."""
CLOSE_S: Final = 5.0
_NOTE_BYTES: Final = 256
_LOOK_S: Final = 0.02
_SYNC_S: Final = 0.2
_AT_ONCE: Final = 128
_AT_ONCE_BYTES: Final = 256 * 1024
"""How much is read in a row; then calls go first."""

_Note = tuple[bytes, Callable[..., None], tuple[Any, ...], int]
Later = Callable[[float, Callable[[], None]], object]
"""Call something after so many seconds, as `loop.call_later` does."""


def _ignore(_: Any) -> None:
    return


class Recorder:
    """Hands out taps. With `later` everything but writing happens where that calls back, and taps may be used only there.

    `on_end` and `on_trouble` are called on the thread that writes.
    """

    def __init__(
        self,
        store: CaptureStore,
        redaction: Redaction,
        *,
        max_file_bytes: int,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        on_end: Callable[[FinishedCapture], None] = _ignore,
        on_trouble: Callable[[str], None] = _ignore,
        later: Later | None = None,
    ) -> None:
        self.redaction = redaction
        self._store = store
        self._max_file_bytes = max_file_bytes
        self._max_queued_bytes = max_queued_bytes
        self._room_bytes = max_queued_bytes
        self._on_end = on_end
        self._on_trouble = on_trouble
        self._writer = WriterThread()
        self._later = later or self._writer.later
        self._notes: deque[_Note] = deque()
        self._noting = threading.Lock() if later is None else None
        """Two pumps of a relay may talk at once."""
        self._reading = threading.Lock()
        self._noted_bytes = 0
        self._read_bytes = 0
        self._is_awaited = False
        self._is_dirty = False
        self._is_closed = False
        self._synced_at = 0.0
        self._closers: dict[object, Callable[[], None]] = {}
        self._syncers: dict[object, Callable[[], None]] = {}

    def connection(self, label: str, leg: str, transport: str) -> ConnectionRecorder:
        """A tap for one connection, which is one session."""
        return _Connection(self, RecordedConnection(label, leg, transport))

    def address(self, label: str, leg: str, *, is_shared: bool) -> ConnectionRecorder:
        """A tap for one HTTP address, where many sessions may meet; `label` and the path name the server."""
        return _Address(self, label, leg, is_shared=is_shared)

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Read and write what is left and finish every file. Blocks, bounded."""
        if self._is_closed or not self._reading.acquire(timeout=timeout_s):
            return
        self._is_closed = True
        try:
            while self._notes:
                self._read()
            for close in list(self._closers.values()):
                close()
            self._room_bytes = 0
        finally:
            self._reading.release()
        self._writer.put(0, self._close_store)
        self._writer.close(timeout_s)

    @property
    def backlog_bytes(self) -> int:
        """What waits to be read."""
        return self._noted_bytes - self._read_bytes

    def put(
        self, owner: _Connection | _Address, text: bytes, act: Callable[..., None], details: tuple[Any, ...]
    ) -> None:
        """Leave a note; where there is no room for it, its owner misses it. `text` is what passed, and bytes of `details` too."""
        size_bytes = len(text) + _NOTE_BYTES
        if owner.missing or self._noted_bytes - self._read_bytes + size_bytes > self._room_bytes:
            owner.missing += 1
            return
        if self._noting is None:
            self._noted_bytes += size_bytes
        else:
            with self._noting:
                self._noted_bytes += size_bytes
        self._notes.append((text, act, details, size_bytes))
        if not self._is_awaited:
            self._await()

    def must_put(self, act: Callable[..., None], *details: Any) -> None:
        """A note that is rare, and needed to finish a file."""
        self._notes.append((b"", act, details, 0))
        if not self._is_awaited:
            self._await()

    def scribe(self, subject: RecordedConnection) -> SessionWriter:
        return SessionWriter(
            subject,
            self._store,
            self.redaction,
            self._max_file_bytes,
            self._on_end,
            self._on_trouble,
            self._writer.put,
        )

    def watch(self, owner: object, sync: Callable[[], None], close: Callable[[], None]) -> None:
        self._syncers[owner], self._closers[owner] = sync, close

    def forget(self, owner: object) -> None:
        self._syncers.pop(owner, None)
        self._closers.pop(owner, None)

    def _await(self, delay_s: float = _LOOK_S) -> None:
        if not self._is_closed:
            self._is_awaited = True
            self._later(delay_s, self._look_in)

    def _look_in(self) -> None:
        """Read some of what is there, and bring files up to date now and then."""
        self._is_awaited = False  # before the notes are looked at: one that comes meanwhile is awaited anew
        if self._is_closed or not self._reading.acquire(blocking=False):
            return
        try:
            if self._notes:
                self._read()
                self._is_dirty = True
            # No room while the disk is behind: nobody may fill the memory by talking faster than it writes.
            self._room_bytes = 0 if self._writer.backlog_bytes > self._max_queued_bytes else self._max_queued_bytes
            now = time.monotonic()
            if self._is_dirty and now - self._synced_at >= _SYNC_S:
                self._sync()
                self._synced_at = now
        finally:
            self._reading.release()
        if not self._is_awaited and (self._notes or self._is_dirty or not self._room_bytes):
            self._await(0.0 if self._notes else _LOOK_S)

    def _read(self) -> None:
        notes = self._notes
        many = max(1, _AT_ONCE_BYTES * len(notes) // max(1, self.backlog_bytes))
        batch = [notes.popleft() for _ in range(min(len(notes), many, _AT_ONCE))]
        texts = [note[0] for note in batch]
        self._read_bytes += sum(note[3] for note in batch)
        self.redaction.look_ahead(texts)
        for _, act, details, _ in batch:
            act(*details)
        self.redaction.look_ahead(())

    def _sync(self) -> None:
        self._is_dirty = False
        for sync in list(self._syncers.values()):
            sync()

    def _close_store(self) -> None:
        try:
            self._store.close()
        except OSError as problem:
            self._on_trouble(problem.strerror or str(problem))


class _Connection:
    """One connection. Its scribe begins with the first thing that passes."""

    def __init__(self, recorder: Recorder, subject: RecordedConnection) -> None:
        self.recorder = recorder
        self.started = time.monotonic()
        self.missing = 0
        self._subject = subject
        self._scribe: SessionWriter | None = None
        self._numbers = count(1)

    def passed(self, text: bytes, *, from_client: bool) -> None:
        at_ms = (time.monotonic() - self.started) * 1000
        self.recorder.put(self, text, self.take, ("message", at_ms, text, from_client))

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        number = next(self._numbers)
        at_ms = (time.monotonic() - self.started) * 1000
        self.recorder.put(self, body, self.take, ("requested", at_ms, number, verb, headers, body))
        return _RecordedHop(self, number)

    def closed(self) -> None:
        self.recorder.must_put(self._close, self.missing)

    def take(self, what: str, *details: Any) -> None:
        if self._scribe is None:
            self._scribe = self.recorder.scribe(self._subject)
            self.recorder.watch(self, self._scribe.sync, lambda: self._close(self.missing))
        self._scribe.take(what, *details)

    def _close(self, missing: int) -> None:
        self.recorder.forget(self)
        scribe, self._scribe = self._scribe, None
        if scribe is not None:
            scribe.close(missing)


class _Address:
    """One address with many sessions. After a loss everything recorded is closed, and recording begins anew."""

    def __init__(self, recorder: Recorder, label: str, leg: str, *, is_shared: bool) -> None:
        self.recorder = recorder
        self.started = time.monotonic()
        self.missing = 0
        self._router = SessionRouter(
            recorder.redaction,
            lambda path, is_modern: recorder.scribe(
                RecordedConnection(f"{label}{path}", leg, "http", is_shared=is_shared and is_modern)
            ),
        )
        self._numbers = count(1)
        recorder.must_put(recorder.watch, self, self._router.sync, self._close)

    def passed(self, text: bytes, *, from_client: bool) -> None:
        raise NotImplementedError("an address carries requests, not messages")

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        if self.missing and self.recorder.backlog_bytes < len(body) + _NOTE_BYTES:
            self.recorder.must_put(self._router.cut, self.missing)
            self.missing = 0
        number = next(self._numbers)
        at_ms = (time.monotonic() - self.started) * 1000
        self.recorder.put(self, body, self.take, ("requested", at_ms, number, verb, path, headers, body))
        return _RecordedHop(self, number)

    def closed(self) -> None:
        self.recorder.must_put(self._close)

    def take(self, what: str, *details: Any) -> None:
        getattr(self._router, what)(*details)

    def _close(self) -> None:
        self.recorder.forget(self)
        self._router.close(self.missing)


class _RecordedHop(Struct, frozen=True):
    """One HTTP request of a recorded connection or address."""

    owner: _Connection | _Address
    number: int

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        owner = self.owner
        at_ms = (time.monotonic() - owner.started) * 1000
        owner.recorder.put(owner, body, owner.take, ("answered", at_ms, self.number, status, headers, body))

    def streaming(self, status: int, headers: Headers) -> None:
        owner = self.owner
        at_ms = (time.monotonic() - owner.started) * 1000
        owner.recorder.put(owner, b"", owner.take, ("streaming", at_ms, self.number, status, headers))

    def events(self, data: bytes) -> None:
        owner = self.owner
        at_ms = (time.monotonic() - owner.started) * 1000
        owner.recorder.put(owner, data, owner.take, ("events", at_ms, self.number, data))

    def ended(self, *, by_client: bool) -> None:
        owner = self.owner
        at_ms = (time.monotonic() - owner.started) * 1000
        owner.recorder.put(owner, b"", owner.take, ("ended", at_ms, self.number, by_client))
