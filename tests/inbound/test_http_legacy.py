from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pactgate.config.model import Sessions
from pactgate.core.events import InternalFailure
from pactgate.core.failures import WireError
from pactgate.inbound.auth import Guard
from pactgate.inbound.resumable_streams import KEEP_S
from pactgate.protocol import messages
from pactgate.protocol.versions import LEGACY_VERSIONS, Era
from tests.support.facing import Clock, Served, call, credentials, initialize, message, notification, serving, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import WAIT_S, Answer, RawClient, get, post, request, spelled

CANCELLED = "notifications/cancelled"
STREAM = "text/event-stream"


def delete(**headers: str) -> bytes:
    return request("DELETE", "/mcp", {"host": "localhost", **spelled(headers)})


def listen(session: dict[str, str], **headers: str) -> bytes:
    return get("/mcp", accept=STREAM, **session, **headers)


async def data(client: RawClient) -> Any:
    event = await client.event()
    assert event is not None
    return json.loads(event.data)


# -- the handshake


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, "2099-01-01"])
async def test_initialize_agrees_on_a_version_and_opens_a_session(version: str) -> None:
    async with serving() as served:
        answer = await served.ask(post(initialize(version)))
        agreed = version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[-1]
        assert answer.json["result"]["protocolVersion"] == agreed
        session = answer.header("mcp-session-id")
        assert session is not None
        assert len(bytes.fromhex(session)) == 16
        caller = served.kernel.callers[0]
        assert (caller.era, caller.version, caller.client, caller.principal.key) == (
            Era.LEGACY,
            agreed,
            "tests/1",
            "anonymous",
        )


@on_both_loops
async def test_a_whole_session() -> None:
    async with serving() as served, served.client() as client:
        opened = await client.post(initialize())
        headers = {"mcp_session_id": opened.header("mcp-session-id") or "", "mcp_protocol_version": "2025-11-25"}
        ready = await client.post(notification("notifications/initialized"), **headers)
        assert (ready.status, ready.body) == (202, b"")
        assert (await client.post(message("ping"), **headers)).json == {"jsonrpc": "2.0", "id": 1, "result": {}}
        answer = await client.post(call("echo", {"a": 1}, "x"), **headers)
        assert (answer.status, answer.json["id"], answer.json["result"]["arguments"]) == (200, "x", {"a": 1})
        caller = served.kernel.callers[-1]
        assert (caller.capabilities, caller.client, caller.scope) == ({"roots": {}}, "tests/1", None)
        assert caller.session is not None
        assert caller.session not in headers["mcp_session_id"]
        assert (await client.ask(delete(**headers))).status == 200
        assert (await client.post(message("ping"), **headers)).status == 404
        assert (await client.ask(delete(**headers))).status == 404


async def test_errors_of_the_kernel_come_with_status_200() -> None:
    async with serving() as served:
        session = await served.session()
        answer = await served.ask(post(call("fail", {"code": messages.INVALID_PARAMS}), **session))
        assert (answer.status, answer.error_code) == (200, messages.INVALID_PARAMS)


@pytest.mark.parametrize(
    "params", [None, {}, {"protocolVersion": 1}, {"protocolVersion": "2025-11-25", "capabilities": {"x": "y" * 20_000}}]
)
async def test_an_initialize_that_says_too_little_or_too_much_opens_nothing(params: Any) -> None:
    async with serving() as served:
        answer = await served.ask(post(message("initialize", params)))
        assert (answer.status, answer.error_code) == (400, messages.INVALID_PARAMS)
        assert len(served.frontend.sessions) == 0


async def test_a_handshake_the_kernel_refuses_opens_nothing() -> None:
    async with serving() as served:
        served.kernel.handshake_error = WireError(messages.INTERNAL_ERROR, "not now")
        answer = await served.ask(post(initialize()))
        assert (answer.status, answer.error_code, answer.header("mcp-session-id")) == (
            200,
            messages.INTERNAL_ERROR,
            None,
        )
        assert len(served.frontend.sessions) == 0


