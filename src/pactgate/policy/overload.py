"""The concurrency limit (bulkhead): how many calls may run and wait, for each server, for each principal and in all.

Each server has a queue of its own: a number of calls run, more calls wait, and further calls are refused at once. A server that hangs
therefore fills only its own queue. The total of running and waiting calls is bounded too: at the bound, the newest call of the longest
line makes room for a call of a shorter line, and a call that finds no longer line is refused (load shedding).

Where several principals can call, none of them may hold more than its fair share (`core/fair_share.py`) of a server's slots, of its queue
and of the total, so that a slot stays free for the others. The calls of one principal wait in a line, in order of arrival; the lines of a
server take turns (round robin). A slot passes to the next call in the same step in which it becomes free.
Must not: wait for anything but a slot.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.core.fair_share import is_fair, uncontended

RETRY_AFTER_MS: Final = 1000

Wait = Callable[[Awaitable[None]], Awaitable[None]]
"""Waits for a slot in place of the request, for example to take the time."""

_Line = OrderedDict[asyncio.Future[bool], None]
"""Waiting calls of one principal. The future of a call becomes True when it may run, False when it must make room."""


class _ServerQueue:
    """The calls of one server. The principal whose turn is next has the first line."""

    __slots__ = ("in_flight", "lines", "running", "server")

    def __init__(self, server: str) -> None:
        self.server = server
        self.in_flight = 0
        self.running: dict[str, int] = {}
        """Running calls by principal; `in_flight` is their sum."""
        self.lines: OrderedDict[str, _Line] = OrderedDict()

    @property
    def waiting_count(self) -> int:
        return sum(map(len, self.lines.values()))

    def take(self, subject: str) -> None:
        self.in_flight += 1
        self.running[subject] = self.running.get(subject, 0) + 1

    def next_slot(self, subject: str) -> asyncio.Future[bool]:
        """Take the first call of a line; the next turn is another principal's."""
        line = self.lines[subject]
        slot, _ = line.popitem(last=False)
        self.lines.move_to_end(subject)
        if not line:
            del self.lines[subject]
        return slot

    def remove(self, subject: str, slot: asyncio.Future[bool]) -> None:
        line = self.lines.get(subject)
        if line is not None:
            line.pop(slot, None)
            if not line:
                del self.lines[subject]


