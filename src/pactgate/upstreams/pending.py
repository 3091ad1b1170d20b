"""Requests on their way to a server, as futures that can resume their waiter on the spot.

A coroutine that is stepped by hand (`pipeline/running_request.py`) sets `resume` on the future it waits for: the answer then goes on
from the reader's stack, without a task and without another turn of the loop. In a task the same object is an ordinary future.
Must not: know transports or what an answer means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pactgate.core.failures import GatewayFailure
from pactgate.protocol.messages import Response
from pactgate.upstreams.liveness import RequestLimit

T = TypeVar("T")


class Resumable(asyncio.Future[T]):
    """A future with one waiter. `fulfil` and `refuse` count once; later calls change nothing."""

    resume: Callable[[], None] | None = None
    """Steps the coroutine that waits; set while a coroutine without a task waits. Must not raise."""

    def fulfil(self, value: T) -> None:
        if not self.done():
            self.set_result(value)
            resume, self.resume = self.resume, None
            if resume is not None:
                resume()

    def refuse(self, failure: GatewayFailure) -> None:
        if not self.done():
            self.set_exception(failure)
            resume, self.resume = self.resume, None
            if resume is not None:
                resume()

    def abandon(self) -> None:
        """Nobody waits any more."""
        self.resume = None
        if not self.done():
            self.cancel()
        elif not self.cancelled():
            self.exception()  # retrieved here in case sending failed first, so that no warning follows


class PendingRequest(Resumable[Response]):
    """A request that waits for its answer."""

    method = ""
    limit: RequestLimit | None = None


async def in_task() -> None:
    """From here on the coroutine runs in a task: for what needs one (`asyncio.timeout`, task groups, context variables)."""
    await asyncio.sleep(0)