async def test_a_client_that_leaves_during_the_handshake_opens_nothing() -> None:
    async with serving() as served:
        served.kernel.is_handshake_slow = True
        async with served.client() as client:
            await client.send(post(initialize()))
            await served.kernel.started.wait()
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)
        assert len(served.frontend.sessions) == 0


async def test_handshakes_that_ran_side_by_side_do_not_exceed_the_bound() -> None:
    async with serving(sessions=Sessions(max_sessions=1)) as served:
        served.kernel.is_handshake_slow = True
        async with served.client() as first, served.client() as second:
            for client in (first, second):
                await client.send(post(initialize()))
            await until(lambda: served.kernel.running == 2)
            served.kernel.release.set()
            assert {(await first.answer()).status, (await second.answer()).status} == {200}
            assert len(served.frontend.sessions) == 1


async def test_initialize_in_an_open_session_is_refused() -> None:
    async with serving() as served:
        session = await served.session()
        answer = await served.ask(post(initialize(), **session))
        assert (answer.status, answer.error_code) == (400, messages.INVALID_REQUEST)
        assert (await served.ask(post(call("echo"), **session))).status == 200


async def test_requests_are_served_before_the_client_said_it_is_initialized() -> None:
    async with serving() as served:
        session = await served.session()
        assert (await served.ask(post(call("echo"), **session))).status == 200


async def test_other_notifications_reach_the_kernel_and_answers_are_taken_in_silence() -> None:
    async with serving() as served:
        session = await served.session()
        for body in (
            notification("notifications/roots/list_changed"),
            notification("no/such"),
            {"jsonrpc": "2.0", "id": 1, "result": {}},
        ):
            assert (await served.ask(post(body, **session))).status == 202
        told = [(caller.principal.key, notice.method) for caller, notice in served.kernel.notices]
        assert told == [("anonymous", "notifications/roots/list_changed"), ("anonymous", "no/such")]


# -- whose session it is


@pytest.mark.parametrize("id_", ["0", "1", "", "../x", "x" * 5000, "' OR 1=1", "*", "0" * 32])
async def test_ids_that_were_never_given_are_unknown(id_: str) -> None:
    async with serving() as served:
        await served.session()
        for wire in (
            post(call("echo"), mcp_session_id=id_),
            get("/mcp", accept=STREAM, mcp_session_id=id_),
            delete(mcp_session_id=id_),
        ):
            assert (await served.ask(wire)).status == 404
        assert len(served.kernel.callers) == 1
        await served.still_serves()


async def test_ids_close_to_a_real_one_are_unknown() -> None:
    async with serving() as served:
        session = (await served.session())["mcp_session_id"]
        near = f"{int(session, 16) + 1:032x}"
        for id_ in (session.upper() if session.upper() != session else "x", session[:-1], near, session + "0"):
            assert (await served.ask(post(call("echo"), mcp_session_id=id_))).status == 404


async def test_a_session_id_is_sent_once() -> None:
    async with serving() as served:
        session = await served.session()
        twice = post(call("echo"), **session).replace(
            b"\r\n\r\n", f"\r\nMcp-Session-Id: {session['mcp_session_id']}\r\n\r\n".encode(), 1
        )
        assert (await served.ask(twice)).status == 400


async def test_a_stolen_session_is_as_unknown_as_any_other() -> None:
    tokens = {"token-of-ann-01234": ("ann", frozenset[str]()), "token-of-bob-01234": ("bob", frozenset[str]())}
    async with serving(guard=Guard(host="127.0.0.1", credentials=credentials(tokens))) as served:
        session = await served.session(authorization="Bearer token-of-ann-01234")
        thief = {**session, "authorization": "Bearer token-of-bob-01234"}
        assert (await served.ask(post(call("echo"), **thief))).status == 404
        assert (await served.ask(listen(thief))).status == 404
        assert (await served.ask(delete(**thief))).status == 404
        assert (await served.ask(post(call("echo"), **session))).status == 200


