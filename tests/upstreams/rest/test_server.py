"""REST endpoints behind the whole gateway, over a real HTTP server: the tables of the failure model, redirects, credentials, limits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.sections.limits import Timeouts
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Event, RequestFinished
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.versions import Era
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import named_origins
from pactgate.upstreams.rest.server import RestServer, written_api
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.callers import caller
from tests.support.rest_api import Api, endpoint, plain, raw, serving
from tests.support.scripted_http import LIMIT_S, Peer, ReceivedRequest, ScriptedHttp, answer

SECRET = "Bearer s3cr3t-token-value"


@asynccontextmanager
async def gateway(api: Api, *endpoints: Any, **settings: Any) -> AsyncIterator[Inside]:
    own = {name: settings.pop(name) for name in list(settings) if name in Config.__struct_fields__}
    async with open_gateway(api.config(*endpoints, **settings), **own) as inside:
        yield inside


async def ask(inside: Inside, name: str = "shop.ask", **arguments: Any) -> dict[str, Any]:
    reply = await inside.call(name, arguments)
    assert reply.result is not None, reply.error
    found: dict[str, Any] = json.loads(reply.result)
    return found


def failure_of(result: dict[str, Any]) -> dict[str, Any]:
    assert result["isError"] is True
    assert result["content"][0]["type"] == "text"
    found: dict[str, Any] = result["_meta"]["dev.pactgate/envelope"]["failure"]
    return found


# What a call is.


async def test_a_tool_is_listed_and_called_with_the_operators_credentials_only() -> None:
    async with serving() as api, gateway(api, headers={"Authorization": SECRET}) as inside:
        listed = await inside.ask("tools/list")
        assert listed.result is not None
        (tool,) = json.loads(listed.result)["tools"]
        assert tool["name"] == "shop__get_item"
        result = await ask(inside, "shop.get_item", id="a b")
    assert result["structuredContent"] == {"id": "7"}
    (request,) = api.requests
    assert (request.method, request.path) == ("GET", "/items/a%20b")
    assert request.headers["authorization"] == SECRET
    assert sorted(request.names) == ["Accept", "Accept-Encoding", "Authorization", "Host", "User-Agent"]


async def test_a_body_goes_out_once_and_whole() -> None:
    post = plain(method="POST", body={"schema": {"type": "object", "properties": {"n": {"type": "number"}}}})
    async with serving(answer({"ok": True}, status="201 Created")) as api, gateway(api, post) as inside:
        await ask(inside, n=1)
    (request,) = api.requests
    assert (request.method, request.body, request.headers["content-length"]) == ("POST", b'{"n":1}', "7")
    assert request.headers["content-type"] == "application/json"


async def test_an_operator_may_ask_for_another_media_type() -> None:
    async with serving() as api, gateway(api, plain(), headers={"Accept": "application/vnd.github+json"}) as inside:
        await ask(inside)
    assert api.requests[0].headers["accept"] == "application/vnd.github+json"


async def test_connections_are_kept_between_calls() -> None:
    async with serving() as api, gateway(api, plain()) as inside:
        for _ in range(5):
            await ask(inside)
        assert (len(api.requests), api.server.connections) == (5, 1)


async def test_the_verb_and_the_host_are_told_to_the_audit() -> None:
    async with serving() as api:
        config = api.config(plain())
        client = HttpClient()
        server = RestServer(config, written_api(config), client, max_body_bytes=1000)
        result = json.loads(await server.call("ask", {}))
        assert result["_meta"] == {"dev.pactgate/operations": [{"kind": "network", "target": "GET 127.0.0.1"}]}
        with pytest.raises(GatewayFailure) as raised:
            await server.call("nothing", raw({}))
        assert raised.value.kind is Kind.UNKNOWN_TOOL
        await server.close()
        with pytest.raises(GatewayFailure) as ended:
            await server.call("ask", {})
        assert ended.value.kind is Kind.CONNECTION_LOST
        await client.close()


# Contract violations: nothing leaves.


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize(
    "arguments", [{}, {"id": 5}, {"id": "1", "more": 1}, {"id": "../x"}, {"id": "//host"}, {"id": ""}]
)
async def test_bad_arguments_are_refused_before_anything_is_sent(arguments: dict[str, Any]) -> None:
    async with serving() as api, gateway(api) as inside:
        reply = await inside.call("shop.get_item", arguments)
        assert reply.error is not None
        assert reply.error.code == -32602
        assert reply.error.data["failure_mode"] == "invalid_arguments"
        assert reply.error.data["tool"] == "shop.get_item"
        assert reply.error.data["verdict"] == "did_not_run"
        assert (api.requests, api.server.connections) == ([], 0)


# Upstream failures: a result that says so.


@pytest.mark.requirement("S4/F2")
@pytest.mark.parametrize(
    "status", ["400 Bad Request", "404 Not Found", "500 Oops", "503 Busy", "302 Found", "304 Not Modified"]
)
@pytest.mark.parametrize("era", list(Era))
async def test_a_bad_status_is_a_tool_error_sent_once_and_the_gateway_stays_well(status: str, era: Era) -> None:
    who = caller(era)
    async with (
        serving(answer("the body", status, "text/plain", Location="/other")) as api,
        gateway(api, plain()) as inside,
    ):
        reply = await inside.call("shop.ask", {}, who=who)
        assert reply.result is not None
        failure = failure_of(json.loads(reply.result))
        assert (failure["failure_mode"], failure["category"]) == ("http_status", "upstream_failure")
        assert failure["status"] == int(status[:3])
        assert failure.get("body", "the body") == "the body"
        assert len(api.requests) == 1
        record = next(event.record for event in inside.events if isinstance(event, RequestFinished))
        assert record.outcome == "http_status"
        assert record.failure is not None
        assert record.failure["category"] == "upstream_failure"


@pytest.mark.requirement("S4/F2")
@pytest.mark.requirement("S4/R3")
@pytest.mark.parametrize(
    ("answered", "mode"),
    [
        (answer(b""), "empty_response"),
        (answer(b"null"), "empty_response"),
        (answer(b"<html>log in</html>", content_type="text/html"), "non_json_response"),
        (answer(b'{"id": 7}'), "schema_mismatch"),
        (answer(b"[]"), "schema_mismatch"),
        (answer(b"\x1f\x8b", Content_Encoding="gzip"), "undecodable_response"),
    ],
)
async def test_nothing_odd_is_made_to_look_like_success(answered: bytes, mode: str) -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
    wants = {} if mode == "empty_response" else {"outputSchema": schema}
    async with serving(answered) as api, gateway(api, plain(**wants)) as inside:
        failure = failure_of(await ask(inside))
        assert (failure["failure_mode"], failure["code"]) == (mode, "INVALID_OUTPUT")
        assert len(api.requests) == 1


@pytest.mark.requirement("S4/UNDECIDED-3")
async def test_an_answer_is_held_against_its_schema_and_marked_as_validated_or_not() -> None:
    schema = {"type": "object", "required": ["id"]}
    async with serving(answer({"other": 1})) as api:
        async with gateway(api, plain(outputSchema=schema)) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "schema_mismatch"
        async with gateway(api, plain(outputSchema=schema), output_validation="off") as inside:
            result = await ask(inside)
            assert result["structuredContent"] == {"other": 1}
            assert result["_meta"]["dev.pactgate/envelope"]["validated"] is False
        async with gateway(api, plain(outputSchema={"type": "object"})) as inside:
            assert (await ask(inside))["_meta"]["dev.pactgate/envelope"]["validated"] is True


@pytest.mark.requirement("S4/R3")
@pytest.mark.parametrize(
    ("wants", "pointers"),
    [
        ({"outputSchema": {"type": "object", "required": ["id"], "properties": {"n": {"type": "string"}}}}, ["/n", ""]),
        ({"outputSchema": {"type": "array"}}, [""]),
        ({"outputSchema": {"type": "object", "$ref": "#/$defs/none"}}, [""]),
        ({"expect": {"required": ["id", "/owner/id"]}}, ["/id", "/owner/id"]),
        ({"expect": {"required": [f"m{number}" for number in range(50)]}}, [f"/m{number}" for number in range(10)]),
    ],
)
async def test_a_response_that_misses_fields_is_passed_on_and_never_in_silence(
    wants: dict[str, Any], pointers: list[str]
) -> None:
    async with (
        serving(answer({"n": 1})) as api,
        gateway(api, plain(**wants), output_validation="warn") as inside,
    ):
        for count in (1, 2):
            result = await ask(inside)
            envelope = result["_meta"]["dev.pactgate/envelope"]
            assert (result["structuredContent"], envelope["validated"]) == ({"n": 1}, False)
            assert sorted(error["pointer"] for error in envelope["outputErrors"]) == sorted(pointers)
            assert b'event="OutputMismatched"} %d' % count in inside.gateway.facts.render_metrics()[0]
        listed = await inside.ask("tools/list")
        assert b"outputSchema" not in (listed.result or b"")
        story = inside.gateway.observers.stories.get(envelope["requestId"])
        assert story is not None
        assert len(story["outputErrors"]) == len(pointers)
        (tool,) = inside.gateway.snapshot()["tools"]
        assert tool["outputValidation"] == "warn"


@pytest.mark.requirement("S4/R3")
async def test_a_response_that_fits_is_marked_as_validated_also_where_others_would_be_passed_on() -> None:
    schema = {"type": "object", "required": ["id"]}
    async with (
        serving(answer({"id": 1})) as api,
        gateway(api, plain(outputSchema=schema), output_validation="warn") as inside,
    ):
        envelope = (await ask(inside))["_meta"]["dev.pactgate/envelope"]
        assert envelope["validated"] is True
        assert "outputErrors" not in envelope


@pytest.mark.requirement("S4/R3")
async def test_an_endpoint_may_set_its_own_mode_and_off_is_shown() -> None:
    schema = {"type": "object", "required": ["id"]}
    async with serving(answer({"n": 1})) as api:
        async with gateway(api, plain(outputSchema=schema, outputValidation="off")) as inside:
            assert (await ask(inside))["structuredContent"] == {"n": 1}
            (tool,) = inside.gateway.snapshot()["tools"]
            assert tool["outputValidation"] == "off"
        async with gateway(
            api, plain(outputSchema=schema, outputValidation="enforce"), output_validation="off"
        ) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "schema_mismatch"


@pytest.mark.requirement("S4/UNDECIDED-1")
@pytest.mark.requirement("S4/UNDECIDED-4")
async def test_the_operator_may_take_emptiness_and_other_text_for_answers() -> None:
    async with serving(answer(b"")) as api, gateway(api, plain(), empty_response="allow") as inside:
        assert (await ask(inside))["content"][0]["text"] == "No content (HTTP 200)."
    async with (
        serving(answer(b"hello", content_type="text/plain")) as api,
        gateway(api, plain(), non_json="text") as inside,
    ):
        assert (await ask(inside))["content"][0]["text"] == "hello"


# Transport failures.


@pytest.mark.requirement("S4/F3")
async def test_a_refused_connection_is_a_tool_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = ServerConfig(id="shop", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}", endpoints=(plain(),))
        async with open_gateway(dead) as inside:
            failure = failure_of(await ask(inside))
    assert (failure["failure_mode"], failure["category"]) == ("connection_failed", "transport_failure")
    assert failure["verdict"] == "did_not_run"
    assert "127.0.0.1" not in json.dumps(failure)


@pytest.mark.requirement("S4/F3")
@pytest.mark.requirement("S4/NONGOALS")
@pytest.mark.parametrize(
    ("piece", "mode"),
    [
        (b"", "connection_lost"),
        (b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"a":', "connection_lost"),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n', "connection_lost"),
        (b"this is not HTTP\r\n\r\n", "invalid_frame"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "invalid_frame"),
    ],
)
async def test_a_broken_transfer_is_a_transport_failure_and_is_not_repeated(piece: bytes, mode: str) -> None:
    requests: list[ReceivedRequest] = []

    async def play(peer: Peer) -> None:
        requests.append(await peer.request())
        await peer.send(piece)

    async with ScriptedHttp(play) as server, gateway(Api(server), plain()) as inside:
        failure = failure_of(await ask(inside))
    assert (failure["failure_mode"], failure["category"]) == (mode, "transport_failure")
    assert failure["verdict"] == "may_have_run"
    assert len(requests) == 1


@pytest.mark.requirement("S4/F3")
@pytest.mark.parametrize("piece", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_silence_in_any_phase_is_a_timeout(piece: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(piece)
        await peer.gone()

    limits = Timeouts(tool_overrides={"shop.ask": 1000})
    async with ScriptedHttp(play) as server, gateway(Api(server), plain(), timeouts=limits) as inside:
        reply = await inside.call("shop.ask", {}, _meta={"dev.pactgate/timeoutMs": 100})
        assert reply.error is not None
        assert (reply.error.code, reply.error.data["failure_mode"]) == (-32603, "timeout")
        assert reply.error.data["tool"] == "shop.ask"
        assert reply.error.data["verdict"] == "may_have_run"


async def test_interim_answers_are_passed_over_and_event_streams_read_whole() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    async with serving(early + answer({"a": 1})) as api, gateway(api, plain()) as inside:
        assert (await ask(inside))["structuredContent"] == {"a": 1}
    stream = answer(b"data: 1\n\n", content_type="text/event-stream")
    async with serving(stream) as api, gateway(api, plain(response="text")) as inside:
        assert (await ask(inside))["content"][0]["text"] == "data: 1\n\n"


async def test_head_has_no_body_whatever_its_length_says() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nETag: x\r\n\r\n"
    async with serving(head) as api, gateway(api, plain(method="HEAD", response="none")) as inside:
        for _ in range(2):
            assert (await ask(inside))["content"][0]["text"] == "HTTP 200\ncontent-length: 5000\netag: x"


async def test_a_head_that_came_before_says_the_same_again_and_has_no_body_for_head() -> None:
    whole = answer({"a": 1})
    async with serving(whole) as api, gateway(api, plain()) as inside:
        assert [(await ask(inside))["structuredContent"] for _ in range(3)] == [{"a": 1}] * 3
    head = whole[: whole.index(b"\r\n\r\n") + 4]
    async with serving(head) as api, gateway(api, plain(method="HEAD", response="none")) as inside:
        assert (await ask(inside))["content"][0]["text"].startswith("HTTP 200")


@pytest.mark.requirement("S4/R3")
async def test_an_answer_beyond_the_bound_is_refused_and_never_cut() -> None:
    async with serving(answer({"text": "x" * 5000})) as api:
        config = api.config(plain())
        client = HttpClient()
        server = RestServer(config, written_api(config), client, max_body_bytes=1000)
        with pytest.raises(GatewayFailure) as raised:
            await server.call("ask", {})
        assert (raised.value.kind, raised.value.tool) == (Kind.RESPONSE_TOO_LARGE, "shop.ask")
        await client.close()


# Redirects.


def redirecting(location: str, status: str = "302 Found") -> Any:
    def respond(request: ReceivedRequest) -> bytes:
        if request.path == "/ask":
            return answer(b"", status, None, Location=location)
        return answer({"path": request.path})

    return respond


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_followed_only_where_allowed(status: str) -> None:
    async with serving(redirecting("/other?x=1#y", status)) as api:
        async with gateway(api, plain(), headers={"Authorization": SECRET}) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "http_status"
            assert len(api.requests) == 1
        async with gateway(api, plain(), headers={"Authorization": SECRET}, follow_redirects=1) as inside:
            assert (await ask(inside))["structuredContent"] == {"path": "/other?x=1"}
    assert api.requests[-1].headers["authorization"] == SECRET


async def test_a_chain_longer_than_allowed_is_a_failure() -> None:
    async with serving(answer(b"", "302 Found", None, Location="/ask")) as api:
        async with gateway(api, plain(), follow_redirects=3) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "http_status"
        assert len(api.requests) == 4


async def test_credentials_never_follow_to_another_origin() -> None:
    async with serving() as other, serving(redirecting(f"{other.origin}/x")) as api:
        named = endpoint(
            name="ask", path="/ask", parameters=[{"name": "X-Key", "in": "header", "schema": {"type": "string"}}]
        )
        own = {"Authorization": SECRET, "X-Own": "own"}
        allowed = (other.origin.removeprefix("http://"),)
        async with gateway(api, named, headers=own, follow_redirects=1, allowed_hosts=allowed) as inside:
            await ask(inside, **{"X-Key": "callers"})
    (request,) = other.requests
    assert sorted(request.names) == ["Accept", "Accept-Encoding", "Host", "User-Agent"]


@pytest.mark.parametrize(
    "location",
    [
        *(
            "http://localhost:1/x",
            "https://[::1]/x",
            "//2130706433/x",
            "https://169.254.169.254/latest",
            "http://other.example/",
        ),
        *("https://api.example@127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1/", "https://[::ffff:10.0.0.1]/"),
    ],
)
async def test_a_redirect_inward_is_refused(location: str) -> None:
    async with serving(redirecting(location)) as api, gateway(api, plain(), follow_redirects=5) as inside:
        failure = failure_of(await ask(inside))
        assert failure["failure_mode"] in ("destination_refused", "http_status")
        assert failure["verdict"] == "may_have_run"
        assert len(api.requests) == 1


async def test_a_host_the_operator_allows_may_be_redirected_to() -> None:
    async with serving(host="localhost") as other, serving(redirecting(f"{other.origin}/x")) as api:
        async with gateway(api, plain(), follow_redirects=1) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "destination_refused"
        async with gateway(api, plain(), follow_redirects=1, allowed_hosts=("localhost",)) as inside:
            assert failure_of(await ask(inside))["failure_mode"] == "destination_refused"
        allowed = (other.origin.removeprefix("http://"),)
        async with gateway(api, plain(), follow_redirects=1, allowed_hosts=allowed) as inside:
            assert (await ask(inside))["structuredContent"] == {"id": "7"}


async def test_another_port_of_a_named_host_is_another_place() -> None:
    """Behind another port of the same host may be the gateway's own API."""
    async with (
        serving() as neighbour,
        serving(redirecting(f"{neighbour.origin}/api/calls")) as api,
        gateway(api, plain(), follow_redirects=3) as inside,
    ):
        assert failure_of(await ask(inside))["failure_mode"] == "destination_refused"
    assert neighbour.requests == []


