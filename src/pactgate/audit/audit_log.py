"""The audit log: the record of a sealed request is queued, and its response waits until the record is written.

A changed setting is recorded too, before the call that changed it, so that call's response waits for both. One thread writes; everything
queued while it wrote goes into its next write (group commit). The event loop never waits for the disk. When a write fails or
takes longer than `STALLED_S`, `onFailure` decides: `refuse` lets no further call begin and withholds the responses whose records are
missing; `continue` goes on.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from pactgate.audit.argument_shapes import Masking
from pactgate.audit.chain_file import ChainFile, LogLockedError
from pactgate.audit.record import (
    call_facts,
    change_facts,
    definition_facts,
    listen_facts,
    refused_facts,
    rejected_facts,
)
from pactgate.audit.retrying_writer import RETRY_S, RetryingWriter
from pactgate.catalog.conflicts import ConflictKind
from pactgate.config.sections.audit import AuditSection
from pactgate.core.context import ExecutionContext
from pactgate.core.events import (
    AuditFailed,
    AuditRecovered,
    CompositionHazard,
    ConfigurationChanged,
    CredentialsRefused,
    Emit,
    EntriesChanged,
    Event,
    ListenOpened,
    RequestRefused,
    ToolChanged,
)
from pactgate.core.failures import GatewayFailure, Kind

STALLED_S: Final = 5.0
MAX_BATCH: Final = 256
REJECTED_BURST: Final = 100.0
REJECTED_PER_SECOND: Final = 1.0
_AT_THE_DOOR: Final = frozenset({401, 403, 421})
"""Refused for its credentials, its Origin or its Host."""
MAX_PENDING: Final = 20_000
_END_S: Final = 3.0
_SILENT_DISK: Final = "the disk does not answer"
_UNWAITED: Final = frozenset({Kind.CANCELLED, Kind.AUDIT_UNAVAILABLE})
"""Failures whose response says nothing about an effect: it does not wait for the record."""

Written = asyncio.Future[str | None]
"""Resolves to None when the response may go out, else to why it is withheld."""
MakeRecord = Callable[[], bytes]
"""Encodes one record. The writer's thread calls it, because encoding costs more than queueing."""


