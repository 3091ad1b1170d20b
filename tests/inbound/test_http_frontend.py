from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from pactgate.config.sections.auth import token_digest
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.inbound.auth import Guard
from pactgate.inbound.credentials import Credential
from pactgate.protocol import messages
from pactgate.protocol.versions import LEGACY_VERSIONS
from tests.support.facing import (
    META,
    ReachesAll,
    call,
    credentials,
    initialize,
    message,
    modern,
    notification,
    serving,
    until,
)
from tests.support.raw_http import get, post, request


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//mcp",
        "/mcp/",
        "/mcp//",
        "/mcp/../mcp",
        "/./mcp",
        "/%6dcp",
        "/MCP",
        "/mcp%2ffiles",
        "/mcp/files/",
        "/mcp/files/x",
        "/mcp/%66iles",
        "/mcp/Files",
        "/mcp/../files",
        "/mcp/unknown",
        "/mcp;x",
        "/api",
        "/api/",
        "/api/servers/",
        "/health/",
        "/admin",
    ],
)
async def test_only_the_exact_paths_exist(path: str) -> None:
    async with serving() as served:
        answer = await served.ask(modern("tools/call", path, name="echo"))
        assert answer.status == 404
        assert "error" in answer.json
        assert served.kernel.callers == []
        await served.still_serves()


async def test_a_query_does_not_change_the_path() -> None:
    async with serving() as served:
        assert (await served.ask(modern("tools/call", "/mcp?x=/health", name="echo"))).status == 200


async def test_a_path_of_a_server_limits_the_caller_to_it() -> None:
    async with serving() as served:
        assert (await served.ask(modern("tools/call", "/mcp/files", name="echo"))).status == 200
        assert (await served.ask(modern("tools/call", "/mcp", name="echo"))).status == 200
        assert [caller.scope for caller in served.kernel.callers] == ["files", None]
        unknown = await served.ask(modern("tools/call", "/mcp/none", name="echo"))
        assert (unknown.status, unknown.error_code) == (404, messages.INVALID_PARAMS)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD"])
async def test_other_methods_are_refused_with_those_that_are_served(method: str) -> None:
    async with serving() as served, served.client() as client:
        await client.send(request(method, "/mcp", {"host": "localhost"}))
        answer = await client.head()
        assert (answer.status, answer.header("allow")) == (405, "GET, POST, DELETE, OPTIONS")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_belong_to_sessions(method: str) -> None:
    async with serving() as served:
        headers = {"host": "localhost", "accept": "text/event-stream", "mcp-protocol-version": "2026-07-28"}
        answer = await served.ask(request(method, "/mcp", headers))
        assert (answer.status, answer.header("allow")) == (405, "POST")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ('application/json;charset="utf-8"', 200),
        ("-", 415),
        ("", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json; charset=utf-16", 415),
        ("application/jsonx", 415),
        ("application/json, text/plain", 415),
        ("x" * 5000, 415),
    ],
)
async def test_only_json_is_read(content_type: str, status: int) -> None:
    async with serving() as served:
        assert (await served.ask(modern("tools/call", name="echo", content_type=content_type))).status == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("-", 200),
        ("application/json, text/event-stream", 200),
        ("application/json", 200),
        ("text/event-stream", 200),
        ("*/*", 200),
        ("text/html, */*;q=0.1", 200),
        ("Application/*", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("application/json; q=0.000, text/html", 406),
        ("", 406),
        ("x" * 5000, 406),
    ],
)
async def test_a_client_must_take_what_can_be_answered(accept: str, status: int) -> None:
    async with serving() as served:
        assert (await served.ask(modern("tools/call", name="echo", accept=accept))).status == status


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", messages.PARSE_ERROR),
        (b"   ", messages.PARSE_ERROR),
        (b"{", messages.PARSE_ERROR),
        (b'{"jsonrpc":"2.0"} {}', messages.PARSE_ERROR),
        (b"\xff", messages.PARSE_ERROR),
        (b"[" * 100_000, messages.PARSE_ERROR),
        (b"[]", messages.INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', messages.INVALID_REQUEST),
        (b'"ping"', messages.INVALID_REQUEST),
        (b"{}", messages.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"Method":"ping"}', messages.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', messages.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', messages.INVALID_REQUEST),
    ],
)
async def test_what_is_no_message_is_answered_with_its_code(body: bytes, code: int) -> None:
    async with serving() as served:
        answer = await served.ask(post(body))
        assert (answer.status, answer.error_code) == (400, code)
        await served.still_serves()


