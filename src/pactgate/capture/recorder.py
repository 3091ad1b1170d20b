"""Records sessions without delaying the traffic: callers leave notes in a bounded queue, and a little later many notes are read at once.

A note is a few references and a time. Notes are read on the event loop, some at a time and between calls: a thread would take the
interpreter from calls in the middle of their work, which costs more than the reading. A thread only writes, in few large pieces.
Without an event loop that thread also reads.

When reading or writing falls behind the bound, the recording ends there, and its file says how many messages are missing. `close`
ends the thread within a time limit; what is written by then is complete. A note that can't be read ends its recording, and is reported.
Must not: raise towards the caller.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from queue import SimpleQueue
from typing import Any, Final, TypeVarTuple

from msgspec import Struct

from pactgate.capture.capture_files import CaptureStore
from pactgate.capture.redaction import Redaction
from pactgate.capture.router import SessionRouter
from pactgate.capture.session_writer import RecordedConnection, RecordingContext, SessionWriter
from pactgate.core.events import CaptureFailed, Emit
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.recording import ConnectionRecorder, Headers, HttpExchangeRecorder

MAX_QUEUED_BYTES: Final = 16 * 1024 * 1024
"""For notes, and as much again for data on its way to the disk."""
CLOSE_S: Final = 5.0
_NOTE_BYTES: Final = 256
_READ_S: Final = 0.02
_SYNC_S: Final = 0.2
_BATCH: Final = 128
_BATCH_BYTES: Final = 256 * 1024
"""How much is read in a row, before calls go on."""

Later = Callable[[float, Callable[[], None]], object]
"""Call something after so many seconds, as `loop.call_later` does."""
Ts = TypeVarTuple("Ts")
_Sink = SessionWriter | SessionRouter
"""Where the notes of a connection or an address go."""


class _Note(Struct, frozen=True, gc=False):
    """`data` is the payload that redaction searches; it is among `details` too."""

    recording: _Recording | None
    data: bytes
    act: Callable[..., None]
    details: tuple[Any, ...]
    size_bytes: int


class WriterThread:
    """The thread that touches the disk. It runs its jobs in order; it starts with the first job and ends with `close`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[int, Callable[..., None], tuple[Any, ...]] | None] = SimpleQueue()
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._put_bytes = 0
        self._done_bytes = 0

    @property
    def backlog_bytes(self) -> int:
        return self._put_bytes - self._done_bytes

    def put(self, size_bytes: int, job: Callable[[*Ts], None], *details: *Ts) -> None:
        """Add a job, which must not raise. Jobs with a size come from one thread at a time."""
        if self._thread is None:
            self._start()
        self._put_bytes += size_bytes
        self._jobs.put((size_bytes, job, details))

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Call `act` on the thread after a delay, during which other jobs wait. `close` ends the delay."""
        self.put(0, self._wait, delay_s, act)

    def close(self, timeout_s: float) -> None:
        """Run the jobs that are left and end the thread. Blocks at most `timeout_s`."""
        self._is_ending.set()
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            thread.join(timeout_s)

    def _wait(self, delay_s: float, act: Callable[[], None]) -> None:
        self._is_ending.wait(delay_s)
        act()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pactgate-recorder", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (entry := self._jobs.get()) is not None:
            size_bytes, job, details = entry
            job(*details)
            self._done_bytes += size_bytes


class Recorder:
    """Makes the recorders of connections. With `later` all but writing happens where that calls back, and they may be used only there.

    `emit` is called on the writer thread too.
    """

    def __init__(
        self,
        store: CaptureStore,
        redaction: Redaction,
        *,
        max_file_bytes: int,
        emit: Emit,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        later: Later | None = None,
    ) -> None:
        self.redaction = redaction
        self._max_queued_bytes = max_queued_bytes
        self._room_bytes = max_queued_bytes
        self._writer = WriterThread()
        self._context = RecordingContext(store, redaction, self._writer, max_file_bytes, emit)
        self._barrier = FaultBarrier(emit)
        self._later = later or self._writer.later
        self._notes: deque[_Note] = deque()
        self._noting = threading.Lock() if later is None else None
        """The two pumps of a relay may leave notes at the same time."""
        self._reading = threading.Lock()
        self._noted_bytes = 0
        self._read_bytes = 0
        self._is_scheduled = False
        self._is_dirty = False
        self._is_closed = False
        self._synced_at = 0.0
        self._open: dict[_Recording, _Sink] = {}

    def connection(self, label: str, leg: str, transport: str) -> ConnectionRecorder:
        """For one connection, which is one session."""
        return _Recording(self, SessionWriter(RecordedConnection(label, leg, transport, _now()), self._context))

    def address(self, label: str, leg: str, *, is_shared: bool) -> ConnectionRecorder:
        """For one HTTP address with many sessions; `label` and the path name the server."""

        started_at = _now()

        def begin(path: str, is_modern: bool) -> SessionWriter:
            subject = RecordedConnection(f"{label}{path}", leg, "http", started_at, is_shared=is_shared and is_modern)
            return SessionWriter(subject, self._context)

        return _Recording(self, SessionRouter(self.redaction, begin))

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Read and write what is left and finish every file. Blocks, with a time limit."""
        if self._is_closed or not self._reading.acquire(timeout=timeout_s):
            return
        self._is_closed = True
        try:
            while self._notes:
                self._read()
            for recording in list(self._open):
                self._barrier.run("recorder", self.end, recording)
            self._room_bytes = 0
        finally:
            self._reading.release()
        self._writer.put(0, self._close_store)
        self._writer.close(timeout_s)

    @property
    def backlog_bytes(self) -> int:
        """The size of the notes that are not read yet."""
        return self._noted_bytes - self._read_bytes

    def put(self, recording: _Recording, data: bytes, act: Callable[[*Ts], None], *details: *Ts) -> None:
        """Leave a note. Where there is no room for it, it counts as missing in its recording."""
        size_bytes = len(data) + _NOTE_BYTES
        if recording.missing or self._noted_bytes - self._read_bytes + size_bytes > self._room_bytes:
            recording.missing += 1
            return
        if self._noting is None:
            self._noted_bytes += size_bytes
        else:
            with self._noting:
                self._noted_bytes += size_bytes
        self._notes.append(_Note(recording, data, act, details, size_bytes))
        if not self._is_scheduled:
            self._schedule()

    def must_put(self, act: Callable[[*Ts], None], *details: *Ts) -> None:
        """Leave a note that is rare and needed to finish a file: it has no bound."""
        self._notes.append(_Note(None, b"", act, details, 0))
        if not self._is_scheduled:
            self._schedule()

    def begin(self, recording: _Recording) -> None:
        self._open[recording] = recording.sink

    def end(self, recording: _Recording) -> None:
        self._open.pop(recording, None)
        recording.sink.close(recording.missing)

    def _schedule(self, delay_s: float = _READ_S) -> None:
        if not self._is_closed:
            self._is_scheduled = True
            self._later(delay_s, self._read_some)

    def _read_some(self) -> None:
        """Read some notes, and bring files up to date now and then."""
        self._is_scheduled = False  # before the notes are read: one that comes meanwhile schedules again
        if self._is_closed or not self._reading.acquire(blocking=False):
            return
        try:
            if self._notes:
                self._read()
                self._is_dirty = True
            # No room while the disk is behind: no client may fill the memory by sending faster than the disk writes.
            self._room_bytes = 0 if self._writer.backlog_bytes > self._max_queued_bytes else self._max_queued_bytes
            now = time.monotonic()
            if self._is_dirty and now - self._synced_at >= _SYNC_S:
                self._is_dirty = False
                for sink in list(self._open.values()):
                    self._barrier.run("recorder", sink.sync)
                self._synced_at = now
        finally:
            self._reading.release()
        if not self._is_scheduled and (self._notes or self._is_dirty or not self._room_bytes):
            self._schedule(0.0 if self._notes else _READ_S)

    def _read(self) -> None:
        notes = self._notes
        many = max(1, _BATCH_BYTES * len(notes) // max(1, self.backlog_bytes))
        batch = [notes.popleft() for _ in range(min(len(notes), many, _BATCH))]
        self._read_bytes += sum([note.size_bytes for note in batch])
        self.redaction.look_ahead([note.data for note in batch])
        for note in batch:
            recording = note.recording
            if recording is not None and recording.is_broken:
                recording.missing += 1
                continue
            try:
                note.act(*note.details)
            except Exception as fault:  # noqa: BLE001 - a fault stays with its recording
                self._barrier.report("recorder", fault)
                if recording is not None:
                    recording.is_broken = True
                    recording.missing += 1
        self.redaction.look_ahead(())
        for sink in list(self._open.values()):
            self._barrier.run("recorder", sink.keep)

    def _close_store(self) -> None:
        try:
            self._context.store.close()
        except OSError as problem:
            self._context.emit(CaptureFailed(problem.strerror or str(problem)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Recording:
    """Leaves notes about one connection or address. After a loss nothing more of a connection is recorded; at an address every session
    is closed, and recording starts again.

    `missing` counts the notes that found no room, or came after one that could not be read.
    """

    def __init__(self, recorder: Recorder, sink: _Sink) -> None:
        self.recorder = recorder
        self.sink = sink
        self._router = sink if isinstance(sink, SessionRouter) else None
        self.missing = 0
        self.is_broken = False
        self._started_ns = time.monotonic_ns()
        self._numbers = count(1)
        recorder.must_put(recorder.begin, self)

    def at_ms(self) -> float:
        return (time.monotonic_ns() - self._started_ns) // 1000 / 1000

    def passed(self, data: bytes, *, from_client: bool) -> None:
        self.recorder.put(self, data, self.sink.message, self.at_ms(), data, from_client)

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        if self.missing and self._router is not None and not self.is_broken:
            self._restart(self._router, len(body) + _NOTE_BYTES)
        number = next(self._numbers)
        self.recorder.put(self, body, self.sink.requested, self.at_ms(), number, verb, path, headers, body)
        return _HttpExchange(self, number)

    def closed(self) -> None:
        self.recorder.must_put(self.recorder.end, self)

    def _restart(self, router: SessionRouter, size_bytes: int) -> None:
        if self.recorder.backlog_bytes < size_bytes:
            self.recorder.must_put(router.restart, self.missing)
            self.missing = 0


class _HttpExchange(Struct, frozen=True, gc=False):
    """One HTTP request of a connection or address."""

    owner: _Recording
    number: int

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        owner = self.owner
        owner.recorder.put(owner, body, owner.sink.answered, owner.at_ms(), self.number, status, headers, body)

    def streaming(self, status: int, headers: Headers) -> None:
        self.owner.recorder.put(self.owner, b"", self.owner.sink.streaming, self.number, status, headers)

    def events(self, data: bytes) -> None:
        owner = self.owner
        owner.recorder.put(owner, data, owner.sink.events, owner.at_ms(), self.number, data)

    def ended(self, *, by_client: bool) -> None:
        self.owner.recorder.put(self.owner, b"", self.owner.sink.ended, self.number, by_client)
