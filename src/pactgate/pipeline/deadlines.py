"""The time limits of calls that no task waits for: one queue for each limit, one timer for each queue.

Nearly all calls have one of a few limits, and those with the same limit run out in the order they began: the first of a queue is the
next to look at, and entering and leaving cost no timer. Must not: know what runs out. Enforces S1/TIMEOUT-001 beside `deadline`.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

_KEPT_QUEUES: Final = 32
"""So many limits keep their queue while it is empty; callers may name any limit they like."""


class Expiring(Protocol):
    def expire(self) -> None:
        """Its time is over. Called at most once; must not raise."""


class _Queue:
    __slots__ = ("entries", "limit_s", "loop", "timer")

    def __init__(self, limit_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.limit_s = limit_s
        self.entries: dict[Expiring, float] = {}
        """When each began, the oldest first."""
        self.timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """End what has run out, and come back when the next one may have."""
        self.timer = None
        now = self.loop.time()
        for entry, began in list(self.entries.items()) if self._is_over(now) else ():
            if began + self.limit_s > now:
                break
            if self.entries.pop(entry, None) is not None:
                entry.expire()
        if self.entries and self.timer is None:
            self.timer = self.loop.call_at(next(iter(self.entries.values())) + self.limit_s, self.look)

    def _is_over(self, now: float) -> bool:
        return bool(self.entries) and next(iter(self.entries.values())) + self.limit_s <= now


class Deadlines:
    """Whoever adds an entry removes it, unless it was expired."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}

    def __len__(self) -> int:
        """Limits that have a queue."""
        return len(self._queues)

    def add(self, limit_ms: int, entry: Expiring) -> float:
        """Let its time run from now, on the clock of the loop, which is returned."""
        queue = self._queues.get(limit_ms)
        if queue is None:
            queue = self._queues[limit_ms] = _Queue(limit_ms / 1000)
        now = queue.entries[entry] = queue.loop.time()
        if queue.timer is None:
            queue.timer = queue.loop.call_at(now + queue.limit_s, queue.look)
        return now

    def remove(self, limit_ms: int, entry: Expiring) -> None:
        """It has ended by itself. Removing what is not there does nothing."""
        queue = self._queues.get(limit_ms)
        if queue is None:
            return
        queue.entries.pop(entry, None)
        if not queue.entries and len(self._queues) > _KEPT_QUEUES:
            if queue.timer is not None:
                queue.timer.cancel()
            del self._queues[limit_ms]

    def close(self) -> None:
        for queue in self._queues.values():
            if queue.timer is not None:
                queue.timer.cancel()
        self._queues.clear()
