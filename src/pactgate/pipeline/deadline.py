"""The time limit of one request: a single timer that cancels the task it runs in, and stands still while the caller is asked something.

That time is bounded too, in all of one request. Must not: outlive its request; whoever makes one closes it. Enforces
S1/TIMEOUT-001.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Deadline:
    """One `call_at` that cancels the task it is made in, made when that first has to wait; far cheaper than a scope per step."""

    __slots__ = ("_began", "_has_expired", "_input_s", "_loop", "_paused", "_paused_at", "_task", "_timer", "limit_ms")

    def __init__(self, limit_ms: int, input_ms: int, began: float | None = None) -> None:
        """`began` is when the time began to run, on the clock of the loop; now, where it begins with the first wait."""
        self.limit_ms = limit_ms
        self._input_s = input_ms / 1000
        self._has_expired = False
        self._paused = 0
        self._paused_at = 0.0
        self._loop = loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        self._began = loop.time() if began is None else began
        self._timer = loop.call_at(self._began + limit_ms / 1000, self._expire)

    def move(self, limit_ms: int) -> None:
        """Another limit, counted from the same beginning."""
        self.limit_ms = limit_ms
        self._set(self._began + limit_ms / 1000)

    @property
    def is_waiting_for_caller(self) -> bool:
        return self._paused > 0

    @contextmanager
    def waiting_for_caller(self) -> Iterator[None]:
        """Time that is the caller's own: it counts against the time for input, and not against the call."""
        if self._paused == 0:
            self._paused_at = self._loop.time()
            self._set(self._paused_at + self._input_s)
        self._paused += 1
        try:
            yield
        finally:
            if not self._has_expired:  # then it stays known what was waited for
                self._paused -= 1
            if self._paused == 0:
                spent_s = self._loop.time() - self._paused_at
                self._input_s -= spent_s
                self._began += spent_s
                self._set(self._began + self.limit_ms / 1000)

    def ended_it(self) -> bool:
        """Whether the cancellation was ours, and only ours."""
        return self._has_expired and self._task is not None and self._task.uncancel() == 0

    def close(self) -> None:
        self._timer.cancel()
        self._task = None

    def _set(self, when: float) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._has_expired = True
        assert self._task is not None
        self._task.cancel()
