"""Records sessions without holding anybody up: who talks leaves a note in a bounded queue, one thread reads the notes and writes.

The thread is not woken by every note: it looks in a few times a second, and after every few notes it lets others go first, so that
a call neither waits for it nor is interrupted by it for long.

When the thread falls behind the bound, the recording concerned ends there; how much is missing is counted and said in its file. The
thread is ended by `close`, within a bound; what is written by then is whole. Must not: raise towards who talks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from pactgate.capture.redaction import Redaction
from pactgate.capture.router import Router
from pactgate.capture.scribe import Ending, Scribe, Subject
from pactgate.capture.store import Store
from pactgate.core.tap import Headers, Hop, Tap

MAX_QUEUED_BYTES: Final = 32 * 1024 * 1024
CLOSE_S: Final = 5.0
_NOTE_BYTES: Final = 256
_LOOK_S: Final = 0.05
_IN_A_ROW: Final = 8
_PAUSE_S: Final = 0.0002
"""A pause after a few notes: about as long as they took to read, so that the thread takes half of what is left at most."""
_QUIET_LOOKS: Final = 4
"""Looks that find nothing, after which files are brought up to date and the thread sleeps until it is woken."""

_Note = tuple[int, Callable[..., None], tuple[Any, ...], dict[str, Any]]


def _ignore(_: Any) -> None:
    return


class Recorder:
    """Hands out taps. `on_end` and `on_trouble` are called on the recorder's thread."""

    def __init__(
        self,
        store: Store,
        redaction: Redaction,
        *,
        max_file_bytes: int,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        on_end: Callable[[Ending], None] = _ignore,
        on_trouble: Callable[[str], None] = _ignore,
    ) -> None:
        self.redaction = redaction
        self._store = store
        self._max_file_bytes = max_file_bytes
        self._max_queued_bytes = max_queued_bytes
        self._on_end = on_end
        self._on_trouble = on_trouble
        self._notes: deque[_Note] = deque()
        self._woken = threading.Event()
        self._is_ending = threading.Event()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._taken_bytes = 0
        self._closers: dict[object, Callable[[], None]] = {}
        self._syncers: dict[object, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None

    def connection(self, label: str, leg: str, transport: str) -> Tap:
        """A tap for one connection, which is one session."""
        self._start()
        return _Connection(self, Subject(label, leg, transport))

    def address(self, label: str, leg: str, *, is_shared: bool) -> Tap:
        """A tap for one HTTP address, where many sessions may meet; `label` and the path name the server."""
        self._start()
        return _Address(self, label, leg, is_shared=is_shared)

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Write what is left and finish every file. Blocks, bounded."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_ending.set()
        self._woken.set()
        thread.join(timeout_s)

    @property
    def backlog_bytes(self) -> int:
        return self._queued_bytes - self._taken_bytes

    def put(self, size_bytes: int, act: Callable[..., None], *details: Any, **more: Any) -> bool:
        """Leave a note; False where there is no room for it."""
        size_bytes += _NOTE_BYTES
        if self.backlog_bytes + size_bytes > self._max_queued_bytes:
            return False
        with self._lock:  # two pumps of a relay may write at once
            self._queued_bytes += size_bytes
        self._add((size_bytes, act, details, more))
        return True

    def must_put(self, act: Callable[..., None], *details: Any) -> None:
        """A note that is small and rare, and needed to finish a file."""
        self._add((0, act, details, {}))

    def scribe(self, subject: Subject) -> Scribe:
        return Scribe(subject, self._store, self.redaction, self._max_file_bytes, self._on_end, self._on_trouble)

    def watch(self, owner: object, sync: Callable[[], None], close: Callable[[], None]) -> None:
        self._syncers[owner], self._closers[owner] = sync, close

    def forget(self, owner: object) -> None:
        self._syncers.pop(owner, None)
        self._closers.pop(owner, None)

    def _add(self, note: _Note) -> None:
        self._notes.append(note)
        if not self._woken.is_set():
            self._woken.set()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pactgate-recorder", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        quiet_looks = 0
        while not self._is_ending.is_set():
            if quiet_looks >= _QUIET_LOOKS:
                self._sync()
                quiet_looks = 0
                self._woken.clear()
                if not self._notes:  # one that came between the last look and the clearing is not left waiting
                    self._woken.wait()
            self._is_ending.wait(_LOOK_S)
            quiet_looks = 0 if self._read_notes() else quiet_looks + 1
        self._read_notes()
        for close in list(self._closers.values()):
            close()
        try:
            self._store.close()
        except OSError as problem:
            self._on_trouble(problem.strerror or str(problem))

    def _read_notes(self) -> bool:
        """Work off what is there; whether there was anything."""
        read = 0
        while self._notes:
            size_bytes, act, details, more = self._notes.popleft()
            act(*details, **more)
            self._taken_bytes += size_bytes
            read += 1
            if read % _IN_A_ROW == 0 and not self._is_ending.is_set():
                time.sleep(_PAUSE_S)  # let go of the interpreter
        return read > 0

    def _sync(self) -> None:
        for sync in list(self._syncers.values()):
            sync()


class _Connection:
    """One connection. Its scribe begins with the first thing that passes."""

    def __init__(self, recorder: Recorder, subject: Subject) -> None:
        self._recorder = recorder
        self._subject = subject
        self._scribe: Scribe | None = None
        self._missing = 0
        self._numbers = count(1)
        self._started = time.monotonic()

    def passed(self, text: bytes, *, from_client: bool) -> None:
        self.note(len(text), "message", self.now_ms(), text, from_client=from_client)

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> Hop:
        number = next(self._numbers)
        self.note(len(body), "requested", self.now_ms(), number, verb, headers, body)
        return _RecordedHop(self, number)

    def closed(self) -> None:
        self._recorder.must_put(self._close, self._missing)

    def note(self, size_bytes: int, what: str, *details: Any, **more: Any) -> None:
        if self._missing or not self._recorder.put(size_bytes, self._take, what, *details, **more):
            self._missing += 1

    def now_ms(self) -> float:
        return round((time.monotonic() - self._started) * 1000, 3)

    def _take(self, what: str, *details: Any, **more: Any) -> None:
        if self._scribe is None:
            self._scribe = self._recorder.scribe(self._subject)
            self._recorder.watch(self, self._scribe.sync, lambda: self._close(self._missing))
        self._scribe.take(what, *details, **more)

    def _close(self, missing: int) -> None:
        self._recorder.forget(self)
        scribe, self._scribe = self._scribe, None
        if scribe is not None:
            scribe.close(missing)


class _Address:
    """One address with many sessions. After a loss everything recorded is closed, and recording begins anew."""

    def __init__(self, recorder: Recorder, label: str, leg: str, *, is_shared: bool) -> None:
        self._recorder = recorder
        self._router = Router(
            lambda path, is_modern: recorder.scribe(
                Subject(f"{label}{path}", leg, "http", is_shared=is_shared and is_modern)
            )
        )
        self._missing = 0
        self._numbers = count(1)
        self._started = time.monotonic()
        recorder.must_put(recorder.watch, self, self._router.sync, self._close)

    def passed(self, text: bytes, *, from_client: bool) -> None:
        raise NotImplementedError("an address carries requests, not messages")

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> Hop:
        if self._missing and self._recorder.backlog_bytes < len(body) + _NOTE_BYTES:
            self._recorder.must_put(self._router.cut, self._missing)
            self._missing = 0
        number = next(self._numbers)
        self.note(len(body), "requested", self.now_ms(), number, verb, path, headers, body)
        return _RecordedHop(self, number)

    def closed(self) -> None:
        self._recorder.must_put(self._close)

    def note(self, size_bytes: int, what: str, *details: Any, **more: Any) -> None:
        if self._missing or not self._recorder.put(size_bytes, getattr(self._router, what), *details, **more):
            self._missing += 1

    def now_ms(self) -> float:
        return round((time.monotonic() - self._started) * 1000, 3)

    def _close(self) -> None:
        self._recorder.forget(self)
        self._router.close(self._missing)


class _RecordedHop:
    """One HTTP request of a recorded connection or address."""

    __slots__ = ("_number", "_owner")

    def __init__(self, owner: _Connection | _Address, number: int) -> None:
        self._owner = owner
        self._number = number

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        self._owner.note(len(body), "answered", self._owner.now_ms(), self._number, status, headers, body)

    def streaming(self, status: int, headers: Headers) -> None:
        self._owner.note(0, "streaming", self._owner.now_ms(), self._number, status, headers)

    def events(self, data: bytes) -> None:
        self._owner.note(len(data), "events", self._owner.now_ms(), self._number, data)

    def ended(self, *, by_client: bool) -> None:
        self._owner.note(0, "ended", self._owner.now_ms(), self._number, by_client=by_client)
