"""Decides whether a server that left a request unanswered still runs.

A request that has used up its time limit starts the check: one probe (`ping`, or `server/discover` in the modern era). Any message of the
server, not only the answer to the probe, is a sign of life. A server that sends nothing for `answer_s` hangs, unless a request older than
the unanswered one is still within its own time limit: a server that works on one request at a time may be busy with the older one.
Must not: repeat a request, count a client's own shorter limit against the server, or run more than one check at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

from pactgate.core.failures import GatewayFailure, Kind

ANSWER_S: Final = 5.0


class RequestLimit(Protocol):
    """The time limit of one request."""

    def left_s(self) -> float | None:
        """Seconds until the operator's limit, negative when it is over. None while the client is asked something."""


class ProbedPeer(Protocol):
    """What the check needs of a session."""

    received_count: int
    """Messages of the server so far."""

    def probe(self) -> Awaitable[bytes]:
        """Ask the server something that every server answers at once."""

    def is_busy_before(self, id_: int) -> bool:
        """Whether a request that was sent before this one is still within its time limit."""

    async def end_hung(self) -> None:
        """End the connection to a server that hangs."""


class LivenessCheck:
    """The check of one session."""

    def __init__(self, peer: ProbedPeer, loop: asyncio.AbstractEventLoop, answer_s: float) -> None:
        self.answer_s = answer_s
        self._peer = peer
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._received_count = 0
        self._task: asyncio.Task[None] | None = None
        self._next: int | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether the server was asked and has sent nothing since."""
        return self._task is not None and self._peer.received_count == self._received_count

    def doubt(self, id_: int, left_s: float = 0.0) -> None:
        """A request ended without an answer, `left_s` before its time limit. If no message comes until then, the check begins."""
        if self._task is not None:
            self._next = id_
            return
        due = self._loop.time() + max(0.0, left_s)
        if self._timer is not None:
            if self._received_count == self._peer.received_count and self._due <= due:
                return
            self._timer.cancel()
        self._received_count, self._due = self._peer.received_count, due
        self._timer = self._loop.call_at(due, self._begin, id_)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        task = self._task
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task})

    def _begin(self, id_: int) -> None:
        self._timer = None
        if self._received_count == self._peer.received_count:
            self._task = self._loop.create_task(self._check(id_), name="liveness check")

    async def _check(self, id_: int) -> None:
        try:
            if not await self._is_alive(id_):
                await self._peer.end_hung()
                return
        finally:
            self._task = None
        if self._next is not None:
            id_, self._next = self._next, None
            self.doubt(id_)

    async def _is_alive(self, id_: int) -> bool:
        probe = self._loop.create_task(self._ask())
        try:
            while True:
                is_busy = self._peer.is_busy_before(id_)
                await asyncio.wait({probe}, timeout=self.answer_s)
                if probe.done() or self._received_count != self._peer.received_count:
                    return True
                if not is_busy:
                    return False
        finally:
            probe.cancel()

    async def _ask(self) -> None:
        try:
            await self._peer.probe()
        except GatewayFailure:
            return  # a refusal is an answer, and a lost connection is noticed elsewhere


def hung_failure(server: str, silent_s: float) -> GatewayFailure:
    """What the calls with a hung server get. Each of them may have run."""
    message = f"{server} hangs: it left a request and then a probe unanswered, and sent nothing for {silent_s:g} s"
    return GatewayFailure(Kind.CONNECTION_LOST, message, server=server, details={"cause": "hung"})