class Overload:
    """Hands out slots. The caller must call `leave` exactly once, with the same arguments, after every `enter` that succeeded.

    `is_shared` says that more than one principal can call: without others, one principal may use everything.
    """

    def __init__(self, *, max_in_flight: int, max_per_server: int, max_queued: int, is_shared: bool = True) -> None:
        self.refused_count = 0
        self._max_in_flight = max_in_flight
        self._max_per_server = max_per_server
        self._max_queued = max_queued
        self._held = 0
        self._queues: dict[str, _ServerQueue] = {}
        self.share(is_shared)

    def share(self, is_shared: bool) -> None:
        """Keep shares from now on, or no longer; calls that run or wait stay."""
        self._is_shared = is_shared
        self._uncontended_per_server = uncontended(self._max_per_server) if is_shared else self._max_per_server
        self._uncontended_in_all = uncontended(self._max_in_flight) if is_shared else self._max_in_flight

    def enter(self, server: str, subject: str) -> Awaitable[None] | None:
        """Take a slot for a call of a principal: None when one was free, else an awaitable that may raise `GatewayFailure`."""
        queue = self._queues.get(server)
        if queue is None:
            queue = self._queues[server] = _ServerQueue(server)
        if queue.in_flight < self._uncontended_per_server and self._held < self._uncontended_in_all:
            self._held += 1
            queue.in_flight += 1
            running = queue.running
            running[subject] = running.get(subject, 0) + 1
            return None
        return self._contend(queue, subject)

    @asynccontextmanager
    async def slot(self, server: str, subject: str, wait: Wait | None = None) -> AsyncIterator[None]:
        """Hold a slot while inside, after waiting for it. A tool call uses `enter` and `leave` itself, which cost it less."""
        turn = self.enter(server, subject)
        if turn is not None:
            await (turn if wait is None else wait(turn))
        try:
            yield
        finally:
            self.leave(server, subject)

    def leave(self, server: str, subject: str) -> None:
        """Release the slot: to the next call waiting for this server, if there is one that may run."""
        queue = self._queues[server]
        self._held -= 1
        queue.in_flight -= 1
        running = queue.running
        left = running[subject] - 1
        if left:
            running[subject] = left
        else:
            del running[subject]
        if queue.lines:
            self._pass_on(queue)

    def load(self) -> dict[str, tuple[int, int]]:
        """For each server with calls under way: how many run and how many wait."""
        return {
            name: (queue.in_flight, queue.waiting_count)
            for name, queue in self._queues.items()
            if queue.in_flight or queue.lines
        }

    @property
    def held_count(self) -> int:
        """Calls that run or wait, towards all servers."""
        return self._held

    def _is_fair(self, held: int, free: int) -> bool:
        return is_fair(held, free) if self._is_shared else free > 0

    def _may_run(self, queue: _ServerQueue, subject: str) -> bool:
        return self._is_fair(queue.running.get(subject, 0), self._max_per_server - queue.in_flight)

    def _may_wait(self, queue: _ServerQueue, subject: str) -> bool:
        return self._is_fair(len(queue.lines.get(subject, ())), self._max_queued - queue.waiting_count)

    async def _contend(self, queue: _ServerQueue, subject: str) -> None:
        may_run = self._may_run(queue, subject)
        if not may_run and not self._may_wait(queue, subject):
            self.refused_count += 1
            raise _busy(queue)
        if self._held >= self._max_in_flight:
            self._make_room(queue, subject)
        elif not self._is_fair(self._held_by(subject), self._max_in_flight - self._held):
            self.refused_count += 1
            raise _full(queue.server)
        self._held += 1
        if may_run:
            queue.take(subject)
        else:
            await self._wait(queue, subject)

    def _held_by(self, subject: str) -> int:
        """The running and waiting calls of one principal, towards all servers."""
        return sum(queue.running.get(subject, 0) + len(queue.lines.get(subject, ())) for queue in self._queues.values())

    async def _wait(self, queue: _ServerQueue, subject: str) -> None:
        slot: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        queue.lines.setdefault(subject, OrderedDict())[slot] = None
        try:
            may_run = await slot
        except asyncio.CancelledError:
            self._give_up(queue, subject, slot)
            raise
        if not may_run:
            raise _full(queue.server)

    def _give_up(self, queue: _ServerQueue, subject: str, slot: asyncio.Future[bool]) -> None:
        """The caller stopped waiting; it may have received a slot, or lost its place in the line, a moment before."""
        if slot.cancelled():
            queue.remove(subject, slot)
            self._held -= 1
        elif slot.result():
            self.leave(queue.server, subject)

    def _pass_on(self, queue: _ServerQueue) -> None:
        """Give free slots to waiting calls: to the principals in turn, as far as their shares go."""
        while queue.in_flight < self._max_per_server:
            subject = next((subject for subject in queue.lines if self._may_run(queue, subject)), None)
            if subject is None:
                return
            slot = queue.next_slot(subject)
            if not slot.done():
                queue.take(subject)
                slot.set_result(True)

    def _make_room(self, queue: _ServerQueue, subject: str) -> None:
        """Refuse the newest call of the longest line, if that is longer than the line of this principal; else refuse this call."""
        self.refused_count += 1
        own = len(queue.lines.get(subject, ()))
        lines = ((other, name, line) for other in self._queues.values() for name, line in other.lines.items())
        other, name, longest = max(lines, key=lambda found: len(found[2]), default=(queue, subject, OrderedDict()))
        while len(longest) > own:
            slot = next(reversed(longest))
            other.remove(name, slot)
            if not slot.done():
                slot.set_result(False)
                self._held -= 1
                return
        raise _full(queue.server)


def _busy(queue: _ServerQueue) -> GatewayFailure:
    waiting = queue.waiting_count
    return GatewayFailure(
        Kind.OVERLOADED,
        f"{queue.server} is busy: {queue.in_flight} calls run and {waiting} wait. Try again in a moment.",
        server=queue.server,
        operation="queue",
        retry_after_ms=RETRY_AFTER_MS,
        details={"inFlight": queue.in_flight, "waiting": waiting},
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
