"""Two callers with different answers in flight on one upstream: what one says never reaches the other's call."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pactgate.config.server_settings import ServerConfig
from pactgate.core.values import Caller
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.asking import asker, asking
from tests.support.asking_http import AskingHttp
from tests.support.scripted_http import ScriptedHttp
from tests.support.servers import UNLIMITED

TRIES = 250
"""Of each of the two callers."""
AT_ONCE = 25
FORM: dict[str, Any] = {"elicitation": {}}


def name(who: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": who}}


async def ask_modern(inside: Inside, who: Caller, nonce: str, answer: dict[str, Any]) -> Any:
    """One call with its round, answered a few turns of the loop later than it was asked."""
    first = await inside.call("asking.ask", {"nonce": nonce}, who=who)
    round_ = json.loads(first.result or b"")
    if round_.get("resultType") != "input_required":
        return json.loads(round_["content"][0]["text"])
    for _ in range(len(nonce)):
        await asyncio.sleep(0)
    more = {"inputResponses": dict.fromkeys(round_["inputRequests"], answer), "requestState": round_["requestState"]}
    reply = await inside.call("asking.ask", {"nonce": nonce}, who=who, **more)
    return json.loads(json.loads(reply.result or b"")["content"][0]["text"])


async def ask_legacy(inside: Inside, who: Caller, nonce: str) -> Any:
    reply = await inside.call("asking.ask", {"nonce": nonce}, who=who)
    return json.loads(json.loads(reply.result or b"")["content"][0]["text"])


def at_url(server: ScriptedHttp, **settings: Any) -> ServerConfig:
    return ServerConfig(id="asking", url=server.url, era="legacy", **settings)


async def many(make: Any) -> list[tuple[str, Any]]:
    """What both callers heard, many calls of each in flight at any time."""
    heard: list[tuple[str, Any]] = []
    for start in range(0, TRIES, AT_ONCE):
        batch = [(who, f"{who}{number}") for number in range(start, start + AT_ONCE) for who in ("ada", "eve")]
        answers = await asyncio.gather(*(make(who, nonce) for who, nonce in batch))
        heard += [(nonce, answer) for (_, nonce), answer in zip(batch, answers, strict=True)]
    return heard


async def test_on_one_http_session_shared_by_two_modern_callers() -> None:
    upstream = AskingHttp()
    async with ScriptedHttp(upstream) as server, open_gateway(at_url(server), rate_limits=UNLIMITED) as inside:
        callers = {who: asker(Era.MODERN, capabilities=FORM) for who in ("ada", "eve")}
        heard = await many(lambda who, nonce: ask_modern(inside, callers[who], nonce, name(nonce)))
    assert len(heard) == 2 * TRIES
    assert [answer for _, answer in heard] == [{"nonce": nonce, "said": name(nonce)} for nonce, _ in heard]
    assert upstream.capabilities == [{}, FORM]  # the shared session, and one for both callers
    assert upstream.open_at_once > 2


async def test_on_one_http_server_by_two_legacy_callers() -> None:
    upstream = AskingHttp()
    async with ScriptedHttp(upstream) as server, open_gateway(at_url(server), rate_limits=UNLIMITED) as inside:

        async def make(who: str, nonce: str) -> Any:
            answering = asker(answer=lambda method, params: name(nonce), session=who, capabilities=FORM)
            return await ask_legacy(inside, answering, nonce)

        heard = await many(make)
    assert [answer for _, answer in heard] == [{"nonce": nonce, "said": name(nonce)} for nonce, _ in heard]
    assert upstream.capabilities == [{}, FORM, FORM]
    assert len(upstream.ended_sessions) == 3


async def test_on_a_program_with_a_process_for_each_session() -> None:
    async with open_gateway(asking(), rate_limits=UNLIMITED) as inside:

        async def make(who: str, nonce: str) -> Any:
            answering = asker(answer=lambda method, params: name(who), session=who, capabilities=FORM)
            return await ask_legacy(inside, answering, nonce)

        heard = await many(make)
    for nonce, answer in heard:
        assert answer == [name(nonce.rstrip("0123456789"))]


async def test_where_a_question_does_not_say_whose_it_is_nobody_is_asked_rather_than_somebody_else() -> None:
    upstream = AskingHttp(on_listener=True)
    async with ScriptedHttp(upstream) as server, open_gateway(at_url(server), rate_limits=UNLIMITED) as inside:
        callers = {who: asker(Era.MODERN, capabilities=FORM) for who in ("ada", "eve")}
        alone = await ask_modern(inside, callers["ada"], "ada", name("ada"))
        assert alone == {"nonce": "ada", "said": name("ada")}
        heard = await asyncio.gather(
            *(
                ask_modern(inside, callers[who], f"{who}{number}", name(f"{who}{number}"))
                for number in range(10)
                for who in callers
            )
        )
    for answer in heard:
        assert answer["said"] in (name(answer["nonce"]), {"error": -32600}), answer
    assert upstream.refusals
