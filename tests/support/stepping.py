"""A coroutine without a task, stepped by hand: what it waits for is seen, and what it ended with is noted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.pending import Resumable


class Stepped:
    """Runs until it waits. A `Resumable` it waits for goes on with it on the spot."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work
        self.awaited: Any = None
        self.told: list[Any] = []
        """The result, or the failure; never more than one."""
        self._step(lambda: work.send(None))

    @property
    def waits_on_the_spot(self) -> bool:
        return isinstance(self.awaited, Resumable)

    def cancel(self) -> None:
        if isinstance(self.awaited, Resumable):
            self.awaited.resume = None
        self._step(lambda: self._work.throw(asyncio.CancelledError()))

    async def finish(self) -> None:
        """Go on until the end in turns of the loop, for what waits for more than a `Resumable`."""
        while not self.told:
            await asyncio.sleep(0)
            if not self.told and not self.waits_on_the_spot:
                self._resume()

    def close(self) -> None:
        self._work.close()

    def _resume(self) -> None:
        self._step(lambda: self._work.send(None))

    def _step(self, take: Callable[[], Any]) -> None:
        self.awaited = None
        try:
            self.awaited = take()
        except StopIteration as end:
            self.told.append(end.value)
        except (GatewayFailure, asyncio.CancelledError) as failure:
            self.told.append(failure)
        else:
            if isinstance(self.awaited, Resumable):
                self.awaited._asyncio_future_blocking = False
                self.awaited.resume = self._resume