async def test_a_session_belongs_to_the_path_it_was_opened_on() -> None:
    async with serving() as served:
        session = await served.session(path="/mcp/files")
        assert (await served.ask(post(call("echo"), "/mcp/files", **session))).status == 200
        assert served.kernel.callers[-1].scope == "files"
        assert (await served.ask(post(call("echo"), "/mcp", **session))).status == 404
        assert (await served.ask(post(call("echo"), "/mcp/web", **session))).status == 404


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, "-"])
async def test_any_known_legacy_version_header_is_taken_in_a_session(version: str) -> None:
    async with serving() as served:
        session = {**await served.session(), "mcp_protocol_version": version}
        assert (await served.ask(post(call("echo"), **session))).status == 200


async def test_an_unknown_version_header_is_refused_in_a_session() -> None:
    async with serving() as served:
        session = {**await served.session(), "mcp_protocol_version": "1999-01-01"}
        assert (await served.ask(post(call("echo"), **session))).status == 400
        assert (await served.ask(listen(session))).status == 400
        assert (await served.ask(delete(**session))).status == 400


async def test_sessions_are_bounded_and_the_idle_ones_make_room() -> None:
    async with serving(sessions=Sessions(max_sessions=3)) as served:
        first = await served.session()
        for _ in range(3):
            await served.session()
        assert len(served.frontend.sessions) == 3
        assert (await served.ask(post(call("echo"), **first))).status == 404


async def test_when_every_session_is_busy_a_new_one_is_refused_for_now() -> None:
    async with serving(sessions=Sessions(max_sessions=1)) as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("hang"), **session))
            await served.kernel.started.wait()
            answer = await served.ask(post(initialize()))
            assert (answer.status, answer.header("retry-after")) == (503, "5")
            served.kernel.release.set()
            assert (await client.answer()).status == 200
        await served.session()


# -- cancelling and going away


@on_both_loops
async def test_a_cancelled_request_is_stopped_and_its_post_is_told() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("hang", id_="x"), **session))
        await asyncio.wait_for(served.kernel.started.wait(), WAIT_S)
        cancel = notification(CANCELLED, {"requestId": "x", "reason": "no longer needed"})
        assert (await served.ask(post(cancel, **session))).status == 202
        answer = await client.answer()
        assert (answer.status, answer.json["id"], answer.json["error"]["data"]["failure_mode"]) == (
            200,
            "x",
            "cancelled",
        )
        assert served.kernel.cancelled.is_set()
        assert (await client.post(call("echo"), **session)).status == 200


async def test_a_cancelled_stream_just_ends() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("stepwise", id_=5), **session))
        await client.head()
        assert (await data(client))["method"] == "notifications/progress"
        await served.ask(post(notification(CANCELLED, {"requestId": 5}), **session))
        assert await client.event() is None
        assert served.kernel.running == 0


@pytest.mark.parametrize(
    "params",
    [None, {}, {"requestId": "1"}, {"requestId": 2}, {"requestId": None}, {"requestId": {}}, {"requestId": 1.0}],
)
async def test_cancelling_what_does_not_run_changes_nothing(params: Any) -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("hang", id_=1), **session))
        await served.kernel.started.wait()
        assert (await served.ask(post(notification(CANCELLED, params), **session))).status == 202
        served.kernel.release.set()
        assert (await client.answer()).json["result"] == {"released": True}


async def test_nobody_cancels_the_request_of_another_session() -> None:
    async with serving() as served, served.client() as client:
        mine, other = await served.session(), await served.session()
        await client.send(post(call("hang", id_=1), **mine))
        await served.kernel.started.wait()
        await served.ask(post(notification(CANCELLED, {"requestId": 1}), **other))
        served.kernel.release.set()
        assert (await client.answer()).json["result"] == {"released": True}