class AuditLog:
    def __init__(
        self,
        settings: AuditSection,
        *,
        version: str,
        masking: Callable[[str, int], str],
        emit: Emit,
        wall: Callable[[], float] = time.time,
    ) -> None:
        assert settings.file is not None, "an audit log has a file"
        self._path = settings.file
        self._arguments = settings.arguments
        self._policy = settings.on_failure
        self._refuses = settings.on_failure == "refuse"
        self._masking = Masking(masking)
        self._emit = emit
        self._wall = wall
        file = ChainFile(
            Path(settings.file),
            max_bytes=settings.max_bytes,
            max_files=settings.max_files,
            fsync=settings.fsync,
            key=(settings.key or "").encode(),
            about={"gateway": version},
            wall=wall,
        )
        self._writer = RetryingWriter(file, on_failure=self._on_failure, on_recovery=self._on_recovery, wall=wall)
        self._handed: queue.SimpleQueue[list[MakeRecord] | None] = queue.SimpleQueue()
        self._gathered: list[MakeRecord] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._waiting: deque[tuple[float, Written]] = deque()
        """The waiting responses in the order of their records, and since when."""
        self._watch: asyncio.TimerHandle | None = None
        self._is_stalled = False
        self._room, self._room_at = REJECTED_BURST, wall()
        self._unrecorded = 0
        """Rejected requests since the last one that was recorded."""
        self._turned_away = 0
        """Records that never reached the writer. Only grows, so the writer thread may read it at any time."""

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written, or None."""
        return self._writer.trouble or (_SILENT_DISK if self._is_stalled else None)

    async def start(self) -> None:
        """Lock and open the file. Raises GatewayFailure when that fails or another gateway has it."""
        if self._loop is not None:
            return
        self._loop = asyncio.get_running_loop()
        try:
            await asyncio.to_thread(self._writer.begin)
        except LogLockedError:
            raise self._unusable("another gateway writes it", "Give each gateway a file of its own.") from None
        except OSError as error:
            why = error.strerror or str(error)
            raise self._unusable(why, "Check the folder and its permissions, or change audit.file.") from None
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Write what is queued, with a time limit, and release the file."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        self._pass_on()
        self._handed.put(None)
        await asyncio.wait({ended}, timeout=_END_S)
        if self._watch is not None:
            self._watch.cancel()

    def require(self) -> None:
        """Raise when a request could not be recorded and must not begin."""
        if self._refuses and (why := self.trouble) is not None:
            raise GatewayFailure(
                Kind.AUDIT_UNAVAILABLE,
                f"Nothing was done: requests must be recorded here, and the audit log can't be written ({why}). "
                "The operator has to see to it; requests are served again as soon as it can be.",
                retry_after_ms=round(RETRY_S * 1000),
            )

    def keep(self, ctx: ExecutionContext, params: bytes | None) -> Written | None:
        """Queue a sealed request. None when its response need not wait."""
        record, failure = ctx.record, ctx.failure
        assert record is not None, "only a sealed request is recorded"
        written = self._hand_over(partial(call_facts, record, params, self._wall(), self._arguments, self._masking))
        return None if failure is not None and failure.kind in _UNWAITED else written

    def emit(self, event: Event) -> None:
        """Record every changed setting, refused credentials, changed or poisoned definitions, and every listen when it opens.

        The record of the listen itself comes when it ends, perhaps days later.
        """
        if isinstance(event, ConfigurationChanged):
            self._hand_over(partial(change_facts, event, self._wall(), self._masking))
        elif isinstance(event, CredentialsRefused):
            self._hand_over(partial(refused_facts, event, self._wall()))
        elif isinstance(event, RequestRefused):
            self._reject(event)
        elif isinstance(event, ListenOpened):
            self._hand_over(partial(listen_facts, event, self._wall(), self._masking))
        elif isinstance(event, ToolChanged | EntriesChanged) or (
            isinstance(event, CompositionHazard) and event.kind == ConflictKind.HIDDEN_CHARACTERS
        ):
            self._hand_over(partial(definition_facts, event, self._wall(), self._masking))

    def _reject(self, event: RequestRefused) -> None:
        """Record a request that was refused at the door. Strangers must not fill the disk, so a flood is counted instead."""
        if event.status not in _AT_THE_DOOR:
            return
        now = self._wall()
        self._room = min(REJECTED_BURST, self._room + max(0.0, now - self._room_at) * REJECTED_PER_SECOND)
        self._room_at = now
        if self._room < 1:
            self._unrecorded += 1
            return
        self._room -= 1
        more, self._unrecorded = self._unrecorded, 0
        self._hand_over(partial(rejected_facts, event, now, more, self._masking))

    def _hand_over(self, what: MakeRecord) -> Written:
        loop = self._loop
        assert loop is not None, "nothing comes before the start"
        written: Written = loop.create_future()
        if len(self._waiting) >= MAX_PENDING:
            self._turned_away += 1
            self._let_go([written])
        else:
            self._waiting.append((loop.time(), written))
            if not self._gathered:
                loop.call_soon(self._pass_on)
            self._gathered.append(what)
            if self._watch is None:
                self._watch = loop.call_later(RETRY_S, self._look)
        return written

    def _pass_on(self) -> None:
        """Give the writer all records of one loop iteration together: waking the thread costs most."""
        gathered, self._gathered = self._gathered, []
        if gathered:
            self._handed.put(gathered)

    def _look(self) -> None:
        """Check once a second, while a response waits, whether the writer still writes."""
        self._watch = None
        if not self._waiting or self._loop is None:
            return
        if self._loop.time() - self._waiting[0][0] >= STALLED_S:
            if not self._is_stalled:
                self._is_stalled = True
                self._emit(AuditFailed(self._path, _SILENT_DISK, self._policy))
            self._let_go(written for _, written in self._waiting)
        self._watch = self._loop.call_later(RETRY_S, self._look)

    def _settle(self, count: int, is_written: bool) -> None:
        """Release the first `count` waiting responses."""
        done = [self._waiting.popleft()[1] for _ in range(count)]
        if self._is_stalled:
            self._is_stalled = False
            if is_written:
                self._emit(AuditRecovered(self._path, count, 0))
        if not is_written:
            self._let_go(done)
            return
        for written in done:
            if not written.done():
                written.set_result(None)

    def _let_go(self, waiting: Iterable[Written]) -> None:
        """Release responses whose records are not written: `refuse` withholds them, `continue` sends them."""
        why = (self.trouble or "too many records wait to be written") if self._refuses else None
        for written in waiting:
            if not written.done():
                written.set_result(why)

    def _unusable(self, why: str, hint: str) -> GatewayFailure:
        self._loop = None
        return GatewayFailure(
            Kind.INVALID_CONFIG, f"The audit log {self._path} can't be used: {why}. {hint}", operation="audit"
        )

    def _run(self) -> None:
        ended, counted, is_last = self._ended, 0, False
        while not is_last:
            batch, is_last = self._take()
            records = [make() for make in batch]
            lost = self._turned_away - counted
            is_written = self._writer.write(records, lost)
            counted += lost
            if batch:
                self._tell(self._settle, len(batch), is_written)
        self._writer.end()
        assert ended is not None
        self._tell(ended.set_result, None)

    def _take(self) -> tuple[list[MakeRecord], bool]:
        """The queued records, after waiting for one, and whether they are the last. Runs on the writer thread."""
        batch: list[MakeRecord] = []
        try:
            handed = self._handed.get(timeout=RETRY_S if self._writer.has_debts else None)
            while handed is not None:
                batch.extend(handed)
                if len(batch) >= MAX_BATCH:
                    return batch, False
                handed = self._handed.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True

    def _on_failure(self, reason: str) -> None:
        self._tell(self._emit, AuditFailed(self._path, reason, self._policy))

    def _on_recovery(self, late: int, lost: int) -> None:
        self._tell(self._emit, AuditRecovered(self._path, late, lost))

    def _tell(self, what: Callable[..., Any], *words: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(what, *words)
        except RuntimeError:
            return  # the loop has ended already
