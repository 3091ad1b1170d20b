"""One queue for each limit: what runs out is told so, in order and once; what ends by itself is not; nothing is left behind."""

from __future__ import annotations

import asyncio

from pactgate.pipeline.deadlines import Deadlines

LIMIT_S = 5.0


class Entry:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log
        self.ended = asyncio.Event()

    def expire(self) -> None:
        self._log.append(self.name)
        self.ended.set()


async def until(entry: Entry) -> None:
    async with asyncio.timeout(LIMIT_S):
        await entry.ended.wait()


async def test_calls_run_out_in_the_order_of_their_ends() -> None:
    deadlines, log = Deadlines(), list[str]()
    late, soon, also_soon = Entry("late", log), Entry("soon", log), Entry("also soon", log)
    deadlines.add(60, late)
    deadlines.add(10, soon)
    deadlines.add(10, also_soon)
    await until(late)
    assert log == ["soon", "also soon", "late"]


async def test_a_call_has_all_of_its_time_also_when_the_one_before_it_has_ended() -> None:
    deadlines, log, loop = Deadlines(), list[str](), asyncio.get_running_loop()
    first, second = Entry("first", log), Entry("second", log)
    deadlines.add(50, first)
    began = deadlines.add(50, second)
    deadlines.remove(50, first)
    await until(second)
    assert loop.time() - began >= 0.049
    assert log == ["second"]


async def test_a_call_that_has_ended_does_not_run_out() -> None:
    deadlines, log = Deadlines(), list[str]()
    ended, waits = Entry("ended", log), Entry("waits", log)
    deadlines.add(10, ended)
    deadlines.add(20, waits)
    deadlines.remove(10, ended)
    deadlines.remove(10, ended)
    deadlines.remove(30, ended)
    await until(waits)
    assert log == ["waits"]


async def test_one_that_ends_another_while_both_run_out_is_the_only_one_told() -> None:
    deadlines, log = Deadlines(), list[str]()
    other = Entry("other", log)

    class Jealous(Entry):
        def expire(self) -> None:
            deadlines.remove(10, other)
            super().expire()

    first = Jealous("first", log)
    deadlines.add(10, first)
    deadlines.add(10, other)
    await until(first)
    later = Entry("later", log)
    deadlines.add(10, later)
    await until(later)
    assert log == ["first", "later"]


async def test_limits_callers_invent_leave_nothing_behind() -> None:
    deadlines, log = Deadlines(), list[str]()
    for limit_ms in range(1000, 3000):
        entry = Entry("never", log)
        deadlines.add(limit_ms, entry)
        deadlines.remove(limit_ms, entry)
    assert len(deadlines) <= 32
    deadlines.close()
    assert len(deadlines) == 0
    assert not log