@pytest.mark.parametrize(
    ("status", "location", "is_followed"),
    [
        ("303 See Other", "/other", True),
        ("307 Temporary", "/other", True),
        ("302 Found", "/other", False),
        ("301 Moved", "/other", False),
        ("307 Temporary", "https://other.example/other", False),
    ],
)
async def test_a_change_is_sent_again_only_where_the_first_place_says_it_did_nothing(
    status: str, location: str, is_followed: bool
) -> None:
    post = plain(method="POST", parameters=[{"name": "n", "in": "body", "schema": {}}])
    async with serving(redirecting(location, status)) as api, gateway(api, post, follow_redirects=1) as inside:
        result = await ask(inside, n=1)
    if not is_followed:
        assert failure_of(result)["failure_mode"] == "http_status"
        assert len(api.requests) == 1
        return
    assert result["structuredContent"] == {"path": "/other"}
    again = api.requests[-1]
    assert (again.method, again.body) == (("GET", b"") if status.startswith("303") else ("POST", b'{"n":1}'))


@pytest.mark.parametrize("location", ["", "\\\\host", "http://[::1"])
async def test_a_redirect_that_leads_nowhere_is_a_failure(location: str) -> None:
    async with serving(redirecting(location)) as api, gateway(api, plain(), follow_redirects=1) as inside:
        assert failure_of(await ask(inside))["verdict"] == "may_have_run"


