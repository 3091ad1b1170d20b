"""One request on its way: a coroutine that is stepped by hand and becomes a task only when it really waits.

Most requests wait for nothing but their server. Their coroutine is driven with `send`: the bytes of the request take it to the
connection of its server, and the bytes of the answer take it back, on the stack of whoever read them. That costs about 4 us less than a
task with its future, timer and turns of the loop. When the coroutine waits for anything but a `Resumable` (a connection, a free slot,
an answer of the client), the rest of it runs in a task; it is the same coroutine. Must not: let anything raise into whoever resumes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, Final

from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Kind, Reply, WireError
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.values import Responder
from pactgate.protocol import messages
from pactgate.upstreams.pending import Resumable

Work = Coroutine[Any, Any, Reply | None]
"""Gives the reply, or None where it has answered by itself. Contains its own faults, and raises nothing but its cancellation."""


_INTERNAL: Final = Reply(
    error=WireError(messages.INTERNAL_ERROR, "Internal error.", GatewayFailure(Kind.INTERNAL, "").record())
)


class RunningRequest(Struct, eq=False):
    """Drives the coroutine of one request to its end, and tells its responder."""

    _responder: Responder
    _barrier: FaultBarrier
    _work: Work | None
    _task: asyncio.Task[Reply | None] | None = None
    _waits_for: Resumable[Any] | None = None
    _is_stepping: bool = False
    _is_cancelled: bool = False

    def cancel(self) -> None:
        """The client does not want an answer any more, or can't have one."""
        self._is_cancelled = True
        self.interrupt()

    def interrupt(self) -> None:
        """Raise `CancelledError` where the request waits now."""
        if self._work is None:
            return
        if self._task is not None:
            # Not before its first step: a task that never began could not say that it was cancelled.
            asyncio.get_running_loop().call_soon(self._task.cancel)
        elif self._is_stepping:
            asyncio.get_running_loop().call_soon(self.interrupt)
        else:
            pending, self._waits_for = self._waits_for, None
            if pending is not None:
                pending.resume = None
            self.step(asyncio.CancelledError())

    def step(self, raised: BaseException | None = None) -> None:
        """Begin, or go on where the request waited."""
        work = self._work
        assert work is not None, "nothing resumes a request that has ended"
        self._is_stepping = True
        self._waits_for = None
        try:
            awaited = work.send(None) if raised is None else work.throw(raised)
        except StopIteration as end:
            self._end(end.value)
        except asyncio.CancelledError:
            self._end(None)
        except Exception as fault:  # noqa: BLE001 - the work contains its own faults; this is for a fault in that
            self._barrier.report("kernel", fault)
            self._end(_INTERNAL)
        else:
            if isinstance(awaited, Resumable):
                awaited._asyncio_future_blocking = False
                awaited.resume = self.step
                self._waits_for = awaited
            else:
                self._wait_in_task(awaited)
        finally:
            self._is_stepping = False

    def _wait_in_task(self, awaited: Any) -> None:
        assert self._work is not None, "a request that waits has not ended"
        self._task = asyncio.get_running_loop().create_task(_finish(self._work, awaited))
        self._task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Reply | None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            self._barrier.report("kernel", task.exception() or RuntimeError())
            self._end(_INTERNAL)
        else:
            self._end(None if task.cancelled() else task.result())

    def _end(self, reply: Reply | None) -> None:
        self._work = None
        responder = self._responder
        try:
            responder.done(None if self._is_cancelled else reply)
        except Exception as fault:  # noqa: BLE001 - a fault of the writer stays with its request
            self._barrier.report("reply", fault)
            self._barrier.run("reply", responder.broken)


async def _finish(work: Work, awaited: Any) -> Reply | None:
    """The rest of a coroutine that was stepped by hand and has yielded `awaited`."""
    return await _rest_of(work, awaited)


@coroutine
def _rest_of(work: Work, awaited: Any) -> Generator[Any, Any, Reply | None]:
    try:
        while True:
            try:
                given = yield awaited
            except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the work decides what becomes of it
                awaited = work.throw(raised)
            else:
                awaited = work.send(given)
    except StopIteration as end:
        reply: Reply | None = end.value
        return reply
