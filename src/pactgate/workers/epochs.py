"""How often each worker has written to each server, where all workers can see it: counters in memory they share.

Every worker counts in a row of its own, so nothing has to be locked, and a count never goes back. A server's place in the row follows
from its id; two that share a place only make each other forget sooner. Must not: say what was written.
"""

from __future__ import annotations

import mmap
import zlib
from typing import Final

from pactgate.workers.homes import Place

SLOTS: Final = 1024
_CELL_BYTES: Final = 8


def size_bytes(workers: int) -> int:
    return workers * SLOTS * _CELL_BYTES


class Epochs:
    """One worker's view. `memory` has a row of counters for each worker, and outlives all of them."""

    def __init__(self, memory: mmap.mmap, place: Place) -> None:
        self._cells = memoryview(memory).cast("Q")
        self._own_row = place.index * SLOTS
        self._other_rows = tuple(index * SLOTS for index in range(place.count) if index != place.index)

    def count(self, server: str) -> None:
        """This worker has written; every other one sees it from now on."""
        self._cells[self._own_row + _slot(server)] += 1

    def of_others(self, server: str) -> int:
        """Differs from what it was when another worker has written since."""
        cells, slot = self._cells, _slot(server)
        return sum(cells[row + slot] for row in self._other_rows)

    def close(self) -> None:
        self._cells.release()


def _slot(server: str) -> int:
    return zlib.crc32(server.encode()) % SLOTS
