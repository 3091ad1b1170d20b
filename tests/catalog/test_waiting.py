"""Waiting with a limit, and outcomes nobody waits for."""

from __future__ import annotations

import asyncio
import gc
from datetime import datetime

from pactgate.catalog.waiting import quiet_future, utc_now, wait_for


async def test_a_wait_ends_with_the_event_or_the_limit() -> None:
    event = asyncio.Event()
    await wait_for(event, 0.001)
    event.set()
    await wait_for(event, None)


async def test_a_failure_nobody_asks_for_is_no_warning() -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    quiet_future().set_exception(ValueError("nobody looks"))
    quiet_future().cancel()
    await asyncio.sleep(0)
    gc.collect()
    assert problems == []


def test_times_of_day_carry_their_zone() -> None:
    assert datetime.fromisoformat(utc_now()).tzinfo is not None
