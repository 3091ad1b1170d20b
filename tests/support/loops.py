"""Runs an async test on asyncio's own loop and on uvloop, each on a loop that ends with the test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

LIMIT_S = 30

uvloop.new_event_loop().close()  # its first loop opens descriptors for the whole process, which no test should be blamed for


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    def run(*, new_loop: Callable[[], asyncio.AbstractEventLoop], **given: Any) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(asyncio.wait_for(test(**given), LIMIT_S))

    wanted = [
        *inspect.signature(test).parameters.values(),
        inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY),
    ]
    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.__signature__ = inspect.Signature(wanted)  # type: ignore[attr-defined]
    on_each = pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    parametrised: Callable[..., None] = on_each(run)
    return parametrised
