"""The way back of a legacy POST: questions go out on its own stream, and answers come as POSTs of the same session."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.facing import Served, call, serving, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import RawClient, get, post

CANCELLED = "notifications/cancelled"


async def data(client: RawClient) -> Any:
    event = await client.event()
    assert event is not None
    return json.loads(event.data)


async def question(client: RawClient) -> dict[str, Any]:
    asked: dict[str, Any] = await data(client)
    assert asked["method"] == "roots/list"
    return asked


def answer_to(asked: dict[str, Any], **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked["id"], "result": result}


async def told(served: Served, message: dict[str, Any], session: dict[str, str]) -> int:
    return (await served.ask(post(message, **session))).status


@on_both_loops
async def test_a_client_is_asked_on_the_stream_of_its_request_and_answers_with_a_post() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("ask", id_=7), **session))
        assert (await client.head()).header("content-type") == "text/event-stream"
        asked = await question(client)
        assert asked["params"] == {}
        assert await told(served, answer_to(asked, roots=[]), session) == 202
        assert (await data(client))["result"] == {"said": {"roots": []}}
        assert await client.event() is None


async def test_a_refusal_is_an_answer() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("ask"), **session))
        await client.head()
        asked = await question(client)
        refusal = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}
        assert await told(served, refusal, session) == 202
        assert (await data(client))["result"] == {"refused": -1}


async def test_another_session_can_not_answer_in_a_clients_place() -> None:
    async with serving() as served, served.client() as client:
        session, other = await served.session(), await served.session()
        await client.send(post(call("ask"), **session))
        await client.head()
        asked = await question(client)
        assert await told(served, answer_to(asked, roots=["forged"]), other) == 202
        assert await told(served, answer_to(asked, roots=["own"]), session) == 202
        assert (await data(client))["result"] == {"said": {"roots": ["own"]}}


async def test_a_client_that_takes_no_stream_is_asked_on_its_standing_one() -> None:
    async with serving() as served, served.client() as client, served.client() as listener:
        session = await served.session()
        only_json = {**session, "accept": "application/json"}
        assert (await client.post(call("ask"), **only_json)).json["result"] == {"said": "can not be asked"}
        await listener.send(get("/mcp", accept="text/event-stream", **session))
        await listener.head()
        await client.send(post(call("ask"), **only_json))
        asked = await question(listener)
        await told(served, answer_to(asked, roots=[]), session)
        assert (await client.answer()).json["result"] == {"said": {"roots": []}}


async def test_a_question_survives_a_lost_connection() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("ask"), **session))
            await client.head()
            event = await client.event()
            assert event is not None
            asked = json.loads(event.data)
        await told(served, answer_to(asked, roots=[]), session)
        async with served.client() as client:
            await client.send(get("/mcp", accept="text/event-stream", last_event_id=event.id or "", **session))
            await client.head()
            assert (await data(client))["result"] == {"said": {"roots": []}}


async def test_a_cancelled_call_withdraws_its_question() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("ask", id_=7), **session))
        await client.head()
        asked = await question(client)
        cancel = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": 7}}
        await told(served, cancel, session)
        withdrawal = await data(client)
        assert (withdrawal["method"], withdrawal["params"]["requestId"]) == (CANCELLED, asked["id"])
        assert await client.event() is None


async def test_the_end_of_a_session_ends_its_questions() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("ask"), **session))
        await client.head()
        await question(client)
        (open_session,) = served.frontend.sessions.all()
        served.frontend.sessions.end(open_session)
        await asyncio.wait_for(served.kernel.cancelled.wait(), 5)
        await until(lambda: served.kernel.running == 0)
