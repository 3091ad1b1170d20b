"""Helpers that the modules of the catalog share: waiting with a limit, futures without warnings, timestamps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> None:
    """Wait until the event is set or the limit has passed. The caller does not learn which."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return


def quiet_future() -> asyncio.Future[Any]:
    """A future whose exception asyncio does not report when no task awaits it: the state of the server holds it as well."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.add_done_callback(mark_seen)
    return future


def mark_seen(outcome: asyncio.Future[Any]) -> None:
    """Mark the exception of a future as seen, so that asyncio does not report it."""
    if not outcome.cancelled():
        outcome.exception()


def utc_now() -> str:
    """The current time in the form that the requirement documents use."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
