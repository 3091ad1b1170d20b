"""Waits, bounded, for what no event tells: another process writes a file, a loop gets round to something.

A poll every few milliseconds leaves the processor to whoever is waited for; a loop around `sleep(0)` takes it away from them.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from itertools import chain, repeat
from typing import Any, TypeVar, cast, overload

WITHIN_S = 10.0
PAUSES_S = (0, 0, 0.001, 0.002, 0.005)
PAUSE_S = 0.01
T = TypeVar("T")


@overload
async def eventually(condition: Callable[[], Coroutine[Any, Any, T]], *, within_s: float = WITHIN_S) -> T: ...
@overload
async def eventually(condition: Callable[[], T], *, within_s: float = WITHIN_S) -> T: ...
async def eventually(condition: Callable[[], T | Awaitable[T]], *, within_s: float = WITHIN_S) -> T:
    """The first true value of the condition, which may be a coroutine function. Fails when there is none in time."""
    end = time.monotonic() + within_s
    for pause_s in chain(PAUSES_S, repeat(PAUSE_S)):
        found = condition()
        value = cast("T", await found if inspect.isawaitable(found) else found)
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(_too_late(condition, within_s))
        await asyncio.sleep(pause_s)
    raise AssertionError("unreachable")


async def elapsed(seconds: float) -> None:
    """Let time pass: for tests that something does not happen within it, or takes at least as long."""
    await asyncio.sleep(seconds)


def eventually_blocking(condition: Callable[[], T], *, within_s: float = WITHIN_S) -> T:
    """The same for a test without an event loop."""
    end, never = time.monotonic() + within_s, threading.Event()
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(_too_late(condition, within_s))
        never.wait(PAUSE_S)
    return value


def _too_late(condition: Callable[[], Any], within_s: float) -> str:
    code = getattr(condition, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(condition)
    return f"not within {within_s:g} s: {where}"