async def test_an_id_that_is_still_running_can_not_be_used_again() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("hang", id_=1), **session))
        await served.kernel.started.wait()
        again = await served.ask(post(call("echo", id_=1), **session))
        assert (again.status, again.error_code) == (400, messages.INVALID_REQUEST)
        assert (await served.ask(post(call("echo", id_="1"), **session))).status == 200
        served.kernel.release.set()
        assert (await client.answer()).status == 200
        assert (await served.ask(post(call("echo", id_=1), **session))).status == 200


async def test_a_connection_goes_on_after_the_session_of_its_streamed_request_was_deleted() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("stepwise"), **session))
        await client.head()
        assert await client.event() is not None
        assert (await served.ask(delete(**session))).status == 200
        while await client.event() is not None:
            pass
        assert (await client.post(initialize())).status == 200


async def test_a_connection_goes_on_after_its_stream_was_taken_up_on_another_one() -> None:
    async with serving() as served, served.client() as client, served.client() as other:
        session = await served.session()
        await client.send(post(call("stepwise"), **session))
        await client.head()
        event = await client.event()
        assert event is not None
        await other.send(listen(session, last_event_id=event.id or ""))
        await other.head()
        assert await client.event() is None
        await client.send(post(call("echo", id_=2), **session))
        served.kernel.release.set()
        assert (await client.answer()).json["id"] == 2
        assert (await data(other))["params"] == {"progress": 2}
        assert (await data(other))["result"] == {"done": True}


async def test_deleting_a_session_stops_what_runs_in_it() -> None:
    async with serving() as served, served.client() as client, served.client() as listener:
        session = await served.session()
        await client.send(post(call("hang"), **session))
        await served.kernel.started.wait()
        await listener.send(listen(session))
        await listener.head()
        assert (await served.ask(delete(**session))).status == 200
        assert (await client.answer()).json["error"]["message"] == "The session has ended."
        assert await listener.event() is None
        assert served.kernel.running == 0


@on_both_loops
async def test_a_client_that_goes_away_before_anything_it_could_come_back_to_cancels_its_request() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("hang"), **session))
            await asyncio.wait_for(served.kernel.started.wait(), WAIT_S)
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)
        await until(lambda: not served.frontend.sessions.all()[0].running)


# -- streams


@on_both_loops
async def test_a_notification_before_the_answer_makes_a_stream_of_numbered_events() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        for stream in (1, 2):
            await client.send(post(call("steps", {"count": 2}), **session))
            assert (await client.head()).header("content-type") == STREAM
            for number in (1, 2, 3):
                event = await client.event()
                assert event is not None
                assert event.id == f"{stream}-{number}"
            assert event is not None
            assert json.loads(event.data)["result"] == {"done": True}
            assert await client.event() is None


async def test_a_client_that_takes_no_streams_gets_its_answer_and_the_rest_is_counted() -> None:
    async with serving() as served:
        session = await served.session()
        answer = await served.ask(post(call("steps", {"count": 2}), accept="application/json", **session))
        assert answer.json["result"] == {"done": True}
        assert served.frontend.drops.count == 2


@on_both_loops
async def test_a_lost_stream_goes_on_and_can_be_taken_up_again() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("stepwise", id_="x"), **session))
            await client.head()
            first = await client.event()
        assert first is not None
        await until(lambda: not served.frontend.sessions.all()[0].is_busy or served.server.connection_count == 0)
        assert served.kernel.running == 1
        async with served.client() as client:
            await client.send(listen(session, last_event_id=first.id or ""))
            assert (await client.head()).status == 200
            served.kernel.release.set()
            assert (await data(client))["params"] == {"progress": 2}
            assert (await data(client)) == {"jsonrpc": "2.0", "id": "x", "result": {"done": True}}
            assert await client.event() is None
        assert not served.kernel.cancelled.is_set()