# -- which era


async def test_an_envelope_makes_a_request_modern_whatever_session_it_names() -> None:
    async with serving() as served:
        answer = await served.ask(modern("tools/call", name="echo", mcp_session_id="no-such-session"))
        assert answer.status == 200
        assert answer.header("mcp-session-id") is None


async def test_an_envelope_under_a_legacy_header_is_a_mismatch() -> None:
    async with serving() as served:
        answer = await served.ask(modern("tools/call", name="echo", mcp_protocol_version="2025-11-25"))
        assert (answer.status, answer.error_code) == (400, messages.HEADER_MISMATCH)


@pytest.mark.parametrize("version", ["2026-07-28", "2099-01-01", "junk", "", "1.0", "' OR 1=1", "x" * 5000])
async def test_a_version_header_that_is_no_legacy_one_is_judged_as_modern(version: str) -> None:
    async with serving() as served:
        bare = await served.ask(post(message("tools/list"), mcp_protocol_version=version))
        assert (bare.status, bare.error_code) == (400, messages.INVALID_PARAMS)
        enveloped = post(message("tools/list", {"_meta": META}), mcp_protocol_version=version, mcp_method="tools/list")
        assert (await served.ask(enveloped)).status == (200 if version == "2026-07-28" else 400)
        await served.still_serves()


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_initialize_without_an_envelope_is_legacy(version: str) -> None:
    async with serving() as served:
        answer = await served.ask(post(initialize(version), mcp_protocol_version=version))
        assert answer.status == 200
        assert answer.json["result"]["protocolVersion"] == version
        assert answer.header("mcp-session-id") is not None


async def test_without_envelope_and_session_the_handshake_is_asked_for() -> None:
    async with serving() as served:
        for body in (
            call("echo", id_="seven"),
            notification("notifications/initialized"),
            {"jsonrpc": "2.0", "id": 1, "result": {}},
        ):
            answer = await served.ask(post(body))
            assert (answer.status, answer.error_code) == (400, messages.INVALID_REQUEST)
            assert answer.json["id"] == (body["id"] if "method" in body and "id" in body else None)
        assert served.kernel.callers == []


async def test_both_eras_are_served_on_one_connection() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.client() as client:
            for _ in range(3):
                assert (await client.ask(modern("tools/call", name="echo"))).status == 200
                assert (await client.post(call("echo"), **session)).status == 200
        assert {caller.era.value for caller in served.kernel.callers} == {"modern", "legacy"}


# -- heads that repeat


async def test_a_head_that_was_admitted_admits_nobody_with_another_token() -> None:
    guard = Guard(
        host="127.0.0.1",
        credentials=credentials({"a" * 32: ("anna", frozenset()), "b" * 32: ("bert", frozenset({"admin"}))}),
    )
    async with serving(guard=guard) as served:
        for _ in range(3):
            for token, status in (("a", 200), ("x", 401), ("b", 200)):
                request_ = modern("tools/call", name="echo", authorization="Bearer " + token * 32)
                assert (await served.ask(request_)).status == status
            assert (await served.ask(modern("tools/call", name="echo"))).status == 401
        assert [caller.principal.key for caller in served.kernel.callers] == ["anna", "bert"] * 3


