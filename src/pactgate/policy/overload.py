"""How many calls may be under way at once: towards each server, waiting for it, and in all.

Each server has a lane: so many calls run, so many more wait in the order they came, further ones are refused at once. Lanes know nothing of
each other, so a server that hangs fills only its own. In all, running and waiting, there is a bound too; when it is reached, the call
that came last to the longest queue makes room for one to a shorter queue, and a call that finds no longer queue is refused.
A place is given away in the same step in which it becomes free. Must not: wait for anything but a place; a deadline is its caller's affair.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Final

from pactgate.core.failures import ErrorCode, GatewayFailure, Kind

RETRY_AFTER_MS: Final = 1000


class _ServerQueue:
    """One server's calls. A waiting call's future becomes True when it may run, False when it has to make room."""

    __slots__ = ("in_flight", "server", "waiting")

    def __init__(self, server: str) -> None:
        self.server = server
        self.in_flight = 0
        self.waiting: OrderedDict[asyncio.Future[bool], None] = OrderedDict()


class Overload:
    """Hands out places. Every `enter` that ended well is followed by exactly one `leave`."""

    def __init__(self, *, max_in_flight: int, max_per_server: int, max_queued: int) -> None:
        self.refused_count = 0
        self._max_in_flight = max_in_flight
        self._max_per_server = max_per_server
        self._max_queued = max_queued
        self._held = 0
        self._lanes: dict[str, _ServerQueue] = {}

    def enter(self, server: str) -> Awaitable[None] | None:
        """Take a place towards a server: None when one was free, else something to wait for, which may raise a refusal."""
        lane = self._lanes.get(server)
        if lane is None:
            lane = self._lanes[server] = _ServerQueue(server)
        if lane.in_flight < self._max_per_server and self._held < self._max_in_flight:
            lane.in_flight += 1
            self._held += 1
            return None
        return self._contend(lane)

    def try_enter(self, server: str) -> bool:
        """Take a place, if one is free."""
        lane = self._lanes.get(server)
        if lane is None or lane.in_flight >= self._max_per_server or self._held >= self._max_in_flight:
            return False
        lane.in_flight += 1
        self._held += 1
        return True

    def leave(self, server: str) -> None:
        """Give the place back: to the next call waiting for this server, if there is one."""
        lane = self._lanes[server]
        self._held -= 1
        if lane.waiting:
            self._pass_on(lane)
        else:
            lane.in_flight -= 1

    def load(self) -> dict[str, tuple[int, int]]:
        """For each server with calls under way: how many run and how many wait."""
        return {
            name: (lane.in_flight, len(lane.waiting))
            for name, lane in self._lanes.items()
            if lane.in_flight or lane.waiting
        }

    @property
    def held_count(self) -> int:
        """Calls that run or wait, towards all servers."""
        return self._held

    async def _contend(self, lane: _ServerQueue) -> None:
        must_wait = lane.in_flight >= self._max_per_server
        if must_wait and len(lane.waiting) >= self._max_queued:
            self.refused_count += 1
            raise _busy(lane)
        if self._held >= self._max_in_flight:
            self._make_room(lane)
        self._held += 1
        if must_wait:
            await self._wait(lane)
        else:
            lane.in_flight += 1

    async def _wait(self, lane: _ServerQueue) -> None:
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        lane.waiting[place] = None
        try:
            may_run = await place
        except asyncio.CancelledError:
            self._give_up(lane, place)
            raise
        if not may_run:
            raise _full(lane.server)

    def _give_up(self, lane: _ServerQueue, place: asyncio.Future[bool]) -> None:
        """The caller stopped waiting; a place may have been given to it, or taken from it, a moment before."""
        if place.cancelled():
            lane.waiting.pop(place, None)
            self._held -= 1
        elif place.result():
            self.leave(lane.server)

    def _pass_on(self, lane: _ServerQueue) -> None:
        while lane.waiting:
            place, _ = lane.waiting.popitem(last=False)
            if not place.done():
                place.set_result(True)
                return
        lane.in_flight -= 1

    def _make_room(self, lane: _ServerQueue) -> None:
        """Refuse the latest call of the longest queue, if that is longer than this lane's own; else refuse this call."""
        self.refused_count += 1
        longest = max(self._lanes.values(), key=lambda other: len(other.waiting))
        while len(longest.waiting) > len(lane.waiting):
            place, _ = longest.waiting.popitem()
            if not place.done():
                place.set_result(False)
                self._held -= 1
                return
        raise _full(lane.server)


def _busy(lane: _ServerQueue) -> GatewayFailure:
    return GatewayFailure(
        Kind.OVERLOADED,
        f"{lane.server} is busy: {lane.in_flight} calls run and {len(lane.waiting)} wait. Try again in a moment.",
        server=lane.server,
        operation="queue",
        retry_after_ms=RETRY_AFTER_MS,
        details={"inFlight": lane.in_flight, "waiting": len(lane.waiting)},
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