async def test_an_answer_given_while_nobody_listened_can_be_fetched() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("stepwise", id_="x"), **session))
            await client.head()
            await client.event()
        await until(lambda: served.server.connection_count == 0)
        other = await served.ask(post(call("steps", {"count": 3}), **session))
        assert other.status == 200
        served.kernel.release.set()
        await until(lambda: served.kernel.running == 0)
        for _ in range(2):
            async with served.client() as client:
                await client.send(listen(session, last_event_id="1-1"))
                await client.head()
                assert [(await data(client)).get("id"), (await data(client)).get("id")] == [None, "x"]
                assert await client.event() is None


async def test_a_lost_stream_nobody_comes_back_to_is_given_up() -> None:
    clock = Clock()
    async with serving(clock=clock) as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("stepwise"), **session))
            await client.head()
            await client.event()
        await until(lambda: served.server.connection_count == 0)
        clock.now += KEEP_S - 1
        served.frontend.sessions.sweep()
        assert served.kernel.running == 1
        clock.now += 1
        served.frontend.sessions.sweep()
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)
        answer = await served.ask(listen(session, last_event_id="1-1"))
        assert (answer.status, answer.error_code) == (400, messages.INVALID_REQUEST)


@pytest.mark.parametrize("last", ["", "9-1", "x", "1-1-1", "-1", "1-" + "9" * 100])
async def test_an_event_id_that_was_never_given_is_refused(last: str) -> None:
    async with serving() as served:
        session = await served.session()
        assert (await served.ask(listen(session, last_event_id=last))).status == 400
        await served.still_serves()


@on_both_loops
async def test_the_standing_stream_carries_what_belongs_to_no_request() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        [known] = served.frontend.sessions.all()
        known.notify("notifications/tools/list_changed", None)
        await client.send(listen(session))
        assert (await client.head()).header("content-type") == STREAM
        assert (await data(client)) == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        known.notify("notifications/message", b'{"level":"info"}')
        event = await client.event()
        assert event is not None
        assert (event.id, json.loads(event.data)["params"]) == ("0-2", {"level": "info"})
        assert (await served.ask(post(call("echo"), **session))).status == 200


async def test_a_second_standing_stream_takes_over_from_the_first() -> None:
    async with serving() as served, served.client() as first, served.client() as second:
        session = await served.session()
        for client in (first, second):
            await client.send(listen(session))
            await client.head()
        assert await first.event() is None
        served.frontend.sessions.all()[0].notify("notifications/tools/list_changed", None)
        assert (await data(second))["method"] == "notifications/tools/list_changed"
        assert (await first.post(call("echo"), **session)).status == 200


async def test_a_lost_standing_stream_is_taken_up_where_it_was_lost() -> None:
    async with serving() as served:
        session = await served.session()
        [known] = served.frontend.sessions.all()
        async with served.client() as client:
            await client.send(listen(session))
            await client.head()
            known.notify("notifications/a", None)
            first = await client.event()
        assert first is not None
        await until(lambda: served.server.connection_count == 0)
        known.notify("notifications/b", None)
        async with served.client() as client:
            await client.send(listen(session, last_event_id=first.id or ""))
            await client.head()
            assert (await data(client))["method"] == "notifications/b"


async def test_a_get_must_take_a_stream() -> None:
    async with serving() as served:
        session = await served.session()
        assert (await served.ask(get("/mcp", accept="application/json", **session))).status == 406


async def test_a_standing_stream_keeps_its_session_from_being_idle() -> None:
    clock = Clock()
    async with serving(clock=clock, sessions=Sessions(idle_timeout_ms=10_000)) as served:
        listening, left = await served.session(), await served.session()
        async with served.client() as client:
            await client.send(listen(listening))
            await client.head()
            clock.now += 11
            served.frontend.sessions.sweep()
            assert (await served.ask(post(call("echo"), **left))).status == 404
            assert (await served.ask(post(call("echo"), **listening))).status == 200


