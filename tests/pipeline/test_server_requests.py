"""What a server asks back reaches the caller of the very call, in the words of that caller's era, and the answer reaches the server."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Timeouts
from pactgate.core.failures import Reply
from pactgate.core.values import Caller
from pactgate.protocol.messages import ErrorReply, Notification
from pactgate.protocol.versions import LATEST_LEGACY, Era
from pactgate.upstreams.server_request_router import MAX_OF_A_CALL
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.asking import ALL, SAID, Client, asker, asking, logged, person_thinks
from tests.support.facing import until

MESSAGE = {"role": "assistant", "model": "none", "content": {"type": "text", "text": "word"}}
ROOTS = {"roots": [{"uri": "file:///a"}]}
KINDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("elicitation/create", {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}, SAID),
    ("elicitation/create", {"mode": "url", "message": "Go", "url": "https://a.example", "elicitationId": "e1"}, SAID),
    ("sampling/createMessage", {"messages": [], "maxTokens": 1}, MESSAGE),
    ("roots/list", {}, ROOTS),
]


def said(reply: Reply) -> Any:
    return json.loads(text_of(reply))


def body(reply: Reply) -> dict[str, Any]:
    assert reply.result is not None, reply.error
    decoded: dict[str, Any] = json.loads(reply.result)
    return decoded


async def never(method: str, params: Any) -> Any:
    await asyncio.Event().wait()


def client(who: Caller) -> Client:
    return cast(Client, who.channel)


async def answer_rounds(
    inside: Inside, who: Caller, name: str, arguments: dict[str, Any], answer: Any, rounds: list[dict[str, Any]]
) -> Reply:
    """Call as a modern caller that answers every question with the same, and writes the rounds down."""
    more: dict[str, Any] = {}
    while True:
        reply = await inside.call(name, arguments, who=who, **more)
        result = body(reply)
        if result["resultType"] != "input_required":
            return reply
        rounds.append(result)
        more = {"inputResponses": dict.fromkeys(result.get("inputRequests", {}), answer)}
        if "requestState" in result:
            more["requestState"] = result["requestState"]


# Every kind over every pairing.


def _always(answer: Any, method: str, params: Any) -> Any:
    return answer


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
@pytest.mark.parametrize("era", list(Era))
async def test_each_kind_of_question_is_asked_and_answered_over_every_pairing(upstream: str, era: Era) -> None:
    async with open_gateway(asking(era=upstream)) as inside:
        for method, params, answer in KINDS:
            who = asker(era, partial(_always, answer))
            arguments = {"method": method, "params": params}
            if era is Era.LEGACY:
                assert said(await inside.call("asking.ask", arguments, who=who)) == [answer]
                assert client(who).asked == [(method, params)]
                continue
            rounds: list[dict[str, Any]] = []
            assert said(await answer_rounds(inside, who, "asking.ask", arguments, answer, rounds)) == [answer]
            (question,) = rounds[0]["inputRequests"].values()
            expected = dict(params)
            if upstream == "legacy":
                expected.pop("elicitationId", None)  # which modern revisions do not have
            assert question["method"] == method
            assert question.get("params", {}) == expected


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
@pytest.mark.parametrize("era", list(Era))
@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_prompts_and_resources_may_ask_too(upstream: str, era: Era, method: str) -> None:
    who = asker(era, scope="asking")
    params: dict[str, Any] = {"name": "ask"} if method == "prompts/get" else {"uri": "ask:ask"}
    async with open_gateway(asking(era=upstream)) as inside:
        await inside.call("caps", who=who)  # by then everything is listed
        reply = await inside.ask(method, who=who, params=params)
        if era is Era.MODERN:
            round_ = body(reply)
            assert round_["resultType"] == "input_required"
            answers = dict.fromkeys(round_["inputRequests"], SAID)
            more = {"inputResponses": answers, "requestState": round_["requestState"]}
            reply = await inside.ask(method, who=who, params={**params, **more})
        text = json.dumps(body(reply))
    assert "Ada" in text


# What the server is told of the caller.


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
async def test_a_server_is_told_the_capabilities_of_its_caller_and_no_others(upstream: str) -> None:
    extensions: dict[str, Any] = {"com.example/x": {}, "io.modelcontextprotocol/tasks": {}}
    declared = {**ALL, "experimental": {"y": {}}, "extensions": extensions, "tasks": {}}
    async with open_gateway(asking(era=upstream)) as inside:
        for era in Era:
            told = said(await inside.call("asking.caps", who=asker(era, capabilities=declared)))
            changes = {"listChanged": True} if upstream == "legacy" else {}
            assert told == {**ALL, "roots": changes, "extensions": {"com.example/x": {}}}
            assert said(await inside.call("asking.caps", who=asker(era, capabilities={}))) == {}
            form: dict[str, Any] = {"elicitation": {}}
            assert said(await inside.call("asking.caps", who=asker(era, capabilities=form))) == form


async def test_an_older_callers_capabilities_mean_what_its_revision_gave_them() -> None:
    async with open_gateway(asking(era="modern")) as inside:
        june = asker(capabilities=ALL, version="2025-06-18")
        assert said(await inside.call("asking.caps", who=june)) == {"elicitation": {}, "sampling": {}, "roots": {}}
        first = asker(capabilities=ALL, version="2024-11-05")
        assert said(await inside.call("asking.caps", who=first)) == {"sampling": {}, "roots": {}}


async def test_a_caller_without_a_way_to_be_asked_is_not_announced_as_one() -> None:
    who = asker()
    client(who).can_ask = False
    async with open_gateway(asking(era="modern")) as inside:
        assert said(await inside.call("asking.caps", who=who)) == {}


async def test_on_a_shared_program_nobody_is_asked() -> None:
    async with open_gateway(asking(isolation=None)) as inside:
        assert said(await inside.call("asking.caps", who=asker())) == {}
        (refused,) = said(await inside.call("asking.ask", who=(who := asker())))
    assert refused["code"] == -32601
    assert client(who).asked == []


# Legacy to legacy.


async def test_a_callers_refusal_reaches_the_server_as_the_caller_said_it() -> None:
    refusal = ErrorReply(None, -1, "User rejected", b'{"a":1}')
    who = asker(answer=lambda method, params: refusal)
    async with open_gateway(asking()) as inside:
        answers = said(await inside.call("asking.ask", {"method": "roots/list", "params": {}}, who=who))
    assert answers == [{"code": -1, "message": "User rejected", "data": {"a": 1}}]


@pytest.mark.parametrize("era", list(Era))
async def test_what_the_caller_did_not_declare_is_refused_in_its_name_at_once(era: Era) -> None:
    who = asker(era, capabilities={"elicitation": {}})
    async with open_gateway(asking()) as inside:
        for params, code in (
            ({"method": "sampling/createMessage", "params": {}}, -32601),
            ({"method": "roots/list", "params": {}}, -32601),
            ({"method": "tasks/get", "params": {}}, -32601),
            ({"params": {"mode": "url", "url": "https://a.example", "message": ""}}, -32602),
        ):
            (refused,) = said(await inside.call("asking.ask", params, who=who))
            assert refused["code"] == code
    assert client(who).asked == []


async def test_a_server_that_asks_a_thousand_times_is_answered_a_hundred_times() -> None:
    who = asker()
    async with open_gateway(asking()) as inside:
        answers = said(await inside.call("asking.ask", {"times": 1000}, who=who))
        again = said(await inside.call("asking.ask", {"times": 1}, who=who))
    assert len(client(who).asked) == MAX_OF_A_CALL + 1
    assert answers[:MAX_OF_A_CALL] == [SAID] * MAX_OF_A_CALL
    assert all("at most" in answer["message"] for answer in answers[MAX_OF_A_CALL:])
    assert len(answers) == 1000
    assert again == [SAID]


@pytest.mark.parametrize("era", list(Era))
async def test_a_question_outside_any_call_is_refused_and_nobody_asked(era: Era, tmp_path: Path) -> None:
    log, who = tmp_path / "log", asker(era)
    async with open_gateway(asking(log=log)) as inside:
        assert said(await inside.call("asking.later", who=who)) == "soon"
        await until(lambda: any("error" in entry for entry in logged(log)))
        (refusal,) = [entry["error"] for entry in logged(log) if "error" in entry]
    assert refusal["code"] == -32601
    assert "no call is under way" in refusal["message"]
    assert client(who).asked == []


async def test_a_caller_that_vanishes_while_it_is_asked_ends_the_question_and_the_call(tmp_path: Path) -> None:
    log, who = tmp_path / "log", asker(answer=never)
    async with open_gateway(asking(log=log)) as inside:
        call = asyncio.create_task(inside.call("asking.ask", who=who))
        await asyncio.wait_for(client(who).was_asked.wait(), 5)
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: {"cancel", "notifications/cancelled"} <= _told(log))


def _told(log: Path) -> set[str]:
    return {entry.get("method") or entry.get("result", {}).get("action", "") for entry in logged(log)}


async def test_waiting_for_a_person_does_not_count_against_the_call() -> None:
    async def slowly(method: str, params: Any) -> Any:
        await person_thinks(0.3)
        return SAID

    timeouts = Timeouts(tool_overrides={"asking.ask": 200, "asking.hold": 200})
    async with open_gateway(asking(), timeouts=timeouts) as inside:
        for session in (None, "other"):
            await inside.call("asking.caps", who=asker(session=session))
        assert said(await inside.call("asking.ask", {"times": 2}, who=asker(answer=slowly))) == [SAID, SAID]
        late = await inside.call("asking.hold", {"ms": 1000}, who=asker(answer=slowly, session="other"))
    assert late.error is not None
    assert late.error.data["failure_mode"] == "timeout"


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
async def test_a_person_that_never_answers_ends_the_call_after_the_time_for_input(upstream: str) -> None:
    who = asker(answer=never, session="s")
    async with open_gateway(asking(era=upstream), timeouts=Timeouts(input_timeout_ms=100)) as inside:
        result = body(await inside.call("asking.ask", who=who))
        prompt = await inside.ask(
            "prompts/get", who=asker(answer=never, scope="asking", session="s"), params={"name": "ask"}
        )
    assert result["isError"] is True
    failure = result["_meta"]["dev.pactgate/envelope"]["failure"]
    assert (failure["failure_mode"], failure["phase"], failure["verdict"]) == (
        "input_unanswered",
        "input",
        "may_have_run",
    )
    assert prompt.error is not None
    assert prompt.error.data["failure_mode"] == "input_unanswered"


async def test_an_answer_that_hangs_on_what_a_caller_said_is_not_kept_for_others() -> None:
    names = iter("ABC")
    cache = Cache(tools={"asking.ask": CacheRule()})
    async with open_gateway(asking(), cache=cache, categories={"asking.ask": "query"}) as inside:
        who = asker(answer=lambda method, params: {"action": "accept", "content": {"name": next(names)}})
        answers = [said(await inside.call("asking.ask", who=who))[0]["content"]["name"] for _ in range(3)]
    assert answers == ["A", "B", "C"]


async def test_a_legacy_caller_that_says_its_roots_changed_is_heard_by_the_servers_of_its_session(
    tmp_path: Path,
) -> None:
    log, who = tmp_path / "log", asker(session="s1")
    async with open_gateway(asking(log=log)) as inside:
        await inside.call("asking.ask", who=who)
        inside.gateway.kernel.notice(who, Notification("notifications/roots/list_changed"))
        inside.gateway.kernel.notice(asker(session="s2"), Notification("notifications/roots/list_changed"))
        await until(lambda: "notifications/roots/list_changed" in _told(log))
        await inside.call("asking.ask", who=who)
    methods = [entry.get("method") for entry in logged(log)]
    assert methods.count("notifications/roots/list_changed") == 1


# A legacy caller and a modern server.


async def test_a_form_a_legacy_caller_refuses_is_cancelled_for_a_modern_server() -> None:
    who = asker(answer=lambda method, params: ErrorReply(None, -1, "no"))
    async with open_gateway(asking(era="modern")) as inside:
        assert said(await inside.call("asking.ask", who=who)) == [{"action": "cancel"}]


async def test_a_refusal_a_modern_server_can_not_be_told_ends_the_call_and_says_so() -> None:
    who = asker(answer=lambda method, params: ErrorReply(None, -1, "User rejected"))
    async with open_gateway(asking(era="modern")) as inside:
        result = body(await inside.call("asking.ask", {"method": "sampling/createMessage", "params": {}}, who=who))
    assert result["isError"] is True
    failure = result["_meta"]["dev.pactgate/envelope"]["failure"]
    assert failure["failure_mode"] == "input_unanswered"
    assert failure["caller"] == {"code": -1, "message": "User rejected"}
    assert "User rejected" in result["content"][0]["text"]


@pytest.mark.parametrize("capabilities", [{}, ALL])
async def test_a_server_that_only_wants_to_be_asked_again_is(capabilities: dict[str, Any]) -> None:
    async with open_gateway(asking(era="modern")) as inside:
        assert said(await inside.call("asking.retry", who=asker(capabilities=capabilities))) == []
        modern, rounds = asker(Era.MODERN, capabilities=capabilities), list[dict[str, Any]]()
        assert said(await answer_rounds(inside, modern, "asking.retry", {}, None, rounds)) == []
    assert len(rounds) == 3


async def test_a_legacy_caller_can_not_bring_a_state_to_a_modern_server() -> None:
    async with open_gateway(asking(era="modern")) as inside:
        for member in ({"requestState": "precious"}, {"inputResponses": {"q": SAID}}):
            for who in (asker(), asker(capabilities={})):
                reply = await inside.call("asking.ask", who=who, **member)
                assert reply.error is not None
                assert reply.error.code == -32602


# A modern caller and a legacy server.


async def first_round(inside: Inside, who: Caller, **arguments: Any) -> dict[str, Any]:
    result = body(await inside.call("asking.ask", arguments, who=who))
    assert result["resultType"] == "input_required"
    assert "ttlMs" not in result
    return result


async def go_on(inside: Inside, who: Caller, state: str, answers: Any, **arguments: Any) -> Reply:
    return await inside.call("asking.ask", arguments, who=who, requestState=state, inputResponses=answers)


async def test_a_legacy_servers_question_is_answered_by_a_modern_caller_after_a_pause_once(tmp_path: Path) -> None:
    log, who = tmp_path / "log", asker(Era.MODERN)
    async with open_gateway(asking(log=log), timeouts=Timeouts(tool_overrides={"asking.ask": 150})) as inside:
        await inside.call("asking.caps", who=who)  # which opens its session
        round_ = await first_round(inside, who)
        await person_thinks(0.3)
        reply = await go_on(inside, who, round_["requestState"], {"input-1": SAID})
        assert said(reply) == [SAID]
        again = await go_on(inside, who, round_["requestState"], {"input-1": SAID})
        assert again.error is not None
        assert again.error.code == -32602
        assert "continued already" in again.error.message
    assert [entry.get("method") for entry in logged(log)].count("tools/call") == 2


async def test_an_altered_foreign_or_strayed_state_is_refused_and_the_call_still_waits() -> None:
    who = asker(Era.MODERN)
    async with open_gateway(asking()) as inside:
        state = (await first_round(inside, who))["requestState"]
        flipped = ("B" if state[0] == "A" else "A") + state[1:]
        answers = {"input-1": SAID}
        for reply in (
            await go_on(inside, who, flipped, answers),
            await go_on(inside, who, state + "=", answers),
            await go_on(inside, who, "", answers),
            await go_on(inside, who, "no base64!", answers),
            await go_on(inside, asker(Era.MODERN, key="another"), state, answers),
            await go_on(inside, who, state, answers, times=2),
            await inside.call("asking.hold", who=who, requestState=state, inputResponses=answers),
            await go_on(inside, who, state, {"input-1": "Ada"}),
            await go_on(inside, who, state, [SAID]),
        ):
            assert reply.error is not None
            assert reply.error.code == -32602
        assert inside.gateway.bridge.suspended_count == 1
        assert said(await go_on(inside, who, state, answers)) == [SAID]
        assert inside.gateway.bridge.suspended_count == 0


async def test_questions_asked_together_are_one_round_and_missing_answers_are_asked_for_again() -> None:
    who = asker(Era.MODERN)
    async with open_gateway(asking()) as inside:
        first = await first_round(inside, who, times=3, together=True)
        assert list(first["inputRequests"]) == ["input-1", "input-2", "input-3"]
        some = {"input-2": SAID, "unknown": SAID}
        second = body(await go_on(inside, who, first["requestState"], some, times=3, together=True))
        assert list(second["inputRequests"]) == ["input-1", "input-3"]
        rest = {key: {"action": "decline"} for key in second["inputRequests"]}
        reply = await go_on(inside, who, second["requestState"], rest, times=3, together=True)
    assert said(reply) == [{"action": "decline"}, SAID, {"action": "decline"}]


async def test_a_call_nobody_comes_back_for_is_ended_and_the_server_told(tmp_path: Path) -> None:
    log, who = tmp_path / "log", asker(Era.MODERN)
    async with open_gateway(asking(log=log), timeouts=Timeouts(input_timeout_ms=50)) as inside:
        state = (await first_round(inside, who))["requestState"]
        await until(lambda: {"cancel", "notifications/cancelled"} <= _told(log))
        assert inside.gateway.bridge.suspended_count == 0
        reply = await go_on(inside, who, state, {"input-1": SAID})
    assert reply.error is not None
    assert reply.error.code == -32602


async def test_what_a_server_finished_without_the_answer_is_kept_for_the_caller(tmp_path: Path) -> None:
    log, who = tmp_path / "log", asker(Era.MODERN)
    async with open_gateway(asking(log=log)) as inside:
        state = (await first_round(inside, who))["requestState"]
        (session,) = inside.gateway.connections.servers["asking"].caller_sessions.of(who)
        ids = [entry["id"] for entry in logged(log) if entry.get("method") == "tools/call"]
        answer = {"jsonrpc": "2.0", "id": ids[-1], "result": {"content": [{"type": "text", "text": '"gave up"'}]}}
        session.peer.receive(json.dumps(answer).encode())
        assert said(await go_on(inside, who, state, {"input-1": SAID})) == "gave up"


async def test_the_gateway_stops_with_calls_parked() -> None:
    async with open_gateway(asking()) as inside:
        await first_round(inside, asker(Era.MODERN))
        assert inside.gateway.bridge.suspended_count == 1
    assert inside.gateway.bridge.suspended_count == 0


async def test_as_many_calls_are_parked_as_may_be_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactgate.pipeline.suspended_calls.MAX_AT_SERVER", 1)
    async with open_gateway(asking()) as inside:
        await first_round(inside, asker(Era.MODERN))
        result = body(await inside.call("asking.ask", who=asker(Era.MODERN, key="another")))
    failure = result["_meta"]["dev.pactgate/envelope"]["failure"]
    assert failure["failure_mode"] == "overloaded"
    assert failure["verdict"] == "may_have_run"


# Modern to modern.


async def test_a_modern_servers_state_goes_to_its_caller_under_a_seal_and_back_as_it_was() -> None:
    who = asker(Era.MODERN)
    async with open_gateway(asking(era="modern")) as inside:
        round_ = await first_round(inside, who)
        state = round_["requestState"]
        assert state != "precious"
        assert list(round_["inputRequests"]) == ["q"]
        for reply in (
            await go_on(inside, who, "precious", {"q": SAID}),
            await go_on(inside, asker(Era.MODERN, key="another"), state, {"q": SAID}),
            await go_on(inside, who, state, {"q": SAID}, other=1),
        ):
            assert reply.error is not None
            assert reply.error.code == -32602
        assert said(await go_on(inside, who, state, {"q": SAID})) == [SAID]


async def test_a_sealed_state_expires() -> None:
    who = asker(Era.MODERN)
    async with open_gateway(asking(era="modern"), timeouts=Timeouts(input_timeout_ms=20)) as inside:
        state = (await first_round(inside, who))["requestState"]
        await person_thinks(0.03)
        reply = await go_on(inside, who, state, {"q": SAID})
    assert reply.error is not None
    assert "expired" in reply.error.message


# What servers refuse for want of a capability.


VISIT = {"mode": "url", "elicitationId": "e1", "url": "https://a.example", "message": "Sign in"}


async def test_a_refusal_until_a_url_was_visited_is_passed_to_a_legacy_caller() -> None:
    async with open_gateway(asking()) as inside:
        reply = await inside.call("asking.refuse", {"code": -32042, "data": {"elicitations": [VISIT]}}, who=asker())
    assert reply.error is not None
    assert reply.error.code == -32042
    assert reply.error.data["elicitations"] == [VISIT]


async def test_a_refusal_until_a_url_was_visited_is_a_round_for_a_modern_caller_and_the_call_made_again() -> None:
    arguments = {"code": -32042, "data": {"elicitations": [VISIT]}}
    who = asker(Era.MODERN)
    async with open_gateway(asking()) as inside:
        round_ = body(await inside.call("asking.refuse", arguments, who=who))
        (question,) = round_["inputRequests"].values()
        assert question["params"] == {key: VISIT[key] for key in ("mode", "url", "message")}
        more = {"requestState": round_["requestState"], "inputResponses": {"input-1": {"action": "accept"}}}
        again = body(await inside.call("asking.refuse", arguments, who=who, **more))
        assert again["resultType"] == "input_required"  # this server never is content
        formless = asker(Era.MODERN, capabilities={"elicitation": {}})
        assert body(await inside.call("asking.refuse", arguments, who=formless))["isError"] is True


async def test_the_envelope_of_a_round_says_where_it_came_from() -> None:
    async with open_gateway(asking()) as inside:
        result = await first_round(inside, asker(Era.MODERN))
    envelope = result["_meta"]["dev.pactgate/envelope"]
    assert (envelope["server"], envelope["tool"], envelope["cached"]) == ("asking", "asking.ask", False)
    assert envelope["upstreamRevision"] == LATEST_LEGACY
