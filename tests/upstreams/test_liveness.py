"""When a server is asked whether it still runs, and what counts as a sign of life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Raw

from pactgate.core.events import Event, ServerHung
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams.peer import Peer
from tests.support.eventually import elapsed, eventually
from tests.support.scripted_channel import ScriptedChannel

ANSWER_S = 0.1


class Limit:
    """A time limit that is over in `s` seconds; None stands for one that stands still because the client is asked."""

    def __init__(self, s: float | None) -> None:
        self._end = None if s is None else asyncio.get_running_loop().time() + s

    def left_s(self) -> float | None:
        return None if self._end is None else self._end - asyncio.get_running_loop().time()


class Talk:
    def __init__(self, channel: ScriptedChannel, era: Era = Era.LEGACY) -> None:
        self.channel = channel
        self.events: list[Event] = []
        self.peer = Peer("files", channel, self.events.append, {"name": "t", "version": "0"}, answer_s=ANSWER_S)
        self.peer.settle(era, LATEST_LEGACY if era is Era.LEGACY else LATEST_MODERN)

    def begin(self, limit_s: float | None) -> asyncio.Task[Any]:
        return asyncio.create_task(self.peer.send("tools/call", {"name": Raw(b'"x"')}, limit=Limit(limit_s)))

    async def give_up(self, limit_s: float | None = 0.0) -> None:
        """Begin a request and cancel it."""
        sent = len(self.channel.sent)
        asking = self.begin(limit_s)
        await self.channel.until_sent(sent + 1)
        asking.cancel()
        await asyncio.wait({asking})

    def asked(self, method: str = "ping") -> int:
        return sum(message.get("method") == method for message in self.channel.sent)

    @property
    def is_hung(self) -> bool:
        return any(isinstance(event, ServerHung) for event in self.events)


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    made = Talk(ScriptedChannel())
    await made.peer.open()
    yield made
    await made.peer.close()


async def test_a_server_that_answers_neither_a_request_nor_the_probe_is_ended_with_the_calls_it_has(talk: Talk) -> None:
    await talk.give_up()
    younger = talk.begin(60)
    await eventually(lambda: talk.channel.is_closed)
    with pytest.raises(GatewayFailure) as caught:
        await younger
    assert (caught.value.kind, caught.value.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
    assert "hangs" in caught.value.message
    assert (await talk.peer.ended()).details == {"cause": "hung"}
    assert talk.asked() == 1
    assert talk.is_hung


@pytest.mark.parametrize("era", [Era.LEGACY, Era.MODERN])
async def test_an_answer_to_the_probe_even_a_refusal_is_a_sign_of_life(era: Era) -> None:
    probe = "ping" if era is Era.LEGACY else "server/discover"

    def refuses(message: dict[str, Any]) -> Any:
        is_probe = message["method"] == probe
        return {"id": message["id"], "error": {"code": -32601, "message": "no"}} if is_probe else None

    talk = Talk(ScriptedChannel(refuses), era)
    await talk.peer.open()
    await talk.give_up()
    await eventually(lambda: talk.asked(probe) == 1)
    await elapsed(3 * ANSWER_S)
    assert talk.peer.is_open
    await talk.peer.close()


async def test_any_message_after_the_probe_is_a_sign_of_life(talk: Talk) -> None:
    await talk.give_up()
    await eventually(lambda: talk.asked() == 1)
    assert talk.peer.is_unanswered
    talk.channel.say({"method": "notifications/message", "params": {"level": "info", "data": "busy"}})
    assert not talk.peer.is_unanswered
    await elapsed(3 * ANSWER_S)
    assert talk.peer.is_open


async def test_a_server_that_may_be_busy_with_an_older_request_has_until_that_ones_limit(talk: Talk) -> None:
    older = talk.begin(5 * ANSWER_S)
    await talk.channel.until_sent(1)
    await talk.give_up()
    await elapsed(4 * ANSWER_S)
    assert talk.peer.is_open
    await eventually(lambda: talk.is_hung)
    assert talk.asked() == 1
    await asyncio.wait({older})
    assert isinstance(older.exception(), GatewayFailure)


async def test_younger_requests_do_not_excuse_a_server(talk: Talk) -> None:
    await talk.give_up()
    others = [talk.begin(60) for _ in range(5)]
    await eventually(lambda: talk.is_hung)
    await asyncio.wait(others)
    assert all(isinstance(other.exception(), GatewayFailure) for other in others)


async def test_a_client_that_gives_up_early_does_not_shorten_the_time_of_the_server(talk: Talk) -> None:
    await talk.give_up(5 * ANSWER_S)
    await elapsed(3 * ANSWER_S)
    assert talk.asked() == 0
    await eventually(lambda: talk.is_hung)


async def test_a_request_that_runs_out_is_not_held_up_by_one_that_was_given_up_early(talk: Talk) -> None:
    await talk.give_up(60)
    await talk.give_up(0)
    await eventually(lambda: talk.is_hung)


async def test_nothing_is_asked_if_a_message_came_before_the_limit(talk: Talk) -> None:
    await talk.give_up(ANSWER_S)
    talk.channel.say({"id": 1, "result": {"late": True}})
    await elapsed(3 * ANSWER_S)
    assert talk.asked() == 0


async def test_a_server_that_freezes_after_a_sign_of_life_is_asked_again(talk: Talk) -> None:
    await talk.give_up()
    await eventually(lambda: talk.asked() == 1)
    talk.channel.say({"method": "notifications/message", "params": {"level": "info", "data": "the last one"}})
    await talk.give_up()
    await eventually(lambda: talk.is_hung)
    assert talk.asked() == 2


async def test_nothing_is_asked_while_the_client_is_asked_something(talk: Talk) -> None:
    await talk.give_up(None)
    await elapsed(2 * ANSWER_S)
    assert talk.asked() == 0


async def test_many_unanswered_requests_are_one_probe(talk: Talk) -> None:
    for _ in range(20):
        await talk.give_up()
    await eventually(lambda: talk.is_hung)
    assert talk.asked() == 1


async def test_a_server_with_an_exchange_for_each_request_is_not_asked() -> None:
    talk = Talk(ScriptedChannel(answers_in_send=True))
    await talk.peer.open()

    async def waits(_frame: object) -> None:
        talk.channel.sent.append({"method": "tools/call"})
        talk.channel._news.set()
        await asyncio.get_running_loop().create_future()

    talk.channel.send = waits  # type: ignore[method-assign, assignment]
    await talk.give_up()
    await elapsed(2 * ANSWER_S)
    assert talk.asked() == 0
    await talk.peer.close()


async def test_closing_ends_a_check(talk: Talk) -> None:
    await talk.give_up()
    await eventually(lambda: talk.asked() == 1)
    await talk.peer.close()
    await elapsed(2 * ANSWER_S)
    assert not talk.is_hung