@on_both_loops
async def test_requests_that_outlive_the_gateway_are_told() -> None:
    async with serving() as served, served.client() as waiting, served.client() as streaming:
        session = await served.session()
        await waiting.send(post(call("hang", id_=1), **session))
        await streaming.send(post(call("stepwise", id_=2), **session))
        await streaming.head()
        await streaming.event()
        await until(lambda: served.kernel.running == 2)
        await served.server.close(0.01)
        assert (await waiting.answer()).json["error"]["message"] == "The gateway is stopping."
        assert (await data(streaming))["error"]["message"] == "The gateway is stopping."
        assert await streaming.event() is None


async def test_what_runs_without_a_connection_ends_with_the_face() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            await client.send(post(call("stepwise"), **session))
            await client.head()
            await client.event()
        await until(lambda: served.server.connection_count == 0)
        assert served.kernel.running == 1
        served.frontend.close()
        await asyncio.wait_for(served.kernel.cancelled.wait(), WAIT_S)


# -- batches


async def batch(served: Served, elements: Any, version: str = "2025-03-26", **headers: str) -> Answer:
    return await served.ask(post(elements, **{**await served.session(version), **headers}))


async def test_a_batch_is_answered_as_an_array() -> None:
    elements = [call("echo", id_=1), notification("notifications/a"), message("ping", id_="two"), call("fail", id_=3)]
    async with serving() as served:
        answer = await batch(served, elements)
        assert answer.status == 200
        assert [each["id"] for each in answer.json] == [1, "two", 3]
        assert [notice.method for _, notice in served.kernel.notices] == ["notifications/a"]


async def test_a_batch_needs_a_session_too() -> None:
    async with serving() as served:
        assert (await served.ask(post([message("ping")], mcp_session_id="0" * 32))).status == 404


async def test_a_batch_that_outlives_the_gateway_is_ended() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        await client.send(post([call("hang", id_=1)], **session))
        await until(lambda: served.kernel.running == 1)
        await served.server.close(0.01)
        assert (await client.answer()).status == 503


async def test_a_flood_of_notifications_is_thinned_and_the_answer_still_comes() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        await client.send(post(call("steps", {"count": 2000, "padding": 10_000}), **session))
        await client.head()
        last, seen = await data(client), 0
        while "id" not in last:
            last, seen = await data(client), seen + 1
        assert last["result"] == {"done": True}
        assert served.frontend.drops.count == 2000 - seen
        assert served.frontend.drops.count > 0
        assert served.frontend.sessions.account.kept_bytes <= 1024 * 1024


async def test_a_batch_without_requests_is_taken() -> None:
    async with serving() as served:
        answer = await batch(served, [notification("notifications/a"), {"jsonrpc": "2.0", "id": 1, "result": {}}])
        assert (answer.status, answer.body) == (202, b"")


async def test_bad_elements_of_a_batch_are_answered_beside_the_good_ones() -> None:
    async with serving() as served:
        answer = await batch(
            served, [initialize(), message("ping", id_=2), 7, message("ping", id_=2), {"jsonrpc": "2.0"}]
        )
        assert sorted((each["id"] or 0, "error" in each) for each in answer.json) == [
            (0, True),
            (0, True),
            (1, True),
            (2, False),
            (2, True),
        ]


@pytest.mark.parametrize("elements", [[], [message("ping", id_=number) for number in range(1000)], b"[1,", b"[" * 1000])
async def test_a_batch_that_is_empty_too_long_or_broken_is_refused(elements: Any) -> None:
    async with serving() as served:
        answer = await batch(served, elements)
        assert answer.status == 400
        await served.still_serves()


@pytest.mark.parametrize("version", [version for version in LEGACY_VERSIONS if version != "2025-03-26"])
async def test_other_revisions_have_no_batches(version: str) -> None:
    async with serving() as served:
        answer = await batch(served, [message("ping")], version)
        assert (answer.status, answer.error_code) == (400, messages.INVALID_REQUEST)


