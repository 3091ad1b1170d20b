"""A place for a worker: a process is put there, spoken to, and noticed when it is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pactgate.workers.link import Fds
from pactgate.workers.parcels import pack
from pactgate.workers.post import FIRST_PAUSE_S, LONGEST_PAUSE_S, Post
from tests.support.children import children, descriptors

STUB = Path(__file__).parents[1] / "support" / "stub_worker.py"


class Watched:
    def __init__(self, manners: str = "obedient") -> None:
        self.told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.post = Post(
            0,
            (sys.executable, str(STUB), manners),
            on_notice=self._notice,
            on_question=self._question,
            on_end=lambda post: self.ended.set(),
        )

    def _notice(self, post: Post, name: str, body: Any, fds: Fds) -> None:
        self.told.put_nowait((name, body))

    async def _question(self, post: Post, name: str, body: Any) -> tuple[Any, Fds]:
        return [name, body], ()


@asynccontextmanager
async def watched(manners: str = "obedient") -> AsyncIterator[Watched]:
    before = descriptors(), children()
    one = Watched(manners)
    reading, writing = os.pipe()
    one.post.start(pack({"you": "are"}), (reading,))
    os.close(reading)
    os.close(writing)
    try:
        yield one
    finally:
        one.post.signal(signal.SIGKILL)
        await asyncio.wait_for(one.post.gone.wait(), 5)
        await one.post.reap()
        one.post.close()
    assert (descriptors(), children()) == before


async def test_a_worker_is_told_what_it_is_and_can_ask() -> None:
    async with watched() as one:
        assert await asyncio.wait_for(one.told.get(), 5) == ("ready", None)
        assert one.post.link is not None
        seen, _ = await one.post.link.ask("seen", timeout_s=5)
        assert (seen["hello"], seen["fds"]) == ({"you": "are"}, 1)
        answer, _ = await one.post.link.ask("ask", ("what", 1), timeout_s=5)
        assert answer == [["what", 1], 0]
        assert os.getpgid(one.post.pid) != os.getpgid(0), "a terminal's signals are not for it"


async def test_an_end_is_noticed_and_explained() -> None:
    async with watched() as one:
        await asyncio.wait_for(one.told.get(), 5)
        one.post.signal(signal.SIGKILL)
        await asyncio.wait_for(one.ended.wait(), 5)
        assert await one.post.reap() == "was ended by SIGKILL"
    async with watched("dead") as one:
        await asyncio.wait_for(one.ended.wait(), 5)
        one.post.last_words = "so it goes"
        assert await one.post.reap() == "ended with exit code 3: so it goes"


async def test_pauses_grow_while_it_does_not_last_and_are_bounded() -> None:
    async with watched() as one:
        await asyncio.wait_for(one.told.get(), 5)
        pauses = [one.post.pause_s() for _ in range(20)]
        assert pauses[0] == FIRST_PAUSE_S
        assert pauses == sorted(pauses)
        assert pauses[-1] == LONGEST_PAUSE_S
        one.post._began_at -= 1000
        assert one.post.pause_s() == FIRST_PAUSE_S