async def test_a_head_that_names_a_server_is_served_only_while_there_is_that_server() -> None:
    servers = {"files"}
    async with serving(reach=ReachesAll(servers)) as served, served.client() as client:
        scoped = modern("tools/call", "/mcp/files", name="echo")
        assert (await client.ask(scoped)).status == 200
        servers.clear()
        assert (await client.ask(scoped)).status == 404
        servers.add("files")
        assert (await client.ask(scoped)).status == 200


async def test_a_head_that_was_refused_once_is_refused_again() -> None:
    async with serving() as served, served.client() as client:
        for _ in range(3):
            assert (await client.ask(modern("tools/call", name="echo", content_type="text/plain"))).status == 415
            assert (await client.ask(modern("tools/call", name="echo", host="elsewhere.example"))).status == 421
            assert (await client.ask(modern("tools/call", name="echo", accept="text/html"))).status == 406
        assert served.kernel.callers == []


async def test_what_one_answer_adds_to_its_head_is_not_in_the_next() -> None:
    guard = Guard(host="127.0.0.1", origins=["http://localhost:1", "http://localhost:2"], anonymous=True)
    async with serving(guard=guard) as served, served.client() as client:
        for origin in ("http://localhost:1", "http://localhost:2"):
            for _ in range(2):
                answer = await client.ask(modern("tools/call", name="echo", origin=origin))
                assert answer.header("access-control-allow-origin") == origin
            assert (await client.ask(modern("tools/call", name="echo"))).header("access-control-allow-origin") is None


async def test_a_get_of_a_page_is_not_found() -> None:
    async with serving() as served:
        assert (await served.ask(get("/favicon.ico"))).status == 404


@pytest.mark.parametrize("tool", ["echo", "steps", "later"])
async def test_a_request_leaves_nothing_behind_for_the_garbage_collector(tool: str) -> None:
    async with serving() as served, served.client() as client:
        session = await served.session()

        async def ask() -> None:
            assert (await client.ask(modern("tools/call", name=tool, arguments={"count": 1}))).status == 200
            assert (await client.post(call(tool, {"count": 1}), **session)).status == 200

        await ask()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await ask()
            served.kernel.callers.clear()  # the fake kernel remembers them: what they hold is what a request leaves behind
            assert gc.collect() == 0
        finally:
            gc.enable()


# -- credentials that are taken away

ANN, BOB, NEW = ("Bearer " + name * 8 for name in ("ann-", "bob-", "new-"))
HOLDERS = {
    ANN.removeprefix("Bearer "): ("ann", frozenset[str]()),
    BOB.removeprefix("Bearer "): ("bob", frozenset({"admin"})),
}


def held(*taken: str, **facts: Any) -> Guard:
    """A guard that knows everybody but those taken away."""
    known = {token: holder for token, holder in HOLDERS.items() if holder[0] not in taken}
    return Guard(host="127.0.0.1", credentials=credentials({**known, **facts}))


async def test_a_token_that_is_taken_away_is_refused_on_the_connection_it_was_good_on() -> None:
    async with serving(guard=held()) as served, served.client() as ann, served.client() as bob:
        for client, token in ((ann, ANN), (bob, BOB)):
            for _ in range(3):
                assert (await client.ask(modern("tools/call", name="echo", authorization=token))).status == 200
        served.frontend.replace_guard(held("bob"))
        assert (await bob.ask(modern("tools/call", name="echo", authorization=BOB))).status == 401
        assert (await ann.ask(modern("tools/call", name="echo", authorization=ANN))).status == 200
        assert (await bob.ask(modern("tools/call", name="echo", authorization=ANN))).status == 200


async def test_a_changed_role_is_felt_by_the_next_call_of_the_same_connection() -> None:
    async with serving(guard=held()) as served, served.client() as client:
        await client.ask(modern("tools/call", name="echo", authorization=BOB))
        served.frontend.replace_guard(held("bob", **{BOB.removeprefix("Bearer "): ("bob", frozenset())}))
        await client.ask(modern("tools/call", name="echo", authorization=BOB))
        assert [caller.principal.roles for caller in served.kernel.callers] == [frozenset({"admin"}), frozenset()]