async def test_the_requests_of_a_batch_run_side_by_side_and_can_be_cancelled_alone() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        await client.send(post([call("hang", id_=1), call("hang", id_=2), call("hang", id_=3)], **session))
        await until(lambda: served.kernel.running == 3)
        await served.ask(post(notification(CANCELLED, {"requestId": 2}), **session))
        await until(lambda: served.kernel.running == 2)
        served.kernel.release.set()
        assert [each["id"] for each in (await client.answer()).json] == [1, 3]


async def test_a_batch_that_is_cancelled_whole_has_no_answer() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        await client.send(post([call("hang", id_=1)], **session))
        await until(lambda: served.kernel.running == 1)
        await served.ask(post(notification(CANCELLED, {"requestId": 1}), **session))
        assert (await client.answer()).status == 202


async def test_a_batch_with_notifications_before_its_answers_becomes_a_stream() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        await client.send(post([call("steps", {"count": 1}, 1), call("echo", id_=2)], **session))
        await client.head()
        assert (await data(client))["method"] == "notifications/progress"
        assert [each["id"] for each in await data(client)] == [1, 2]
        assert await client.event() is None


async def test_a_client_that_leaves_its_batch_cancels_all_of_it() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        async with served.client() as client:
            await client.send(post([call("hang", id_=1), call("hang", id_=2)], **session))
            await until(lambda: served.kernel.running == 2)
        await until(lambda: served.kernel.running == 0)
        await until(lambda: not served.frontend.sessions.all()[0].running)


async def test_the_answers_of_a_batch_go_out_together_whether_they_are_there_at_once_or_later() -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        for tools in (("echo", "echo"), ("later", "echo"), ("echo", "later"), ("later", "later"), ("dropped", "echo")):
            elements = [call(tool, id_=number) for number, tool in enumerate(tools)]
            answer = await client.post(elements, **session)
            expected = [number for number, tool in enumerate(tools) if tool != "dropped"]
            assert (answer.status, sorted(each["id"] for each in answer.json)) == (200, expected)


# -- answers that can not be written


@pytest.mark.parametrize("tool", ["unwritable", "unwritable_later"])
async def test_an_answer_that_can_not_be_written_is_an_internal_error_and_the_session_goes_on(tool: str) -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()
        answer = await client.post(call(tool, id_=7), **session)
        assert (answer.status, answer.error_code, answer.json["id"]) == (500, messages.INTERNAL_ERROR, 7)
        assert answer.json["error"]["message"] == "Internal error."
        assert [type(event) for event in served.events] == [InternalFailure]
        assert (await client.post(call("echo", id_=7), **session)).status == 200


@pytest.mark.parametrize("tool", ["unwritable", "unwritable_later"])
async def test_an_answer_that_can_not_be_written_to_its_stream_ends_that_connection_and_no_other(tool: str) -> None:
    async with serving() as served, served.client() as broken, served.client() as other:
        session = await served.session()
        await broken.send(post(call(tool, {"notices": 1}, 7), **session))
        assert not (await broken.rest()).endswith(b"0\r\n\r\n")
        assert [type(event) for event in served.events] == [InternalFailure]
        assert (await other.post(call("echo", id_=7), **session)).status == 200


@pytest.mark.parametrize("tool", ["unwritable", "unwritable_later"])
async def test_a_batch_with_an_answer_that_can_not_be_written_is_an_internal_error(tool: str) -> None:
    async with serving() as served, served.client() as client:
        session = await served.session("2025-03-26")
        for elements in ([call(tool, id_=1), call("echo", id_=2)], [call("later", id_=1), call(tool, id_=2)]):
            answer = await client.post(elements, **session)
            assert (answer.status, answer.error_code, answer.json["id"]) == (500, messages.INTERNAL_ERROR, None)
            assert (await client.post(call("echo", id_=3), **session)).status == 200
        await until(lambda: not served.frontend.sessions.all()[0].running)
        assert [type(event) for event in served.events] == [InternalFailure] * 2


