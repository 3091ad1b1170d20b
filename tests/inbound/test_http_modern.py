from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pactgate.core.events import InternalFailure
from pactgate.inbound.server_limits import ServerLimits
from pactgate.protocol import messages
from pactgate.protocol.versions import LATEST_MODERN, Era
from tests.support.facing import META, message, modern, notification, serving, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import WAIT_S, Answer, RawClient, post


def call(tool: str, arguments: dict[str, Any] | None = None, **headers: str) -> bytes:
    return modern("tools/call", name=tool, arguments=arguments, **headers)


def events(answer: Answer) -> list[Any]:
    assert answer.header("content-type") == "text/event-stream"
    return [json.loads(block.removeprefix(b"data: ")) for block in answer.body.split(b"\n\n") if block]


@on_both_loops
async def test_a_request_is_answered_with_one_json_body() -> None:
    async with serving() as served:
        answer = await served.ask(call("echo", {"number": 2**64}))
        assert (answer.status, answer.header("content-type")) == (200, "application/json")
        assert answer.json["result"]["arguments"] == {"number": 2**64}
        caller = served.kernel.callers[0]
        assert (caller.era, caller.version, caller.principal.key, caller.session) == (
            Era.MODERN,
            LATEST_MODERN,
            "anonymous",
            None,
        )
        assert (caller.client, caller.capabilities) == ("tests/1", {})
        assert caller.headers is not None
        assert caller.headers["mcp-name"] == ["echo"]


@pytest.mark.parametrize("id_", [0, -1, 2**70, "one", "\u00fc"])
async def test_the_id_comes_back_with_its_type(id_: Any) -> None:
    params = {"name": "echo", "arguments": {}, "_meta": META}
    wire = post(
        message("tools/call", params, id_), mcp_protocol_version=LATEST_MODERN, mcp_method="tools/call", mcp_name="echo"
    )
    async with serving() as served:
        assert (await served.ask(wire)).json["id"] == id_


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (messages.INTERNAL_ERROR, 200),
        (messages.INVALID_PARAMS, 400),
        (messages.METHOD_NOT_FOUND, 404),
        (messages.MISSING_CLIENT_CAPABILITY, 400),
        (-1, 200),
    ],
)
async def test_an_error_of_the_kernel_has_the_status_of_its_code(code: int, status: int) -> None:
    async with serving() as served:
        answer = await served.ask(call("fail", {"code": code}))
        assert (answer.status, answer.error_code) == (status, code)
        assert answer.json["error"]["data"] == {"why": "asked to"}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp_method": "-"}, messages.HEADER_MISMATCH),
        ({"mcp_method": "tools/list"}, messages.HEADER_MISMATCH),
        ({"mcp_method": "Tools/Call"}, messages.HEADER_MISMATCH),
        ({"mcp_name": "-"}, messages.HEADER_MISMATCH),
        ({"mcp_name": "other"}, messages.HEADER_MISMATCH),
        ({"mcp_protocol_version": "-"}, messages.HEADER_MISMATCH),
        ({"mcp_name": "=?base64?%%%?="}, messages.HEADER_MISMATCH),
    ],
)
async def test_headers_that_disagree_with_the_body_are_refused(headers: dict[str, str], code: int) -> None:
    async with serving() as served:
        answer = await served.ask(call("echo", None, **headers))
        assert (answer.status, answer.error_code, answer.json["id"]) == (400, code, 1)
        assert served.kernel.callers == []


async def test_a_doubled_header_is_refused_and_an_encoded_one_is_read() -> None:
    async with serving() as served:
        doubled = call("echo").replace(b"\r\n\r\n", b"\r\nMcp-Name: echo\r\n\r\n", 1)
        assert (await served.ask(doubled)).error_code == messages.HEADER_MISMATCH
        assert (await served.ask(call("echo", mcp_name="=?base64?ZWNobw==?="))).status == 200


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such"])
async def test_methods_that_the_era_does_not_have_are_not_found(method: str) -> None:
    async with serving() as served:
        answer = await served.ask(modern(method))
        assert (answer.status, answer.error_code) == (404, messages.METHOD_NOT_FOUND)