@pytest.mark.parametrize("tool", ["hang", "stepwise"])
async def test_a_modern_call_of_a_token_that_is_taken_away_ends_and_others_go_on(tool: str) -> None:
    async with serving(guard=held()) as served, served.client() as ann, served.client() as bob:
        await bob.send(modern("tools/call", name=tool, authorization=BOB))
        await ann.send(modern("tools/call", name="later", authorization=ANN))
        await until(lambda: served.kernel.running > 0)
        served.frontend.replace_guard(held("bob"))
        ended = await bob.answer()
        assert b"no longer valid" in ended.body
        assert (await ann.answer()).status == 200
        await until(lambda: served.kernel.running == 0)


async def test_sessions_and_their_streams_end_with_the_token_and_with_a_changed_role() -> None:
    for after in (held("bob"), held("bob", **{BOB.removeprefix("Bearer "): ("bob", frozenset())})):
        async with serving(guard=held()) as served, served.client() as stream, served.client() as other:
            mine = await served.session(authorization=BOB)
            theirs = await served.session(authorization=ANN)
            await stream.send(get("/mcp", **mine))
            await other.send(get("/mcp", **theirs))
            assert ((await stream.head()).status, (await other.head()).status) == (200, 200)
            served.frontend.replace_guard(after)
            assert await stream.chunk() == b""
            assert (await served.ask(post(message("ping"), **mine))).status in (401, 404)
            assert (await served.ask(post(message("ping"), **theirs))).status == 200
            assert len(served.frontend.sessions) == 1


async def test_a_call_in_a_session_ends_with_the_token_and_is_told_so() -> None:
    async with serving(guard=held()) as served, served.client() as client:
        session = await served.session(authorization=BOB)
        await client.send(post(call("hang"), **session))
        await asyncio.wait_for(served.kernel.started.wait(), 5)
        served.frontend.replace_guard(held("bob"))
        assert "error" in (await client.answer()).json
        await until(lambda: served.kernel.running == 0)


async def test_a_stream_ends_with_its_own_token_though_its_holder_has_another() -> None:
    old = Credential(digest=token_digest("old-" * 8), principal=Principal("ops"))
    new = Credential(digest=token_digest("new-" * 8), principal=Principal("ops"))
    async with serving(guard=Guard(host="127.0.0.1", credentials=[old, new])) as served, served.client() as stream:
        session = await served.session(authorization="Bearer " + "old-" * 8)
        await stream.send(get("/mcp", **session))
        assert (await stream.head()).status == 200
        served.frontend.replace_guard(Guard(host="127.0.0.1", credentials=[new]))
        assert await stream.chunk() == b""
        assert (await served.ask(post(message("ping"), **session))).status == 401
        session |= {"authorization": "Bearer " + "new-" * 8}
        assert (await served.ask(post(message("ping"), **session))).status == 200


async def test_a_handshake_under_way_opens_no_session_for_a_token_that_is_taken_away() -> None:
    async with serving(guard=held()) as served, served.client() as client:
        served.kernel.is_handshake_slow = True
        await client.send(post(initialize(), authorization=BOB))
        await asyncio.wait_for(served.kernel.started.wait(), 5)
        served.frontend.replace_guard(held("bob"))
        assert (await client.answer()).status == 401
        served.kernel.release.set()
        await until(lambda: served.kernel.running == 0)
        assert len(served.frontend.sessions) == 0


async def test_a_token_that_expires_ends_what_is_open_under_it() -> None:
    short = Credential(digest=token_digest("bob-" * 8), principal=Principal("bob"), expires_at=time.time() + 0.5)
    long = Credential(digest=token_digest("new-" * 8), principal=Principal("bob"))
    gone: list[str] = []
    async with serving(guard=Guard(host="127.0.0.1", credentials=[short, long])) as served, served.client() as stream:
        served.frontend.on_gone = gone.append
        session = await served.session(authorization=BOB)
        await stream.send(get("/mcp", **session))
        assert (await stream.head()).status == 200
        async with served.client() as client:
            assert (await client.ask(modern("tools/call", name="echo", authorization=BOB))).status == 200
            assert await stream.chunk() == b""
            assert (await client.ask(modern("tools/call", name="echo", authorization=BOB))).status == 401
        assert gone == []