async def test_a_handshake_whose_answer_can_not_be_written_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as served, served.client() as client:

        def full(*args: Any) -> None:
            raise RuntimeError("no session can be opened")

        with monkeypatch.context() as patch:
            patch.setattr(served.frontend.sessions, "open", full)
            answer = await client.post(initialize())
        assert (answer.status, answer.error_code, answer.json["id"]) == (500, messages.INTERNAL_ERROR, 1)
        assert answer.header("mcp-session-id") is None
        assert (await client.post(initialize())).status == 200


async def test_a_session_runs_only_so_many_requests_at_once() -> None:
    async with serving() as served:
        session = await served.session("2025-03-26")
        async with served.client() as first, served.client() as second, served.client() as third:
            for number, client in enumerate((first, second, third)):
                hundred = [call("hang", id_=100 * number + each) for each in range(100)]
                await client.send(post(hundred, **session))
            await until(lambda: served.kernel.running == 256)
            served.kernel.release.set()
            answers = [each for client in (first, second, third) for each in (await client.answer()).json]
        assert len(answers) == 300
        assert sum("error" in each for each in answers) == 44


@pytest.mark.requirement("S4/FMT-ERR")
@pytest.mark.parametrize("id_", [1, -5, 2**64, "1", "a b", "é"])
async def test_an_error_echoes_the_id_with_its_type(id_: int | str) -> None:
    async with serving() as served:
        session = await served.session()
        answer = await served.ask(post(call("fail", id_=id_), **session))
        assert answer.json["id"] == id_
        assert type(answer.json["id"]) is type(id_)
        assert "error" in answer.json


async def ready(served: Served, path: str = "/mcp") -> dict[str, str]:
    session = await served.session(path=path)
    assert (await served.ask(post(notification("notifications/initialized"), path, **session))).status == 202
    return session


async def test_a_changed_list_is_told_to_the_sessions_of_its_path_that_listen() -> None:
    async with serving() as served, served.client() as merged, served.client() as alone:
        for client, path in ((merged, "/mcp"), (alone, "/mcp/files")):
            await client.send(get(path, accept=STREAM, **await ready(served, path)))
            await client.head()
        await ready(served)  # one that has no stream: it can't be told, and nothing is kept for it
        [sessions] = served.kernel.audiences
        sessions.tell("notifications/tools/list_changed", lambda reader: reader.scope == "files")
        sessions.tell("notifications/prompts/list_changed", lambda reader: reader.scope is None)
        assert (await data(alone))["method"] == "notifications/tools/list_changed"
        assert (await data(merged))["method"] == "notifications/prompts/list_changed"
        assert len(served.frontend.sessions.streaming) == 2


async def test_a_session_without_a_standing_stream_is_told_on_one_that_is_open() -> None:
    async with serving() as served, served.client() as client:
        session = await ready(served)
        await client.send(post(call("stepwise"), **session))
        await client.head()
        await data(client)
        served.frontend.sessions.tell("notifications/tools/list_changed", lambda reader: True)
        assert (await data(client))["method"] == "notifications/tools/list_changed"
        served.kernel.release.set()
        assert "progress" in (await data(client))["params"]
        assert "result" in await data(client)


async def test_what_a_session_that_does_not_read_was_not_told_is_counted() -> None:
    async with serving() as served, served.client() as client:
        session = await ready(served)
        await client.send(listen(session))
        await client.head()
        [known] = served.frontend.sessions.all()
        for _ in range(200):
            known.notify("notifications/message", b'{"data":"' + b"x" * 65536 + b'"}')
        assert served.frontend.drops.count > 0


async def test_the_kernel_learns_of_every_session_that_ends_and_how_to_reach_its_caller() -> None:
    async with serving() as served:
        session = await ready(served)
        await served.ask(post(call("echo"), **session))
        [known] = served.frontend.sessions.all()
        who = served.kernel.callers[-1]
        assert who.session == known.handle
        assert who.standing is known
        assert (await served.ask(delete(**session))).status == 200
        assert served.kernel.ended_sessions == [known.handle]
