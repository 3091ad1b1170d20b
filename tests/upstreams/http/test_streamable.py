"""Streamable HTTP of both eras against servers that play bytes: what goes out, what comes in, what breaks."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pactgate.core.events import UpstreamNoise
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.http import streamable as http_module
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.streamable import HttpChannel, NotStreamableHttpError
from tests.support.eventually import eventually
from tests.support.loops import on_both_loops
from tests.support.scripted_http import (
    LAST_CHUNK,
    LIMIT_S,
    Emitted,
    Inbox,
    Peer,
    Play,
    ReceivedRequest,
    ScriptedHttp,
    answer,
    chunk,
    event,
    result,
    stream_head,
)
from tests.support.stepping import Stepped

MAX_BYTES = 64 * 1024
SESSION = {"Mcp_Session_Id": "abc-123"}


def request(id_: int, method: str = "tools/call", **given: Any) -> Outgoing:
    text = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method}).encode()
    return Outgoing(text, method, id_, **given)


def notice(method: str) -> Outgoing:
    return Outgoing(json.dumps({"jsonrpc": "2.0", "method": method}).encode(), method)


class Talk:
    """A channel, what it received, and what the server saw."""

    def __init__(self, channel: HttpChannel, server: ScriptedHttp, client: HttpClient, emitted: Emitted) -> None:
        self.channel = channel
        self.server = server
        self.client = client
        self.emitted = emitted
        self.inbox = Inbox()

    async def send(self, frame: Outgoing) -> None:
        async with asyncio.timeout(LIMIT_S):
            await self.channel.send(frame)

    async def fails(self, frame: Outgoing) -> GatewayFailure:
        with pytest.raises(GatewayFailure) as caught:
            await self.send(frame)
        assert caught.value.server == "files"
        return caught.value

    @property
    def noises(self) -> list[str]:
        return [noise.what for noise in self.emitted.events if isinstance(noise, UpstreamNoise)]


@asynccontextmanager
async def talking(play: Play, era: Era | None = None, headers: dict[str, str] | None = None) -> AsyncIterator[Talk]:
    async with ScriptedHttp(play) as server:
        client, emitted = HttpClient(), Emitted()
        channel = HttpChannel("files", server.url, headers or {}, client, emitted, max_frame_bytes=MAX_BYTES)
        talk = Talk(channel, server, client, emitted)
        await channel.open(talk.inbox)
        if era is not None:
            channel.settle(era, LATEST_MODERN if era is Era.MODERN else LATEST_LEGACY)
        try:
            yield talk
        finally:
            await channel.close()
            await client.close()


class Server:
    """Answers each request with what `reply` makes of it, and keeps the requests. A GET is refused unless `reply` answers it."""

    def __init__(self, reply: Callable[[ReceivedRequest], bytes] | bytes | None = None) -> None:
        self.seen: list[ReceivedRequest] = []
        self._reply = reply
        self.news = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        while True:
            received = await peer.request()
            self.seen.append(received)
            self.news.set()
            await peer.send(self._answer(received))

    def _answer(self, received: ReceivedRequest) -> bytes:
        if isinstance(self._reply, bytes):
            return self._reply
        if self._reply is not None:
            return self._reply(received)
        if received.method != "POST":
            return answer(b"", "405 Method Not Allowed", None)
        if "id" not in received.message:
            return answer(b"", "202 Accepted", None)
        return answer(result(received.message["id"]))

    async def until(self, count: int) -> None:
        async with asyncio.timeout(LIMIT_S):
            while len(self.seen) < count:
                self.news.clear()
                await self.news.wait()


# What goes out


async def test_opening_does_not_touch_the_network() -> None:
    async with talking(Server()) as talk:
        assert talk.server.connections == 0
        assert talk.channel.answers_in_send is True


async def test_a_modern_request_mirrors_itself_into_headers() -> None:
    server = Server()
    async with talking(server, Era.MODERN, {"Authorization": "Bearer t", "X-Team": "a b"}) as talk:
        frame = request(1, name="caf\u00e9", headers=(("Mcp-Param-Tenant", "t1"),))
        await talk.send(frame)
    assert server.seen[0].body == frame.data
    assert server.seen[0].headers == {
        "host": f"127.0.0.1:{talk.server.port}",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer t",
        "x-team": "a b",
        "user-agent": "pactgate",
        "mcp-protocol-version": LATEST_MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?Y2Fmw6k=?=",
        "mcp-param-tenant": "t1",
        "content-length": str(len(frame.data)),
    }
    assert len(server.seen) == 1


async def test_before_the_era_is_settled_the_method_decides() -> None:
    server = Server()
    async with talking(server) as talk:
        await talk.send(request(1, "server/discover"))
        await talk.send(request(2, "initialize"))
    probe, handshake = server.seen
    assert probe.headers["mcp-protocol-version"] == LATEST_MODERN
    assert probe.headers["mcp-method"] == "server/discover"
    assert not [name for name in handshake.headers if name.startswith("mcp-")]


@pytest.mark.parametrize(("version", "is_sent"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)])
async def test_a_legacy_session_carries_its_id_and_from_2025_06_18_on_its_version(version: str, is_sent: bool) -> None:
    def reply(received: ReceivedRequest) -> bytes:
        return answer(result(received.message["id"]), **SESSION) if received.body else answer(b"", "405 No", None)

    server = Server(reply)
    async with talking(server) as talk:
        await talk.send(request(1, "initialize"))
        talk.channel.settle(Era.LEGACY, version)
        await talk.send(request(2, "tools/call", name="x", headers=(("Mcp-Param-X", "y"),)))
    call, end = server.seen[1:]
    assert call.headers["mcp-session-id"] == "abc-123"
    assert call.headers.get("mcp-protocol-version") == (version if is_sent else None)
    assert not {"mcp-method", "mcp-name", "mcp-param-x"} & set(call.headers)
    assert (end.method, end.headers["mcp-session-id"]) == ("DELETE", "abc-123")


async def test_only_the_answer_to_initialize_can_give_a_session_id() -> None:
    server = Server(lambda received: answer(result(received.message["id"]), **SESSION))
    async with talking(server, Era.LEGACY) as talk:
        await talk.send(request(1))
        await talk.send(request(2))
    assert "mcp-session-id" not in server.seen[1].headers


@pytest.mark.parametrize("session_id", ["has blank", "caf\xe9", "x" * 1025, "tab\tbed"])
async def test_a_session_id_that_can_not_be_sent_back_safely_is_refused(session_id: str) -> None:
    server = Server(lambda received: answer(result(received.message["id"]), Mcp_Session_Id=session_id))
    async with talking(server) as talk:
        failure = await talk.fails(request(1, "initialize"))
        assert failure.kind is Kind.INVALID_FRAME
    assert len(server.seen) == 1


async def test_a_stream_that_comes_with_such_a_session_id_is_closed() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(Mcp_Session_Id="has blank"))
        await peer.gone()
        gone.set()

    async with talking(play) as talk:
        assert (await talk.fails(request(1, "initialize"))).kind is Kind.INVALID_FRAME
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()


@pytest.mark.parametrize(
    "frame",
    [
        request(1, headers=(("Mcp-Param-X", "a\r\nX-Evil: 1"),)),
        request(1, headers=(("Mcp-Param-X\r\nX-Evil", "1"),)),
        request(1, "tools/call\r\nX-Evil: 1"),
    ],
)
async def test_nothing_can_be_injected_into_headers(frame: Outgoing) -> None:
    server = Server()
    async with talking(server, Era.MODERN) as talk:
        failure = await talk.fails(frame)
        assert failure.verdict is Verdict.DID_NOT_RUN
        await talk.send(request(2, name="x\r\nX-Evil: 1"))
    assert [received.headers["mcp-name"] for received in server.seen] == ["=?base64?eA0KWC1FdmlsOiAx?="]
    assert "x-evil" not in server.seen[0].headers


async def test_each_of_very_many_names_is_mirrored_as_itself() -> None:
    server = Server()
    async with talking(server, Era.MODERN) as talk:
        for number in (*range(1100), 0, 1, 1099):
            await talk.send(request(1, name=f"tool-{number}"))
            assert server.seen.pop().headers["mcp-name"] == f"tool-{number}"
        long_name = "x" * 2000
        await talk.send(request(1, name=long_name))
        assert server.seen[0].headers["mcp-name"] == long_name


async def test_only_modern_closing_cancels() -> None:
    async with talking(Server()) as talk:
        assert talk.channel.closing_cancels is False
        talk.channel.settle(Era.MODERN, LATEST_MODERN)
        assert talk.channel.closing_cancels is True
    async with talking(Server(), Era.LEGACY) as talk:
        assert talk.channel.closing_cancels is False


# What comes in


@on_both_loops
async def test_a_json_answer_is_received_as_the_bytes_it_came_in() -> None:
    odd = b'{ "jsonrpc":"2.0", "id":1, "result":{"n":18446744073709551616,"f":0.30000000000000004} }'
    async with talking(Server(answer(odd, content_type="application/json; charset=utf-8")), Era.MODERN) as talk:
        await talk.send(request(1))
        assert talk.inbox.frames == [odd]


EVENTS = [
    event({"jsonrpc": "2.0", "method": "notifications/progress"}),
    chunk(b": a comment\n\n"),
    chunk(b"event: ping\ndata: {}\n\n"),
    event(result(1, ok=True), id="e1", event="message"),
]


@pytest.mark.parametrize("size", [None, 1, 7])
@on_both_loops
async def test_events_are_received_as_they_arrive_until_the_answer(size: int | None) -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            if size is None:
                await peer.send(stream_head(), *EVENTS, LAST_CHUNK)
            else:
                await peer.drip(stream_head() + b"".join(EVENTS) + LAST_CHUNK, size)

    async with talking(play, Era.MODERN) as talk:
        for _ in range(2):
            talk.inbox.frames.clear()
            await talk.send(request(1))
            assert [message.get("method") for message in talk.inbox.messages] == ["notifications/progress", None]


async def test_a_stream_that_stays_open_after_the_answer_does_not_hold_the_exchange() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event(result(1)))
        await peer.gone()

    async with talking(play, Era.LEGACY) as talk:
        await talk.send(request(1))
        assert talk.inbox.messages == [result(1)]


async def test_a_notice_on_the_way_is_received_before_the_answer_exists() -> None:
    answering = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/progress"}))
        await answering.wait()
        await peer.send(event(result(1)), LAST_CHUNK)

    async with talking(play, Era.MODERN) as talk:
        sending = asyncio.ensure_future(talk.send(request(1)))
        await talk.inbox.until(lambda inbox: inbox.frames)
        assert not sending.done()
        answering.set()
        await sending
        assert len(talk.inbox.frames) == 2


@pytest.mark.parametrize("status", ["202 Accepted", "204 No Content", "200 OK"])
async def test_a_notification_is_accepted_with_any_success(status: str) -> None:
    text = answer(b"", status, None) if status[:3] != "204" else b"HTTP/1.1 204 No Content\r\n\r\n"
    async with talking(Server(text), Era.LEGACY) as talk:
        await talk.send(notice("notifications/cancelled"))
        await talk.send(Outgoing(b'{"jsonrpc":"2.0","id":"s1","result":{}}'))
        assert talk.inbox.frames == []


async def test_a_notification_answered_with_a_stream_is_accepted_too() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/message"}))
        await peer.gone()

    async with talking(play, Era.LEGACY) as talk:
        await talk.send(notice("notifications/cancelled"))
        assert talk.inbox.frames == []


@pytest.mark.requirement("S4/R3")
@pytest.mark.requirement("S4/UNDECIDED-4")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(answer(b"", "202 Accepted", None), id="202"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
        pytest.param(answer(b""), id="empty"),
        pytest.param(answer(b"{}", content_type=None), id="no-type"),
        pytest.param(answer("<html>Login \x1b[31mplease</html>", content_type="text/html"), id="html"),
        pytest.param(answer(b"\x1f\x8b", Content_Encoding="gzip"), id="gzip"),
        pytest.param(answer(b'"' + b"x" * MAX_BYTES + b'"'), id="oversized"),
        pytest.param(stream_head() + event("x" * MAX_BYTES), id="oversized-event"),
        pytest.param(stream_head() + chunk(b"data: x\n" * MAX_BYTES), id="oversized-lines"),
        pytest.param(stream_head() + chunk(b":" + b"x" * 2 * MAX_BYTES), id="oversized-comment"),
    ],
)
async def test_what_is_no_answer_is_an_invalid_frame(text: bytes) -> None:
    async with talking(Server(text), Era.MODERN) as talk:
        failure = await talk.fails(request(1))
        assert (failure.kind, failure.verdict) == (Kind.INVALID_FRAME, Verdict.MAY_HAVE_RUN)
        assert failure.message.isprintable()
        assert len(failure.message) < 500
        assert talk.inbox.frames == []


async def test_an_html_page_is_quoted() -> None:
    async with talking(Server(answer("<html>Login please</html>", content_type="text/html")), Era.MODERN) as talk:
        assert "HTTP 200" in (await talk.fails(request(1))).message
        assert "Login please" in (await talk.fails(request(1))).message


async def test_endless_comments_cost_no_memory_and_end_with_the_callers_deadline() -> None:
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(stream_head())
        while True:
            await peer.send(chunk(b": comment\n\n" * 100))
            sent += 1

    async with talking(play, Era.MODERN) as talk:
        tracemalloc.start()
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await talk.channel.send(request(1))
            assert tracemalloc.get_traced_memory()[1] < 2 << 20
        finally:
            tracemalloc.stop()
        assert sent > 10
        assert talk.inbox.frames == []


@on_both_loops
async def test_cancelling_an_exchange_closes_its_stream() -> None:
    started, gone = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/progress"}))
        started.set()
        await peer.gone()
        gone.set()

    async with talking(play, Era.MODERN) as talk:
        sending = asyncio.ensure_future(talk.channel.send(request(1)))
        async with asyncio.timeout(LIMIT_S):
            await started.wait()
            await talk.inbox.until(lambda inbox: inbox.frames)
            sending.cancel()
            await gone.wait()
        await asyncio.wait({sending})
        assert sending.cancelled()


@pytest.mark.parametrize("era", [Era.MODERN, Era.LEGACY])
async def test_a_stream_that_ends_before_the_answer_is_a_lost_connection(era: Era) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/progress"}), LAST_CHUNK)
        await peer.gone()

    async with talking(play, era) as talk:
        failure = await talk.fails(request(1))
        assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)


# Refusals


def error(id_: Any, code: int = -32601, message: str = "no such method") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message, "data": {"big": 2**70}}}


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "403 Forbidden", "429 Slow", "500 Broken"])
@pytest.mark.parametrize("era", [None, Era.MODERN])
async def test_a_json_rpc_error_that_names_our_request_is_its_answer(status: str, era: Era | None) -> None:
    body = json.dumps(error(1)).encode()
    async with talking(Server(answer(body, status)), era) as talk:
        await talk.send(request(1, "server/discover"))
        assert talk.inbox.frames == [body]


@pytest.mark.parametrize("foreign_id", [None, "server-error", 99])
@pytest.mark.parametrize("status", ["400 Bad Request", "405 Method Not Allowed", "406 Not Acceptable"])
async def test_a_json_rpc_error_that_names_another_request_still_answers_this_exchange(
    foreign_id: Any, status: str
) -> None:
    async with talking(Server(answer(error(foreign_id), status))) as talk:
        await talk.send(request(7, "server/discover"))
        assert talk.inbox.messages == [error(7)]


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("body", [b"", b"Not Found", b'{"detail":"Not Found"}', b"{"])
async def test_before_the_era_is_settled_a_missing_endpoint_is_told_apart(status: int, body: bytes) -> None:
    async with talking(Server(answer(body, f"{status} Whatever"))) as talk:
        failure = await talk.fails(request(1, "initialize"))
        assert isinstance(failure, NotStreamableHttpError)
        assert (failure.status, failure.verdict) == (status, Verdict.DID_NOT_RUN)
        talk.channel.settle(Era.MODERN, LATEST_MODERN)
        settled = await talk.fails(request(1))
        assert settled.kind is Kind.HTTP_STATUS
        assert not isinstance(settled, NotStreamableHttpError)


@pytest.mark.parametrize("body", [b"no", json.dumps(error(1)).encode(), json.dumps(error(None)).encode()])
@pytest.mark.parametrize("era", [None, Era.LEGACY, Era.MODERN])
async def test_refused_credentials_are_refused_credentials_in_every_wrapping(body: bytes, era: Era | None) -> None:
    async with talking(Server(answer(body, "401 Unauthorized")), era, {"Authorization": "Bearer s3cr3t-token"}) as talk:
        failure = await talk.fails(request(1))
        assert failure.details == {"permanent": True, "status": 401}
        assert "`headers` of files" in failure.message
        assert "s3cr3t" not in failure.message


async def test_a_server_that_echoes_our_credentials_does_not_get_them_into_messages() -> None:
    server = Server(lambda received: answer(received.headers["authorization"], "500 Broken", "text/plain"))
    async with talking(server, Era.MODERN, {"Authorization": "Bearer s3cr3t-token"}) as talk:
        failure = await talk.fails(request(1))
        assert "s3cr3t" not in failure.message
        assert "HTTP 500" in failure.message


@pytest.mark.parametrize(
    ("status", "code"), [("429 Slow", ErrorCode.RATE_LIMITED), ("503 Busy", ErrorCode.SERVICE_UNAVAILABLE)]
)
async def test_a_busy_server_says_when_to_come_back(status: str, code: ErrorCode) -> None:
    async with talking(Server(answer(b"later", status, "text/plain", Retry_After="3")), Era.LEGACY) as talk:
        for frame in (request(1), notice("notifications/cancelled")):
            failure = await talk.fails(frame)
            assert (failure.kind, failure.code, failure.retry_after_ms) == (Kind.HTTP_STATUS, code, 3000)


async def test_a_redirect_is_told_and_not_followed() -> None:
    server = Server(answer(b"", "307 Temporary Redirect", None, Location="http://elsewhere.example/mcp/"))
    async with talking(server) as talk:
        failure = await talk.fails(request(1, "initialize"))
        assert failure.details["status"] == 307
        assert "elsewhere.example" in failure.message
    assert len(server.seen) == 1


# Legacy sessions


def session_server(reply: Callable[[ReceivedRequest], bytes]) -> Server:
    def answered(received: ReceivedRequest) -> bytes:
        if received.method == "POST" and received.message.get("method") == "initialize":
            return answer(result(received.message["id"]), **SESSION)
        return reply(received)

    return Server(answered)


async def begin_session(talk: Talk) -> None:
    await talk.send(request(0, "initialize"))
    talk.channel.settle(Era.LEGACY, LATEST_LEGACY)
    talk.inbox.frames.clear()


def listeners() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if "listen" in repr(task.get_coro())]


@pytest.mark.parametrize("body", [b"", b"Not Found", json.dumps(error(None, -32001, "Session not found")).encode()])
async def test_an_expired_session_is_told_once_and_its_call_has_not_run(body: bytes) -> None:
    server = session_server(lambda _: answer(body, "404 Not Found"))
    async with talking(server) as talk:
        await begin_session(talk)
        for _ in range(2):
            failure = await talk.fails(request(1))
            assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.DID_NOT_RUN)
        assert [lost.verdict for lost in talk.inbox.failures] == [Verdict.MAY_HAVE_RUN]
    assert [received.method for received in server.seen] == ["POST"] * 3


async def test_a_404_that_names_our_request_does_not_end_the_session() -> None:
    server = session_server(
        lambda received: answer(error(1), "404 Not Found") if received.body else answer(b"", "200 OK")
    )
    async with talking(server) as talk:
        await begin_session(talk)
        await talk.send(request(1))
        assert talk.inbox.messages == [error(1)]
        assert talk.inbox.failures == []


async def test_server_messages_come_on_a_stream_of_their_own_that_ends_with_the_channel() -> None:
    gone = asyncio.Event()
    seen: list[ReceivedRequest] = []

    async def play(peer: Peer) -> None:
        while True:
            received = await peer.request()
            if received.method == "GET":
                seen.append(received)
                await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
                await peer.gone()
                gone.set()
                return
            is_request = b'"id"' in received.body
            await peer.send(answer(result(0), **SESSION) if is_request else answer(b"", "202 Accepted", None))

    async with talking(play) as talk:
        await begin_session(talk)
        assert seen == []
        await talk.send(notice("notifications/initialized"))
        await talk.inbox.until(lambda inbox: inbox.frames)
        assert talk.inbox.messages[0]["method"] == "notifications/tools/list_changed"
        await talk.channel.close()
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()
        assert listeners() == []
    assert seen[0].headers["accept"] == "text/event-stream"
    assert seen[0].headers["mcp-session-id"] == "abc-123"
    assert seen[0].headers["mcp-protocol-version"] == LATEST_LEGACY


async def test_the_stream_opens_whichever_of_initialized_and_settled_comes_first() -> None:
    server = Server()
    async with talking(server) as talk:
        await talk.send(notice("notifications/initialized"))
        assert len(server.seen) == 1
        talk.channel.settle(Era.LEGACY, LATEST_LEGACY)
        await server.until(2)
        assert server.seen[1].method == "GET"


@pytest.mark.parametrize(("status", "is_noise"), [("405 Method Not Allowed", False), ("400 Bad Request", True)])
async def test_a_server_without_such_a_stream_is_not_asked_again(status: str, is_noise: bool) -> None:
    def reply(received: ReceivedRequest) -> bytes:
        return answer(b"", status, None) if received.method == "GET" else answer(b"", "202 Accepted", None)

    server = session_server(reply)
    async with talking(server) as talk:
        await begin_session(talk)
        await talk.send(notice("notifications/initialized"))
        await server.until(3)
        await eventually(lambda: not listeners())
        assert [received.method for received in server.seen] == ["POST", "POST", "GET"]
        assert bool(talk.noises) is is_noise


async def test_a_session_that_the_listening_stream_finds_expired_is_lost() -> None:
    def reply(received: ReceivedRequest) -> bytes:
        return answer(b"", "404 Not Found", None) if received.method == "GET" else answer(b"", "202 Accepted", None)

    server = session_server(reply)
    async with talking(server) as talk:
        await begin_session(talk)
        await talk.send(notice("notifications/initialized"))
        await talk.inbox.until(lambda inbox: inbox.failures)
        assert talk.inbox.failures[0].kind is Kind.CONNECTION_LOST
    assert [received.method for received in server.seen] == ["POST", "POST", "GET"]


async def test_modern_has_neither_a_listening_stream_nor_a_session_to_end() -> None:
    server = Server()
    async with talking(server, Era.MODERN) as talk:
        await talk.send(request(1))
        await talk.send(notice("notifications/initialized"))
    assert [received.method for received in server.seen] == ["POST", "POST"]


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        pytest.param(answer(b""), None, id="200"),
        pytest.param(answer(b"", "405 Method Not Allowed"), None, id="405"),
        pytest.param(stream_head(), None, id="stream"),
        pytest.param(answer(b"", "500 Broken"), "refused the end of its session", id="500"),
        pytest.param(b"<html>", "could not be told the end of its session", id="garbage"),
        pytest.param(b"", "could not be told the end of its session", id="silence"),
    ],
)
async def test_the_end_of_a_session_is_told_in_bounded_time(
    text: bytes, noise: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "_DELETE_S", 0.2)
    server = session_server(lambda _: text)
    async with talking(server) as talk:
        await begin_session(talk)
        async with asyncio.timeout(LIMIT_S):
            await talk.channel.close()
            await talk.channel.close()
        assert talk.noises == ([] if noise is None else [noise])
        failure = await talk.fails(request(1))
        assert failure.verdict is Verdict.DID_NOT_RUN
    assert [received.method for received in server.seen] == ["POST", "DELETE"]


async def test_closing_ends_what_is_under_way_and_nothing_is_received_afterwards() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), event({"jsonrpc": "2.0", "method": "notifications/progress"}, id="1"))
        await peer.gone()
        gone.set()

    async with talking(play, Era.LEGACY) as talk:
        sending = asyncio.ensure_future(talk.channel.send(request(1)))
        await talk.inbox.until(lambda inbox: inbox.frames)
        async with asyncio.timeout(LIMIT_S):
            await talk.channel.close()
            await gone.wait()
            with pytest.raises(GatewayFailure) as caught:
                await sending
        assert (caught.value.kind, caught.value.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
        assert len(talk.inbox.frames) == 1
        assert talk.inbox.failures == []


# Taking a stream up again (legacy)


class Resuming:
    """The POST gets a stream that breaks after an id; each GET is answered with the next of `streams`."""

    def __init__(
        self,
        *streams: bytes,
        breaks: Callable[[Peer], None] = Peer.close,
        ends_properly: bool = True,
        retry: str = "60",
    ) -> None:
        self.streams = list(streams)
        self.ends_properly = ends_properly
        self.breaks = breaks
        self.retry = retry
        self.gets: list[tuple[float, str | None]] = []
        self.broke_at = 0.0

    async def __call__(self, peer: Peer) -> None:
        received = await peer.request()
        now = asyncio.get_running_loop().time()
        if received.method == "POST":
            await peer.send(stream_head(), event("", id="e0", retry=self.retry))
            if self.ends_properly:
                await peer.send(LAST_CHUNK)
            self.broke_at = now
            self.breaks(peer)
            return
        self.gets.append((now, received.headers.get("last-event-id")))
        await peer.send(self.streams.pop(0))


@pytest.mark.parametrize("breaks", [Peer.close, Peer.reset])
@pytest.mark.parametrize("ends_properly", [True, False])
async def test_a_legacy_stream_is_taken_up_again_after_the_time_the_server_asked_for(
    breaks: Callable[[Peer], None], ends_properly: bool
) -> None:
    play = Resuming(
        stream_head() + event({"jsonrpc": "2.0", "method": "notifications/progress"}, id="e1", retry="90") + LAST_CHUNK,
        stream_head() + event(result(1), id="e2") + LAST_CHUNK,
        breaks=breaks,
        ends_properly=ends_properly,
    )
    async with talking(play, Era.LEGACY) as talk:
        await talk.send(request(1))
        assert [message.get("method") for message in talk.inbox.messages] == ["notifications/progress", None]
    assert [last_id for _, last_id in play.gets] == ["e0", "e1"]
    assert play.gets[0][0] - play.broke_at >= 0.055
    assert play.gets[1][0] - play.gets[0][0] >= 0.085


async def test_a_server_error_while_resuming_is_tried_again_and_a_refusal_is_not() -> None:
    play = Resuming(answer(b"", "502 Bad Gateway"), answer(b"", "405 Method Not Allowed"), retry="0")
    async with talking(play, Era.LEGACY) as talk:
        failure = await talk.fails(request(1))
        assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
        assert "HTTP 405" in failure.message
    assert len(play.gets) == 2


async def test_a_connection_that_breaks_while_resuming_is_tried_again_and_a_redirect_is_not() -> None:
    play = Resuming(b"", answer(b"", "307 Moved", Location="http://elsewhere.example/"), retry="0")
    async with talking(play, Era.LEGACY) as talk:
        failure = await talk.fails(request(1))
        assert failure.details["status"] == 307
    assert len(play.gets) == 2


async def test_resuming_is_tried_only_so_often() -> None:
    play = Resuming(*[stream_head() + LAST_CHUNK] * 9, retry="0")
    async with talking(play, Era.LEGACY) as talk:
        failure = await talk.fails(request(1))
        assert failure.kind is Kind.CONNECTION_LOST
    assert len(play.gets) == 5


async def test_a_server_that_brings_something_each_time_may_be_resumed_as_often_as_it_takes() -> None:
    polled = [stream_head() + event("", id=f"e{number}") + LAST_CHUNK for number in range(1, 8)]
    play = Resuming(*polled, stream_head() + event(result(1)) + LAST_CHUNK, retry="0")
    async with talking(play, Era.LEGACY) as talk:
        await talk.send(request(1))
        assert talk.inbox.messages == [result(1)]
    assert [last_id for _, last_id in play.gets] == [f"e{number}" for number in range(8)]


@pytest.mark.parametrize("is_pausing", [False, True])
async def test_an_answer_that_comes_on_the_listening_stream_ends_its_exchange(is_pausing: bool) -> None:
    """Resuming belongs to the session, and servers exist that answer on whichever stream is open."""
    called, gone = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        while True:
            received = await peer.request()
            if received.method == "GET":
                await peer.send(stream_head())
                await called.wait()
                await peer.send(event(result(1)))
                await peer.gone()
            elif received.message["method"] == "tools/call":
                await peer.send(stream_head(), event("", id="e0", retry="5000"), LAST_CHUNK if is_pausing else b"")
                called.set()
                if not is_pausing:
                    await peer.gone()
                    gone.set()
            else:
                await peer.send(answer(b"", "202 Accepted", None))

    async with talking(play, Era.LEGACY) as talk:
        await talk.send(notice("notifications/initialized"))
        await talk.send(request(1))
        assert talk.inbox.messages == [result(1)]
        if not is_pausing:
            async with asyncio.timeout(LIMIT_S):
                await gone.wait()


async def test_a_modern_stream_is_never_taken_up_again() -> None:
    play = Resuming()
    async with talking(play, Era.MODERN) as talk:
        assert (await talk.fails(request(1))).kind is Kind.CONNECTION_LOST
    assert play.gets == []


async def test_an_event_id_that_would_inject_a_header_is_not_sent_back() -> None:
    async def play(peer: Peer) -> None:
        received = await peer.request()
        assert received.method == "POST"
        await peer.send(stream_head(), event("", id="caf\u00e9"), LAST_CHUNK)
        await peer.gone()

    async with talking(play, Era.LEGACY) as talk:
        assert (await talk.fails(request(1))).kind is Kind.CONNECTION_LOST


# The official SDK's own server

_PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{_PREFIX}protocolVersion": LATEST_MODERN,
    f"{_PREFIX}clientCapabilities": {},
    f"{_PREFIX}clientInfo": {"name": "test", "version": "0"},
}
HANDSHAKE = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


def full(id_: int, method: str, params: dict[str, Any], name: str | None = None) -> Outgoing:
    text = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
    return Outgoing(text, method, id_, name)


@pytest.mark.parametrize("kind", ["streamable", "json"])
async def test_the_official_server_is_spoken_to_in_both_eras(official: dict[str, str], kind: str) -> None:
    client, emitted = HttpClient(), Emitted()
    arguments = {"name": "add", "arguments": {"a": 1, "b": 2}}
    origin = official[kind]
    modern, legacy = (HttpChannel("official", f"{origin}/mcp", {}, client, emitted) for _ in range(2))
    async with asyncio.timeout(30):
        inbox = Inbox()
        await modern.open(inbox)
        await modern.send(full(1, "server/discover", {"_meta": ENVELOPE}))
        modern.settle(Era.MODERN, LATEST_MODERN)
        await modern.send(full(2, "tools/call", {**arguments, "_meta": {**ENVELOPE, "progressToken": 9}}, "add"))
        assert LATEST_MODERN in inbox.messages[0]["result"]["supportedVersions"]
        assert inbox.messages[-1]["result"]["structuredContent"] == {"result": 3}
        assert len(inbox.frames) == (2 if kind == "json" else 3)

        inbox = Inbox()
        await legacy.open(inbox)
        await legacy.send(full(1, "initialize", HANDSHAKE))
        legacy.settle(Era.LEGACY, LATEST_LEGACY)
        await legacy.send(notice("notifications/initialized"))
        await legacy.send(full(2, "tools/call", {**arguments, "_meta": {"progressToken": 9}}))
        assert inbox.messages[-1]["result"]["structuredContent"] == {"result": 3}
        assert inbox.failures == []
        await modern.close()
        await legacy.close()
        await client.close()
    assert emitted.events == []


async def test_the_older_transport_of_the_official_server_is_told_apart(official: dict[str, str]) -> None:
    client = HttpClient()
    origin = official["sse"]
    channel = HttpChannel("official", f"{origin}/sse", {}, client, Emitted())
    await channel.open(Inbox())
    for method in ("server/discover", "initialize"):
        with pytest.raises(NotStreamableHttpError) as caught:
            await channel.send(full(1, method, HANDSHAKE))
        assert caught.value.status == 405
    await channel.close()
    await client.close()


# Without a task


@pytest.mark.parametrize("era", [Era.MODERN, Era.LEGACY])
async def test_a_request_without_a_task_waits_for_nothing_but_its_answer_on_a_kept_connection_alone(era: Era) -> None:
    server = Server()
    async with talking(server, era) as talk:
        fresh = Stepped(talk.channel.send(request(1, name="x")))
        assert not fresh.waits_on_the_spot
        fresh.close()
        await talk.send(request(2, name="x"))
        kept = Stepped(talk.channel.send(request(3, name="x")))
        assert kept.waits_on_the_spot
        other = Stepped(talk.channel.send(request(4, name="x")))
        assert not other.waits_on_the_spot, "the only connection is in use"
        other.close()
        await talk.inbox.until(lambda inbox: len(inbox.frames) == 2)
        assert kept.told == [None], "the exchange has ended when its answer was received"
    assert [seen.message["id"] for seen in server.seen] == [2, 3]
    assert server.seen[0].headers == server.seen[1].headers
    assert [json.loads(frame)["id"] for frame in talk.inbox.frames] == [2, 3]


async def test_an_event_stream_that_answers_on_a_kept_connection_is_followed() -> None:
    def reply(received: ReceivedRequest) -> bytes:
        id_ = received.message["id"]
        if id_ == 1:
            return answer(result(1))
        return stream_head() + event({"jsonrpc": "2.0", "method": "notifications/x"}) + event(result(id_)) + LAST_CHUNK

    async with talking(Server(reply), Era.MODERN) as talk:
        await talk.send(request(1))
        await talk.send(request(2))
    assert json.loads(talk.inbox.frames[1])["method"] == "notifications/x"
    assert json.loads(talk.inbox.frames[2])["id"] == 2


async def test_a_request_without_a_task_whose_connection_breaks_fails_once_and_is_not_sent_again() -> None:
    seen: list[ReceivedRequest] = []

    async def play(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.send(answer(result(1)))
        seen.append(await peer.request())

    async with talking(play, Era.MODERN) as talk:
        await talk.send(request(1))
        stepped = Stepped(talk.channel.send(request(2)))
        async with asyncio.timeout(LIMIT_S):
            await stepped.finish()
    (failure,) = stepped.told
    assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
    assert [one.message["id"] for one in seen] == [1, 2]


async def test_cancelling_a_request_without_a_task_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(result(1)))
        await peer.request()
        await peer.gone()
        gone.set()

    async with talking(play, Era.MODERN) as talk:
        await talk.send(request(1))
        stepped = Stepped(talk.channel.send(request(2)))
        assert stepped.waits_on_the_spot
        stepped.cancel()
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()
    assert [type(told) for told in stepped.told] == [asyncio.CancelledError]
