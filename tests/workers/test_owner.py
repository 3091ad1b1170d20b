"""The owner with workers that only talk: what it carries between them, and what it does when one is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from pactgate.config.model import Config
from pactgate.core.events import WorkerEnded
from pactgate.core.failures import GatewayFailure
from pactgate.pipeline.live_configuration import Standing
from pactgate.workers import listening
from pactgate.workers.owner import Owner
from pactgate.workers.parcels import pack
from tests.support.children import children, descriptors
from tests.support.facing import until
from tests.support.servers import scripted
from tests.workers.test_post import STUB


class Owned:
    def __init__(self, manners: str) -> None:
        self.events: list[Any] = []
        self.told: list[tuple[str, int, Any]] = []
        sockets = listening.bind("127.0.0.1", 0)
        self.owner = Owner(
            Config(),
            sockets,
            2,
            command=(sys.executable, str(STUB), manners),
            token="made for this run",
            emit=self.events.append,
            on_told=lambda name, index, body: self.told.append((name, index, body)),
        )

    async def ask(self, worker: int, name: str, body: Any = None) -> Any:
        """Ask a worker something."""
        link = self.owner._posts[worker].link
        assert link is not None
        return (await link.ask(name, body, timeout_s=5))[0]

    async def seen(self, worker: int) -> Any:
        return await self.ask(worker, "seen")


@asynccontextmanager
async def owned(manners: str = "obedient", *, is_ready: bool = True) -> AsyncIterator[Owned]:
    before = descriptors(), children()
    one = Owned(manners)
    one.owner.start()
    try:
        if is_ready:
            await asyncio.wait_for(one.owner.ready(), 10)
        yield one
    finally:
        await one.owner.stop()
    assert (descriptors(), children()) == before


async def test_each_worker_is_told_its_place_and_given_what_it_needs() -> None:
    async with owned() as one:
        for index in range(2):
            seen = await one.seen(index)
            hello = seen["hello"]
            assert hello["place"] == [index, 2]
            assert hello["token"] == "made for this run"
            assert seen["fds"] == 1 + 2 + 1 + 1, "its inbox, every outbox, the epochs, one listening socket"


async def test_what_one_asks_of_the_others_is_asked_of_all_others() -> None:
    async with owned() as one:
        said, _ = await one.ask(0, "ask", ("others", ("anything", 5, 2.0)))
        assert said == [[1, ["anything", one.owner.pids[1]]]]
        facts, _ = await one.ask(1, "ask", ("others", ("facts", None, 2.0)))
        assert [index for index, _ in facts] == [0, -1]
        assert b"pactgate_worker_restarts_total 0" in facts[1][1]["metrics"]


async def test_a_dead_worker_is_replaced_and_the_others_know_meanwhile() -> None:
    async with owned() as one:
        [_, before] = one.owner.pids
        os.kill(before, signal.SIGKILL)
        await until(lambda: one.owner.pids[1] != before and one.owner._posts[1].is_ready)
        [ended] = [event for event in one.events if isinstance(event, WorkerEnded)]
        assert (ended.worker, ended.pid, ended.reason) == (2, before, "was ended by SIGKILL")
        assert one.owner.restarts == 1
        assert (await one.seen(0))["notices"][-2:] == [["away", 1], ["back", 1]]


def standing(**settings: Any) -> Standing:
    changed = msgspec.structs.replace(Config(), **settings)
    return Standing(changed, Config(), {"naming": ("naming",)})


async def test_what_one_has_changed_all_take_over_and_so_does_whoever_starts_later() -> None:
    async with owned() as one:
        new = pack(standing(file="other"))
        assert await one.ask(0, "ask", ("agree", new)) == [True, 0]
        os.kill(one.owner.pids[1], signal.SIGKILL)
        await until(lambda: one.owner.restarts == 1 and one.owner._posts[1].is_ready)
        hello = (await one.seen(1))["hello"]
        assert hello["file"] == "other"
        assert hello["unwritten"] == ["naming"]


async def test_a_worker_that_does_not_take_over_a_change_is_replaced_by_one_that_begins_with_it() -> None:
    async with owned("stubborn") as one:
        await one.ask(0, "ask", ("agree", pack(standing(file="other"))))
        await until(lambda: one.owner.restarts == 1 and one.owner._posts[1].is_ready)
        assert (await one.seen(1))["hello"]["file"] == "other"


async def test_one_worker_changes_something_at_a_time_and_a_dead_one_does_not_hold_up_the_others() -> None:
    async with owned() as one:
        await one.ask(0, "ask", ("turn", None))
        waiting = asyncio.create_task(one.ask(1, "ask", ("turn", None)))
        await one.seen(1)
        assert not waiting.done()
        await one.ask(0, "tell", ("turn_over", None))
        assert await asyncio.wait_for(waiting, 5) == [True, 0]
        again = asyncio.create_task(one.ask(0, "ask", ("turn", None)))
        os.kill(one.owner.pids[1], signal.SIGKILL)
        assert await asyncio.wait_for(again, 5) == [True, 0]


async def test_a_reload_is_one_worker_s_affair_and_the_next_one_s_if_that_is_gone() -> None:
    async with owned() as one:
        await asyncio.wait_for(one.owner.reload(Config()), 5)
        one.owner._posts[0].is_ready = False
        await asyncio.wait_for(one.owner.reload(Config(), only_if_news=True), 5)


async def test_children_are_lent_and_a_program_that_can_t_be_started_is_a_failure() -> None:
    async with owned() as one:
        facts, fds = await one.ask(0, "ask", ("lend", pack(scripted())))
        assert fds == 1
        assert facts["pid"] > 0
        broken = msgspec.structs.replace(scripted(), command="no-such-program-anywhere")
        with pytest.raises(GatewayFailure, match="was not found"):
            await one.ask(0, "ask", ("lend", pack(broken)))


async def test_a_gateway_whose_workers_can_t_start_says_why() -> None:
    async with owned("failing", is_ready=False) as one:
        await until(lambda: bool(one.told))
        assert one.told[0][0::2] == ("failed", "no disk")
    async with owned("dead", is_ready=False) as one:
        await until(lambda: bool(one.told))
        assert "can't be started: it ended with exit code 3" in one.told[0][2]
