"""Requests that wait for something that takes time: a check of their credentials, a question of the console. Bounded in number and time.

Must not: know what is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from msgspec import Struct

from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.replies import STOPPING


class TaskBounds(Struct, frozen=True):
    """How many tasks there may be and how long each may take, and what is said beyond that. `component` is for the log."""

    component: str
    most: int
    timeout_s: float
    too_many: str
    too_slow: str


CREDENTIALS: Final = TaskBounds(
    component="credentials",
    most=256,
    timeout_s=10.0,
    too_many="Too many credentials are being checked; try again.",
    too_slow="The credentials could not be checked in time; try again.",
)


class ExchangeTasks:
    """Runs what each request waits for in a task of its own."""

    def __init__(self, bounds: TaskBounds, barrier: FaultBarrier) -> None:
        self._bounds = bounds
        self._barrier = barrier
        self._running: set[asyncio.Task[None]] = set()

    def start(
        self, wait: Callable[[], Coroutine[Any, Any, None]], give_up: Callable[[str], None]
    ) -> asyncio.Task[None] | None:
        """Begin; `give_up` is told why there is no outcome, if there is none. Returns nothing where there are too many."""
        if len(self._running) >= self._bounds.most:
            give_up(self._bounds.too_many)
            return None
        task = asyncio.get_running_loop().create_task(self._within(wait))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, give_up))
        return task

    def close(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    async def _within(self, wait: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with asyncio.timeout(self._bounds.timeout_s):
            await wait()

    def _ended(self, give_up: Callable[[str], None], task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        fault = None if task.cancelled() else task.exception()
        if task.cancelled():
            give_up(STOPPING)
        elif fault is not None:
            if not isinstance(fault, TimeoutError):
                self._barrier.report(self._bounds.component, fault)
            give_up(self._bounds.too_slow)
