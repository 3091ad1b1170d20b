"""Writes records and retries after a failure: unwritten records are kept within bounds, the rest is counted as lost.

Records reach the file in order, so the kept ones are written before any other. Blocks: for one thread only.
Must not: decide what happens to calls whose records are not written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from pactgate.audit.chain_file import ChainFile
from pactgate.audit.record import own_facts

RETRY_S: Final = 1.0
MAX_OWED: Final = 1000
MAX_OWED_BYTES: Final = 4 * 1024 * 1024


class RetryingWriter:
    """`on_failure` gets the reason once, `on_recovery` the number of late and of lost records."""

    def __init__(
        self,
        file: ChainFile,
        *,
        on_failure: Callable[[str], None],
        on_recovery: Callable[[int, int], None],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.trouble: str | None = None
        """Why nothing can be written; read by other threads."""
        self._file = file
        self._on_failure = on_failure
        self._on_recovery = on_recovery
        self._wall = wall
        self._clock = clock
        self._owed: deque[bytes] = deque()
        self._owed_bytes = 0
        self._lost = 0
        self._retry_at = 0.0

    def begin(self) -> None:
        """Lock the file and record the start. Raises OSError or LogLockedError; a full disk is retried."""
        self._file.lock()
        try:
            self._file.open()
        except OSError:
            self._file.close()
            raise
        self.write([self._file.opened_facts()])

    def end(self) -> None:
        self.write([own_facts("closed", self._wall())])
        self._file.close()

    @property
    def has_debts(self) -> bool:
        return bool(self._owed or self._lost or self.trouble)

    def write(self, records: Sequence[bytes], lost: int = 0) -> bool:
        """Write records. Returns whether the file has them and all before them. `lost` calls left no record to write."""
        self._lost += lost
        if not records and not self.has_debts:
            return True
        if self.trouble is not None and self._clock() < self._retry_at:
            self._owe(records)
            return False
        due, lost = [*self._owed, *records], self._lost
        gap = (
            [own_facts("gap", self._wall(), lostCalls=lost, reason=self.trouble or "too many at once")] if lost else []
        )
        try:
            if self.trouble is not None:
                self._file.reopen()
            self._file.append([*due, *gap])
        except OSError as error:
            self._failed(error)
            self._owe(records)
            return False
        self._owed.clear()
        self._owed_bytes = self._lost = 0
        if self.trouble is not None:
            self.trouble = None
            self._on_recovery(len(due), lost)
        return True

    def _owe(self, records: Sequence[bytes]) -> None:
        for record in records:
            if len(self._owed) >= MAX_OWED or self._owed_bytes + len(record) > MAX_OWED_BYTES:
                self._lost += 1
            else:
                self._owed.append(record)
                self._owed_bytes += len(record)

    def _failed(self, error: OSError) -> None:
        is_news = self.trouble is None
        self.trouble = error.strerror or str(error)
        self._retry_at = self._clock() + RETRY_S
        if is_news:
            self._on_failure(self.trouble)