@on_both_loops
async def test_a_notification_before_the_answer_makes_the_exchange_a_stream() -> None:
    async with serving() as served, served.client() as client:
        for _ in range(2):
            told = events(await client.ask(call("steps", {"count": 3})))
            assert [event.get("method") for event in told] == ["notifications/progress"] * 3 + [None]
            assert [event["params"]["progress"] for event in told[:3]] == [0, 1, 2]
            assert told[3] == {"jsonrpc": "2.0", "id": 1, "result": {"done": True}}
        assert served.frontend.drops.count == 0


async def test_events_are_sent_when_they_happen_and_have_no_ids() -> None:
    async with serving() as served, served.client() as client:
        await client.send(call("stepwise"))
        assert (await client.head()).header("x-accel-buffering") == "no"
        first = await client.event()
        assert first is not None
        assert first.id is None
        served.kernel.release.set()
        assert await client.event() is not None
        last = await client.event()
        assert last is not None
        assert json.loads(last.data)["result"] == {"done": True}
        assert await client.event() is None


async def test_a_client_that_takes_no_streams_gets_its_answer_and_the_rest_is_counted() -> None:
    async with serving() as served:
        for accept in ("application/json", "-"):
            answer = await served.ask(call("steps", {"count": 3}, accept=accept))
            assert answer.json["result"] == {"done": True}
        assert served.frontend.drops.count == 6


async def test_a_client_that_takes_only_streams_gets_one() -> None:
    async with serving() as served:
        assert events(await served.ask(call("echo", accept="text/event-stream")))[0]["id"] == 1
        refused = await served.ask(call("fail", {"code": messages.INVALID_PARAMS}, accept="text/event-stream"))
        assert refused.status == 400


@on_both_loops
async def test_a_client_that_goes_away_cancels_its_request_at_once() -> None:
    async with serving() as served:
        async with served.client() as client:
            await client.send(call("hang"))
            await asyncio.wait_for(served.kernel.started.wait(), WAIT_S)
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)
        await until(lambda: served.server.connection_count == 0)
        assert served.kernel.running == 0
        await served.still_serves()


async def test_a_client_that_leaves_its_stream_cancels_its_request_too() -> None:
    async with serving() as served:
        async with served.client() as client:
            await client.send(call("stepwise"))
            await client.head()
            assert await client.event() is not None
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)
        assert served.kernel.running == 0


async def test_a_flood_of_notifications_is_thinned_and_the_answer_still_comes() -> None:
    async with serving() as served:
        told = events(await served.ask(call("steps", {"count": 2000, "padding": 10_000})))
        assert told[-1]["result"] == {"done": True}
        assert len(told) - 1 + served.frontend.drops.count == 2000
        assert served.frontend.drops.count > 0


async def test_notifications_of_a_modern_client_are_taken_and_answers_refused() -> None:
    async with serving() as served:
        taken = await served.ask(post(notification("notifications/cancelled"), mcp_protocol_version=LATEST_MODERN))
        assert (taken.status, taken.body) == (202, b"")
        for body in (
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
        ):
            answer = await served.ask(post(body, mcp_protocol_version=LATEST_MODERN))
            assert (answer.status, answer.error_code) == (400, messages.INVALID_REQUEST)
        batch = await served.ask(post([message("tools/list", {"_meta": META})], mcp_protocol_version=LATEST_MODERN))
        assert (batch.status, batch.error_code) == (400, messages.INVALID_REQUEST)


async def test_no_answer_ever_names_a_session() -> None:
    async with serving() as served:
        assert (await served.ask(call("echo", mcp_session_id="x"))).header("mcp-session-id") is None
        assert len(served.frontend.sessions) == 0


@on_both_loops
async def test_requests_that_outlive_the_gateway_are_told() -> None:
    async with serving() as served, served.client() as waiting, RawClient(served.port) as streaming:
        await waiting.send(call("hang"))
        await streaming.send(call("stepwise"))
        await streaming.head()
        assert await streaming.event() is not None
        await until(lambda: served.kernel.running == 2)
        await served.server.close(0.01)
        answer = await waiting.answer()
        assert (answer.status, answer.error_code, answer.json["id"]) == (503, messages.INTERNAL_ERROR, 1)
        last = await streaming.event()
        assert last is not None
        assert json.loads(last.data)["error"]["data"]["failure_mode"] == "overloaded"
        assert await streaming.event() is None


