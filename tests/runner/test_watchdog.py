"""A loop that does not turn is noticed; one that does is left alone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pactgate.runner.watchdog import Watchdog


async def test_a_blocked_loop_is_told_with_what_it_was_doing(capsys: pytest.CaptureFixture[str]) -> None:
    stalled = threading.Event()
    watchdog = Watchdog(stalled.set, stall_s=0.05)
    watchdog.start()

    def hold_everything_up() -> bool:
        return stalled.wait(5)

    assert hold_everything_up()
    assert "hold_everything_up" in capsys.readouterr().err


async def test_a_loop_that_turns_is_left_alone() -> None:
    stalled = threading.Event()
    watchdog = Watchdog(stalled.set, stall_s=1)
    watchdog.start()
    for _ in range(100):
        await asyncio.sleep(0)
    watchdog.stop()
    assert not stalled.is_set()
    await asyncio.to_thread(watchdog._thread.join, 5)
    assert not watchdog._thread.is_alive()


def test_a_closed_loop_ends_the_watch() -> None:
    made: list[Watchdog] = []

    async def make() -> None:
        made.append(Watchdog(lambda: None, stall_s=1))

    asyncio.run(make())
    made[0]._watch()
