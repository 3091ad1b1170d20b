"""Requests that wait until their credentials have been checked elsewhere. Bounded in number and time.

Must not: decide what a credential is worth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.replies import STOPPING

MAX_CHECKS: Final = 256
CHECK_TIMEOUT_S: Final = 10.0
TOO_MANY: Final = "Too many credentials are being checked; try again."
TOO_SLOW: Final = "The credentials could not be checked in time; try again."


class CredentialChecks:
    """Runs each check in a task of its own."""

    def __init__(self, barrier: FaultBarrier) -> None:
        self._barrier = barrier
        self._running: set[asyncio.Task[None]] = set()

    def start(
        self, check: Callable[[], Coroutine[Any, Any, None]], give_up: Callable[[str], None]
    ) -> asyncio.Task[None] | None:
        """Begin a check; `give_up` is told why there is no outcome, if there is none. Returns nothing where there are too many."""
        if len(self._running) >= MAX_CHECKS:
            give_up(TOO_MANY)
            return None
        task = asyncio.get_running_loop().create_task(_within(check))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, give_up))
        return task

    def close(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    def _ended(self, give_up: Callable[[str], None], task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        fault = None if task.cancelled() else task.exception()
        if task.cancelled():
            give_up(STOPPING)
        elif fault is not None:
            if not isinstance(fault, TimeoutError):
                self._barrier.report("credentials", fault)
            give_up(TOO_SLOW)


async def _within(check: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with asyncio.timeout(CHECK_TIMEOUT_S):
        await check()
