"""Small ways to wait that the catalog shares: events with a limit, outcomes nobody may be waiting for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> None:
    """Until the event, or the limit; which of the two does not matter to the caller."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return


def quiet_future() -> asyncio.Future[Any]:
    """A future whose failure is no warning when nobody asks: it is in the state all the same."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.add_done_callback(_retrieve)
    return future


def _retrieve(outcome: asyncio.Future[Any]) -> None:
    if not outcome.cancelled():
        outcome.exception()


def utc_now() -> str:
    """The time of day for people, as the requirement documents spell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
