"""The conversation of two processes, here of two ends in one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.workers import link as family
from pactgate.workers import packets
from pactgate.workers.link import Fds, Link
from tests.support.children import descriptors
from tests.support.loops import on_both_loops


class End:
    """One end, and what it heard."""

    def __init__(self, socket_: Any) -> None:
        self.heard: list[tuple[str, Any, Fds]] = []
        self.news = asyncio.Event()
        self.ended = asyncio.Event()
        self.link = Link(socket_, self._notice, self._question, self.ended.set)

    def _notice(self, name: str, body: Any, fds: Fds) -> None:
        self.heard.append((name, body, fds))
        self.news.set()

    async def _question(self, name: str, body: Any) -> tuple[Any, Fds]:
        if name == "refuse":
            raise GatewayFailure(Kind.CONFLICT, "not now", details={"why": ["a", 1]})
        if name == "wait":
            await asyncio.Event().wait()
        if name == "pipe":
            reading, writing = os.pipe()
            os.write(writing, b"inside")
            os.close(writing)
            return "a pipe", (reading,)
        return [name, body], ()


@asynccontextmanager
async def two_ends() -> AsyncIterator[tuple[End, End]]:
    ours, theirs = (End(one) for one in packets.pair())
    try:
        yield ours, theirs
    finally:
        ours.link.close()
        theirs.link.close()
        await asyncio.sleep(0)


@on_both_loops
async def test_questions_are_answered_in_any_order_and_failures_come_back_as_they_were() -> None:
    async with two_ends() as (ours, theirs):
        both = await asyncio.gather(ours.link.ask("a", 1, timeout_s=5), theirs.link.ask("b", None, timeout_s=5))
        assert both == [(["a", 1], ()), (["b", None], ())]
        with pytest.raises(GatewayFailure) as refused:
            await ours.link.ask("refuse", timeout_s=5)
        failure = refused.value
        assert (failure.kind, failure.message, failure.details) == (Kind.CONFLICT, "not now", {"why": ["a", 1]})


@on_both_loops
async def test_an_answer_can_bring_a_descriptor_and_none_is_left_behind() -> None:
    before = descriptors()
    async with two_ends() as (ours, _):
        said, [reading] = await ours.link.ask("pipe", timeout_s=5)
        assert said == "a pipe"
        assert os.read(reading, 100) == b"inside"
        os.close(reading)
    assert descriptors() == before


@on_both_loops
async def test_a_question_nobody_answers_ends_in_time() -> None:
    async with two_ends() as (ours, _):
        with pytest.raises(GatewayFailure, match="no answer to wait within"):
            await ours.link.ask("wait", timeout_s=0.01)


@on_both_loops
async def test_the_end_of_one_side_is_told_once_and_ends_what_was_asked() -> None:
    async with two_ends() as (ours, theirs):
        asked = asyncio.create_task(ours.link.ask("wait", timeout_s=5))
        await asyncio.sleep(0)
        theirs.link.close()
        with pytest.raises(GatewayFailure, match="is gone"):
            await asked
        assert ours.ended.is_set()
        assert not theirs.ended.is_set()
        with pytest.raises(GatewayFailure, match="is gone"):
            ours.link.tell("too late")


@on_both_loops
async def test_what_does_not_fit_at_once_is_sent_later_in_order() -> None:
    async with two_ends() as (ours, theirs):
        for number in range(500):
            ours.link.tell("note", [number, "x" * 2000])
        async with asyncio.timeout(5):
            while len(theirs.heard) < 500:
                theirs.news.clear()
                await theirs.news.wait()
        assert [body[0] for _, body, _ in theirs.heard] == list(range(500))


async def test_an_end_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "MAX_UNSENT", 5)
    sender, deaf = packets.pair()
    with deaf:
        end = End(sender)
        while end.link.is_open:
            end.link.tell("note", "x" * 10_000)
        assert end.ended.is_set()
