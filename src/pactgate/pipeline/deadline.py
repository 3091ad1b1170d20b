"""The time limit of one request, which stands still while its client is asked something.

Requests with the same limit run out in the order they began: one queue for each limit, with one timer, so that arming and closing a
deadline cost no timer of its own (1.6 us of CPU per call). A deadline that is moved or paused has a timer of its own. The time for
input is bounded too, in all of one request. Must not: outlive its request; whoever makes one closes it. Enforces S1/TIMEOUT-001.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from pactgate.core.fault_barrier import FaultBarrier

_KEPT_QUEUES: Final = 32
"""So many limits keep their queue while it is empty; callers may name any limit they like."""


class Deadline(Struct, eq=False):
    """`interrupt` ends what works on the request. Made by `TimeoutQueue.begin` when the request first has to wait."""

    _timeouts: TimeoutQueue
    _interrupt: Callable[[], None]
    limit_ms: int
    full_ms: int
    """The limit before the client shortened it."""
    _input_s: float
    _began: float
    _queue: _Queue | None
    has_expired: bool = False
    _paused: int = 0
    _paused_at: float = 0.0
    _is_closed: bool = False
    _timer: asyncio.TimerHandle | None = None
    is_extended: bool = False
    client_s: float = 0.0
    """How long the client was asked something, so far."""

    def move(self, limit_ms: int) -> None:
        """Another limit, counted from the same beginning."""
        if limit_ms != self.limit_ms:
            self.limit_ms = self.full_ms = limit_ms
            self._set(self._began + limit_ms / 1000)

    def extend(self, longest_ms: int) -> None:
        """The limit begins anew, as far as the request has not taken `longest_ms` in all. Not while its client is asked something."""
        if not self._paused and not self._is_closed:
            now = self._timeouts.loop.time()
            end = min(now + self.limit_ms / 1000, self._began + longest_ms / 1000)
            self.full_ms = max(self.full_ms, round((end - self._began) * 1000))
            self.is_extended = True
            self._set(end)

    def left_s(self) -> float | None:
        """Seconds until the limit that the client can't shorten, negative when it is over. None while the client is asked."""
        return None if self._paused else self._began + self.full_ms / 1000 - self._timeouts.loop.time()

    @property
    def is_waiting_for_client(self) -> bool:
        return self._paused > 0

    @contextmanager
    def waiting_for_client(self) -> Iterator[None]:
        """While inside, the time for input runs instead of the request's own; may be entered several times at once."""
        loop = self._timeouts.loop
        if self._paused == 0:
            self._paused_at = loop.time()
            self._set(self._paused_at + self._input_s)
        self._paused += 1
        try:
            yield
        finally:
            if not self.has_expired:  # then it stays known what was waited for
                self._paused -= 1
            if self._paused == 0:
                spent_s = loop.time() - self._paused_at
                self.client_s += spent_s
                self._input_s -= spent_s
                self._began += spent_s
                self._set(self._began + self.limit_ms / 1000)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._disarm()
        elif self._queue is not None:
            self._queue.remove(self)
            self._queue = None

    def expire(self) -> None:
        self.has_expired = True
        if self._paused:
            self.client_s += self._timeouts.loop.time() - self._paused_at
        self._queue = self._timer = None
        self._interrupt()

    def _set(self, when: float) -> None:
        self._disarm()
        if not self._is_closed:
            self._timer = self._timeouts.loop.call_at(when, self.expire)

    def _disarm(self) -> None:
        if self._queue is not None:
            self._queue.remove(self)
            self._queue = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Queue:
    """Deadlines of one limit, the oldest first, with when each began."""

    __slots__ = ("_barrier", "_limit_s", "_on_empty", "entries", "loop", "timer")

    def __init__(
        self, limit_ms: int, loop: asyncio.AbstractEventLoop, barrier: FaultBarrier, on_empty: Callable[[int], None]
    ) -> None:
        self._limit_s = limit_ms / 1000
        self.loop = loop
        self._barrier = barrier
        self._on_empty = on_empty
        self.entries: dict[Deadline, float] = {}
        self.timer: asyncio.TimerHandle | None = None

    def arm(self, began: float) -> None:
        """Look after the deadlines when one that began then runs out."""
        self.timer = self.loop.call_at(began + self._limit_s, self._look)

    def remove(self, deadline: Deadline) -> None:
        self.entries.pop(deadline, None)
        if not self.entries:
            self._on_empty(deadline.limit_ms)

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def _look(self) -> None:
        """End what has run out, and come back when the next one may have. One that fails to end holds up no other."""
        self.timer = None
        now = self.loop.time()
        overdue = []
        for deadline, began in self.entries.items():
            if began + self._limit_s > now:
                break
            overdue.append(deadline)
        for deadline in overdue:
            if self.entries.pop(deadline, None) is not None:
                self._barrier.run("deadline", deadline.expire)
        if self.entries and self.timer is None:
            self.arm(next(iter(self.entries.values())))


class TimeoutQueue:
    """The deadlines of all requests, by limit."""

    def __init__(self, barrier: FaultBarrier) -> None:
        self._barrier = barrier
        self._queues: dict[int, _Queue] = {}

    def __len__(self) -> int:
        """Limits that have a queue."""
        return len(self._queues)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def begin(self, interrupt: Callable[[], None], limit_ms: int, input_ms: int) -> Deadline:
        """The deadline of a request that begins to wait now."""
        queue = self._queues.get(limit_ms)
        if queue is None:
            queue = self._queues[limit_ms] = _Queue(limit_ms, self.loop, self._barrier, self._drop_if_many)
        now = queue.loop.time()
        deadline = Deadline(self, interrupt, limit_ms, limit_ms, input_ms / 1000, now, queue)
        queue.entries[deadline] = now
        if queue.timer is None:
            queue.arm(now)
        return deadline

    def close(self) -> None:
        for queue in self._queues.values():
            queue.close()
        self._queues.clear()

    def _drop_if_many(self, limit_ms: int) -> None:
        if len(self._queues) > _KEPT_QUEUES:
            queue = self._queues.pop(limit_ms, None)
            if queue is not None:
                queue.close()
