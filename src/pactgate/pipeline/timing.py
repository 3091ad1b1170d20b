"""Notes in the context of a request what it waits for, and how long: only requests that wait pay for it.

Must not: change what is waited for, or how its failure or cancellation arrives.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pactgate.core.context import ExecutionContext

T = TypeVar("T")


async def timed(
    ctx: ExecutionContext, what: str, pending: Awaitable[T], clock: Callable[[], float] = time.monotonic
) -> T:
    """Wait, and note how long it took, however it ends."""
    began = clock()
    try:
        return await pending
    finally:
        if ctx.record is None:
            ctx.note_wait(what, clock() - began)
