"""Waits are noted however they end."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.pipeline.timing import timed
from tests.support.callers import context
from tests.support.facing import Clock


async def test_a_wait_is_noted_with_its_time_also_when_it_fails_or_is_cancelled() -> None:
    clock, ctx = Clock(), context()

    async def pending(failure: BaseException | None) -> int:
        clock.now += 2
        if failure is not None:
            raise failure
        return 7

    assert await timed(ctx, "queue", pending(None), clock) == 7
    for failure in (ValueError("no"), asyncio.CancelledError()):
        with pytest.raises(type(failure)):
            await timed(ctx, "rate_limit", pending(failure), clock)
    record = ctx.seal(10)
    assert record.waits == (("queue", 2000.0), ("rate_limit", 2000.0), ("rate_limit", 2000.0))
    assert (record.waited_ms("rate_limit"), record.overhead_ms) == (4000.0, 4000.0)