async def test_anonymous_clients_are_let_go_when_a_token_is_needed() -> None:
    gone: list[str] = []
    async with serving() as served, served.client() as client:
        served.frontend.on_gone = gone.append
        await client.send(modern("tools/call", name="hang"))
        await asyncio.wait_for(served.kernel.started.wait(), 5)
        served.frontend.replace_guard(held())
        assert (await client.answer()).status == 401
        assert (await client.ask(modern("tools/call", name="echo"))).status == 401
        assert gone == ["anonymous"]


async def test_an_origin_that_is_no_longer_listed_ends_what_its_pages_have_open() -> None:
    listed = Guard(host="127.0.0.1", origins=["https://app.example"], anonymous=True)
    async with serving(guard=listed) as served, served.client() as page:
        await page.send(modern("tools/call", name="hang", origin="https://app.example"))
        await asyncio.wait_for(served.kernel.started.wait(), 5)
        served.frontend.replace_guard(Guard(host="127.0.0.1", anonymous=True))
        assert (await page.answer()).status == 401
        assert (await page.ask(modern("tools/call", name="echo", origin="https://app.example"))).status == 403


LARGE = b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":"%b"}}' % (b"x" * 100_000)


async def test_a_large_body_that_breaks_a_limit_is_refused_unread_and_counted() -> None:
    async with serving() as served:
        served.kernel.body_failure = GatewayFailure(Kind.LIMIT_EXCEEDED, "too many values", details={"limit": 7})
        answer = await served.ask(post(LARGE))
        assert (answer.status, answer.error_code, answer.json["id"]) == (400, messages.INVALID_PARAMS, "a")
        assert answer.json["error"]["data"]["limit"] == 7
        assert served.kernel.refused == [("anonymous", len(LARGE))]
        await served.still_serves()


async def test_whoever_has_spent_the_budget_is_told_to_wait_before_a_large_body_is_read() -> None:
    async with serving() as served:
        served.kernel.body_failure = GatewayFailure(Kind.RATE_LIMITED, "too many", retry_after_ms=2500)
        answer = await served.ask(post(LARGE))
        assert (answer.status, answer.header("retry-after"), answer.json["id"]) == (429, "3", None)
        assert answer.json["error"]["data"]["code"] == "RATE_LIMITED"
        assert served.kernel.refused == []
        await served.still_serves()


@pytest.mark.parametrize("body", [b"x" * 100_000, b'{"a":"%b"}' % (b"x" * 100_000), LARGE, b"[" + b" " * 100_000])
async def test_a_large_body_that_the_endpoint_refuses_by_itself_is_counted(body: bytes) -> None:
    async with serving() as served:
        assert (await served.ask(post(body))).status == 400
        assert served.kernel.refused == [("anonymous", len(body))]


async def test_a_small_body_that_is_refused_is_not_counted() -> None:
    async with serving() as served:
        assert (await served.ask(post(b"x" * 1000))).status == 400
        assert served.kernel.refused == []


@pytest.mark.parametrize("legacy", [False, True])
async def test_a_token_taken_away_while_a_body_comes_in_is_refused(legacy: bool) -> None:
    async with serving(guard=held()) as served, served.client() as client:
        session = await served.session(authorization=BOB) if legacy else {}
        data = post(message("ping"), **session) if legacy else modern("tools/call", name="echo", authorization=BOB)
        await client.send(data[:-5])
        await until(lambda: served.server.connection_count == 1 and served.server.held_bytes > 0)
        served.frontend.replace_guard(held("bob"))
        await client.send(data[-5:])
        assert (await client.answer()).status == 401
        assert not [caller for caller in served.kernel.callers if caller.era.value == "modern"]