async def test_a_crash_of_the_kernel_is_a_plain_500() -> None:
    async with serving() as served:
        answer = await served.ask(call("crash_at_once"))
        assert (answer.status, answer.json["error"]["message"]) == (500, "Internal error.")
        assert [type(event) for event in served.events] == [InternalFailure]
        await served.still_serves()


async def test_a_request_that_crashes_where_it_runs_is_told_of_an_internal_error_and_nothing_else() -> None:
    async with serving() as served, served.client() as client:
        answer = await client.ask(call("crash"))
        assert (answer.error_code, answer.json["id"]) == (messages.INTERNAL_ERROR, 1)
        assert answer.json["error"]["message"].startswith("Internal error.")
        assert b"a bug" not in answer.body
        assert [type(event) for event in served.events] == [InternalFailure]
        assert (await client.ask(call("echo"))).status == 200


@on_both_loops
async def test_an_answer_that_can_not_be_written_is_an_internal_error_and_the_connection_goes_on() -> None:
    async with serving() as served, served.client() as client:
        for tool in ("unwritable", "unwritable_later"):
            answer = await client.ask(call(tool))
            assert (answer.status, answer.error_code, answer.json["id"]) == (500, messages.INTERNAL_ERROR, 1)
            assert answer.json["error"]["message"] == "Internal error."
            assert (await client.ask(call("echo"))).status == 200
        assert [type(event) for event in served.events] == [InternalFailure] * 2


@pytest.mark.parametrize("tool", ["unwritable", "unwritable_later"])
@on_both_loops
async def test_an_answer_that_can_not_be_written_to_its_stream_ends_that_connection_and_no_other(tool: str) -> None:
    async with serving() as served, served.client() as broken, served.client() as other:
        assert (await other.ask(call("echo"))).status == 200
        await broken.send(call(tool, {"notices": 1}))
        assert not (await broken.rest()).endswith(b"0\r\n\r\n")
        await until(lambda: served.server.connection_count == 1)
        assert (await other.ask(call("echo"))).status == 200
        assert [type(event) for event in served.events] == [InternalFailure]


async def test_a_reply_comes_to_the_same_whether_it_is_there_at_once_or_later() -> None:
    async with serving() as served, served.client() as client:
        at_once, later = [await client.ask(call(tool, {"a": 1})) for tool in ("echo", "later")]
        assert (at_once.status, at_once.headers[:-1]) == (later.status, later.headers[:-1])
        assert at_once.json["result"]["arguments"] == later.json["result"]["arguments"] == {"a": 1}
        assert (await client.ask(call("echo"))).status == 200


async def test_a_request_that_was_cancelled_inside_start_is_told_and_the_connection_goes_on() -> None:
    async with serving() as served, served.client() as client:
        answer = await client.ask(call("dropped"))
        assert (answer.status, answer.error_code, answer.json["id"]) == (503, messages.INTERNAL_ERROR, 1)
        assert (await client.ask(call("echo"))).status == 200


async def test_a_request_that_is_never_answered_holds_up_nobody_else_and_not_the_end() -> None:
    async with serving() as served, served.client() as client:
        await client.send(call("never"))
        await asyncio.wait_for(served.kernel.started.wait(), WAIT_S)
        await served.still_serves()
        async with asyncio.timeout(WAIT_S):
            await served.server.close(0.01)
        assert await client.rest() == b""
        assert served.server.connection_count == 0


async def test_a_large_request_within_the_limit_is_served() -> None:
    async with serving(limits=ServerLimits(max_connections=5, max_request_bytes=2_000_000)) as served:
        answer = await served.ask(call("echo", {"text": "x" * 1_900_000}))
        assert len(answer.json["result"]["arguments"]["text"]) == 1_900_000
        assert (await served.ask(call("echo", {"text": "x" * 2_000_000}))).status == 413


async def test_a_listen_needs_a_client_that_takes_events() -> None:
    async with serving() as served:
        answer = await served.ask(modern("subscriptions/listen", accept="application/json"))
        assert answer.status == 406
        assert answer.json["id"] == 1


async def test_the_level_of_a_request_reaches_the_kernel() -> None:
    async with serving() as served:
        meta = {**META, "io.modelcontextprotocol/logLevel": "notice"}
        body = message("tools/call", {"name": "echo", "arguments": {}, "_meta": meta})
        headers = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "tools/call", "mcp_name": "echo"}
        assert (await served.ask(post(body, **headers))).status == 200
        assert served.kernel.callers[-1].log_level == "notice"