# Several APIs, and the end.


async def test_an_endpoint_may_have_a_base_url_of_its_own() -> None:
    async with serving(answer({"from": "other"})) as other, serving() as api:
        far = plain(name="far", baseUrl=f"{other.origin}/v2")
        async with gateway(api, plain(), far) as inside:
            assert (await ask(inside, "shop.far"))["structuredContent"] == {"from": "other"}
            assert (await ask(inside))["structuredContent"] == {"id": "7"}
    assert other.requests[0].path == "/v2/ask"


async def test_credentials_never_go_to_a_host_that_only_a_document_names() -> None:
    async with serving() as api:
        config = api.config(plain(), plain(name="far", baseUrl="https://elsewhere.example"), headers={"X-Key": SECRET})
        described = replace(written_api(config), named_origins=named_origins([api.origin], ()))
        client = HttpClient()
        server = RestServer(config, described, client, max_body_bytes=1000)
        with pytest.raises(GatewayFailure) as raised:
            await server.call("far", {})
        assert raised.value.kind is Kind.DESTINATION_REFUSED
        assert json.loads(await server.call("ask", {}))["structuredContent"] == {"id": "7"}
        await client.close()


async def test_a_caller_who_gives_up_ends_the_exchange() -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.gone()
        left.set()

    events: list[Event] = []
    async with ScriptedHttp(play) as server, gateway(Api(server), plain()) as inside:
        calling = asyncio.create_task(inside.call("shop.ask", {}))
        async with asyncio.timeout(LIMIT_S):
            await arrived.wait()
            calling.cancel()
            await asyncio.wait({calling})
            await left.wait()
        events = inside.events
    assert [event.record.outcome for event in events if isinstance(event, RequestFinished)] == ["cancelled"]
