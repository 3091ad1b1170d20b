"""The concurrency limit (bulkhead): how many calls may run and wait, for each server and in all.

Each server has a queue of its own: a number of calls run, more calls wait in order of arrival, and further calls are refused at once. A
server that hangs therefore fills only its own queue. The total of running and waiting calls is bounded too: at the bound, the newest call
of the longest queue makes room for a call to a shorter queue, and a call that finds no longer queue is refused (load shedding).
A slot passes to the next call in the same step in which it becomes free. Must not: wait for anything but a slot.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Final

from pactgate.core.failures import ErrorCode, GatewayFailure, Kind

RETRY_AFTER_MS: Final = 1000


class _ServerQueue:
    """The calls of one server. The future of a waiting call becomes True when it may run, False when it must make room."""

    __slots__ = ("in_flight", "server", "waiting")

    def __init__(self, server: str) -> None:
        self.server = server
        self.in_flight = 0
        self.waiting: OrderedDict[asyncio.Future[bool], None] = OrderedDict()


class Overload:
    """Hands out slots. The caller must call `leave` exactly once after every `enter` that succeeded."""

    def __init__(self, *, max_in_flight: int, max_per_server: int, max_queued: int) -> None:
        self.refused_count = 0
        self._max_in_flight = max_in_flight
        self._max_per_server = max_per_server
        self._max_queued = max_queued
        self._held = 0
        self._queues: dict[str, _ServerQueue] = {}

    def enter(self, server: str) -> Awaitable[None] | None:
        """Take a slot for a server: None when one was free, else an awaitable that may raise `GatewayFailure`."""
        queue = self._queues.get(server)
        if queue is None:
            queue = self._queues[server] = _ServerQueue(server)
        if queue.in_flight < self._max_per_server and self._held < self._max_in_flight:
            queue.in_flight += 1
            self._held += 1
            return None
        return self._contend(queue)

    def try_enter(self, server: str) -> bool:
        """Take a slot, if one is free."""
        queue = self._queues.get(server)
        if queue is None or queue.in_flight >= self._max_per_server or self._held >= self._max_in_flight:
            return False
        queue.in_flight += 1
        self._held += 1
        return True

    def leave(self, server: str) -> None:
        """Release the slot: to the next call waiting for this server, if there is one."""
        queue = self._queues[server]
        self._held -= 1
        if queue.waiting:
            self._pass_on(queue)
        else:
            queue.in_flight -= 1

    def load(self) -> dict[str, tuple[int, int]]:
        """For each server with calls under way: how many run and how many wait."""
        return {
            name: (queue.in_flight, len(queue.waiting))
            for name, queue in self._queues.items()
            if queue.in_flight or queue.waiting
        }

    @property
    def held_count(self) -> int:
        """Calls that run or wait, towards all servers."""
        return self._held

    async def _contend(self, queue: _ServerQueue) -> None:
        must_wait = queue.in_flight >= self._max_per_server
        if must_wait and len(queue.waiting) >= self._max_queued:
            self.refused_count += 1
            raise _busy(queue)
        if self._held >= self._max_in_flight:
            self._make_room(queue)
        self._held += 1
        if must_wait:
            await self._wait(queue)
        else:
            queue.in_flight += 1

    async def _wait(self, queue: _ServerQueue) -> None:
        slot: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        queue.waiting[slot] = None
        try:
            may_run = await slot
        except asyncio.CancelledError:
            self._give_up(queue, slot)
            raise
        if not may_run:
            raise _full(queue.server)

    def _give_up(self, queue: _ServerQueue, slot: asyncio.Future[bool]) -> None:
        """The caller stopped waiting; it may have received a slot, or lost its slot in the queue, a moment before."""
        if slot.cancelled():
            queue.waiting.pop(slot, None)
            self._held -= 1
        elif slot.result():
            self.leave(queue.server)

    def _pass_on(self, queue: _ServerQueue) -> None:
        while queue.waiting:
            slot, _ = queue.waiting.popitem(last=False)
            if not slot.done():
                slot.set_result(True)
                return
        queue.in_flight -= 1

    def _make_room(self, queue: _ServerQueue) -> None:
        """Refuse the newest call of the longest queue, if that is longer than this queue; else refuse this call."""
        self.refused_count += 1
        longest = max(self._queues.values(), key=lambda other: len(other.waiting))
        while len(longest.waiting) > len(queue.waiting):
            slot, _ = longest.waiting.popitem()
            if not slot.done():
                slot.set_result(False)
                self._held -= 1
                return
        raise _full(queue.server)


def _busy(queue: _ServerQueue) -> GatewayFailure:
    return GatewayFailure(
        Kind.OVERLOADED,
        f"{queue.server} is busy: {queue.in_flight} calls run and {len(queue.waiting)} wait. Try again in a moment.",
        server=queue.server,
        operation="queue",
        retry_after_ms=RETRY_AFTER_MS,
        details={"inFlight": queue.in_flight, "waiting": len(queue.waiting)},
    )


def _full(server: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.OVERLOADED,
        "The gateway has as many calls under way as it may hold. Try again in a moment.",
        server=server,
        operation="queue",
        code=ErrorCode.MEMORY_PRESSURE,
        retry_after_ms=RETRY_AFTER_MS,
    )
