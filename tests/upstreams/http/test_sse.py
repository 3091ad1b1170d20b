"""The HTTP+SSE transport of 2024-11-05 against servers that play bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.sse import HttpSseChannel
from pactgate.upstreams.peer import Peer as Session
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

CALL = Outgoing(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', "tools/call", 1)


class SseServer:
    """The first connection is the stream; what is posted is kept, and answered on the stream."""

    def __init__(self, endpoint: str = "/messages?session=1", status: str = "202 Accepted") -> None:
        self.endpoint = endpoint
        self.status = status
        self.posts: list[ReceivedRequest] = []
        self.stream: Peer | None = None
        self.opened_with: ReceivedRequest | None = None
        self.stream_gone = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        received = await peer.request()
        if received.method == "GET":
            self.opened_with, self.stream = received, peer
            await peer.send(stream_head(), event(self.endpoint, event="endpoint"))
            await peer.gone()
            self.stream_gone.set()
            return
        while True:
            self.posts.append(received)
            await self._answer(received)
            await peer.send(answer("Accepted", self.status, "text/plain"))
            received = await peer.request()

    async def _answer(self, received: ReceivedRequest) -> None:
        assert self.stream is not None
        if "id" in received.message:
            await self.stream.send(event(result(received.message["id"]), event="message"))


@asynccontextmanager
async def connecting(play: Play, headers: dict[str, str] | None = None) -> AsyncIterator[tuple[HttpSseChannel, Inbox]]:
    async with ScriptedHttp(play) as server:
        client, inbox = HttpClient(), Inbox()
        channel = HttpSseChannel("files", server.url, headers or {}, client, Emitted(), max_frame_bytes=64 * 1024)
        try:
            yield channel, inbox
        finally:
            await channel.close()
            await client.close()


async def opened(channel: HttpSseChannel, inbox: Inbox) -> None:
    async with asyncio.timeout(LIMIT_S):
        await channel.open(inbox)


async def refuses_to_open(play: Play) -> GatewayFailure:
    async with connecting(play) as (channel, inbox):
        with pytest.raises(GatewayFailure) as caught:
            await opened(channel, inbox)
        assert caught.value.server == "files"
        return caught.value


@on_both_loops
async def test_messages_are_posted_to_the_endpoint_and_answers_come_on_the_stream() -> None:
    server = SseServer()
    async with connecting(server, {"Authorization": "Bearer t"}) as (channel, inbox):
        await opened(channel, inbox)
        assert (channel.closing_cancels, channel.answers_in_send) == (False, False)
        await channel.send(CALL)
        await inbox.until(lambda got: got.frames)
        await channel.send(Outgoing(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}'))
        assert inbox.messages == [result(1)]
    assert server.opened_with is not None
    assert server.opened_with.headers["accept"] == "text/event-stream"
    assert server.opened_with.headers["authorization"] == "Bearer t"
    first = server.posts[0]
    assert (first.method, first.path, first.body) == ("POST", "/messages?session=1", CALL.data)
    assert server.posts[0].headers["authorization"] == "Bearer t"
    assert server.posts[0].headers["content-type"] == "application/json"
    assert "mcp-protocol-version" not in server.posts[0].headers


async def test_a_later_revision_agreed_over_the_older_transport_is_named() -> None:
    server = SseServer()
    async with connecting(server) as (channel, inbox):
        await opened(channel, inbox)
        channel.settle(Era.LEGACY, "2024-11-05")
        await channel.send(CALL)
        channel.settle(Era.LEGACY, "2025-06-18")
        await channel.send(CALL)
    assert [post.headers.get("mcp-protocol-version") for post in server.posts] == [None, "2025-06-18"]


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:1/m", "https://elsewhere.example/m", "//elsewhere.example/m", "http://u:p@127.0.0.1/m"],
)
async def test_an_endpoint_on_another_origin_is_refused(endpoint: str) -> None:
    failure = await refuses_to_open(SseServer(endpoint))
    assert failure.kind is Kind.INVALID_FRAME
    assert "origin" in failure.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(stream_head() + event({"jsonrpc": "2.0"}), id="message-first"),
        pytest.param(stream_head() + LAST_CHUNK, id="ends"),
        pytest.param(answer("<html>", content_type="text/html"), id="html"),
        pytest.param(stream_head() + chunk(b"data: " + b"x" * 100_000), id="oversized"),
    ],
)
async def test_what_does_not_begin_with_an_endpoint_is_not_this_transport(text: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(text)
        await peer.gone()

    assert (await refuses_to_open(play)).kind is Kind.INVALID_FRAME


@pytest.mark.parametrize(("status", "details"), [(401, {"permanent": True, "status": 401}), (405, {"status": 405})])
async def test_a_refused_stream_says_its_status(status: int, details: dict[str, Any]) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"", f"{status} No"))

    failure = await refuses_to_open(play)
    assert (failure.kind, failure.details) == (Kind.HTTP_STATUS, details)


async def test_giving_up_before_the_endpoint_came_closes_the_stream() -> None:
    started, gone = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head())
        started.set()
        await peer.gone()
        gone.set()

    async with connecting(play) as (channel, inbox):
        opening = asyncio.ensure_future(channel.open(inbox))
        async with asyncio.timeout(LIMIT_S):
            await started.wait()
            opening.cancel()
            await asyncio.wait({opening})
            await gone.wait()


@pytest.mark.parametrize("ending", [Peer.close, Peer.reset])
@on_both_loops
async def test_the_end_of_the_stream_is_the_end_of_the_channel(ending: Callable[[Peer], None]) -> None:
    server = SseServer()
    async with connecting(server) as (channel, inbox):
        await opened(channel, inbox)
        assert server.stream is not None
        ending(server.stream)
        await inbox.until(lambda got: got.failures)
        assert [failure.kind for failure in inbox.failures] == [Kind.CONNECTION_LOST]


async def test_an_event_over_the_bound_ends_the_channel_and_other_events_are_passed_by() -> None:
    server = SseServer()
    async with connecting(server) as (channel, inbox):
        await opened(channel, inbox)
        assert server.stream is not None
        await server.stream.send(event("{}", event="ping"), chunk(b": still here\n\n"), event(json.dumps(result(5))))
        await inbox.until(lambda got: got.frames)
        assert inbox.messages == [result(5)]
        await server.stream.send(chunk(b"data: " + b"x" * 100_000))
        await inbox.until(lambda got: got.failures)
        async with asyncio.timeout(LIMIT_S):
            await server.stream_gone.wait()


@pytest.mark.parametrize(("status", "is_lost"), [("404 Not Found", True), ("400 Bad", False), ("500 Broken", False)])
async def test_a_refused_post_fails_its_call_and_a_forgotten_session_the_channel(status: str, is_lost: bool) -> None:
    server = SseServer(status=status)
    async with connecting(server) as (channel, inbox):
        await opened(channel, inbox)
        for _ in range(2):
            with pytest.raises(GatewayFailure) as caught:
                await channel.send(Outgoing(b'{"jsonrpc":"2.0","method":"x"}'))
            assert caught.value.kind is Kind.HTTP_STATUS
        assert len(inbox.failures) == is_lost


async def test_a_post_answered_with_a_stream_is_accepted_and_the_stream_closed() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        received = await peer.request()
        if received.method == "GET":
            await peer.send(stream_head(), event("/m", event="endpoint"))
            await peer.gone()
            return
        await peer.send(stream_head())
        await peer.gone()
        gone.set()

    async with connecting(play) as (channel, inbox):
        await opened(channel, inbox)
        await channel.send(CALL)
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()


async def test_closing_closes_the_stream_and_nothing_is_sent_or_received_afterwards() -> None:
    server = SseServer()
    async with connecting(server) as (channel, inbox):
        await opened(channel, inbox)
        async with asyncio.timeout(LIMIT_S):
            await channel.close()
            await server.stream_gone.wait()
        with pytest.raises(GatewayFailure) as caught:
            await channel.send(CALL)
        assert caught.value.verdict is Verdict.DID_NOT_RUN
        assert inbox.failures == []
    assert server.posts == []


async def test_the_official_server_is_spoken_to(official: dict[str, str]) -> None:
    params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    client, inbox = HttpClient(), Inbox()
    origin = official["sse"]
    channel = HttpSseChannel("official", f"{origin}/sse", {}, client, Emitted())
    async with asyncio.timeout(30):
        await channel.open(inbox)
        await channel.send(Outgoing(text, "initialize", 1))
        await inbox.until(lambda got: got.frames)
        assert inbox.messages[0]["result"]["protocolVersion"] == "2024-11-05"
        await channel.close()
        await client.close()


class Silent(SseServer):
    """Goes on accepting messages and answers none of them, as behind a stream that a middlebox has forgotten."""

    async def _answer(self, received: ReceivedRequest) -> None:
        return


class OverLimit:
    def left_s(self) -> float:
        return 0.0


@on_both_loops
async def test_a_stream_that_brings_neither_an_answer_nor_that_to_a_probe_is_ended() -> None:
    play = Silent()
    async with connecting(play) as (channel, _):
        peer = Session("files", channel, Emitted(), {"name": "t", "version": "0"}, answer_s=0.1)
        await peer.open()
        peer.settle(Era.LEGACY, "2024-11-05")
        asking = asyncio.create_task(peer.send("tools/call", {}, limit=OverLimit()))
        await eventually(lambda: len(play.posts) == 1)
        asking.cancel()
        failure = await asyncio.wait_for(peer.ended(), LIMIT_S)
        assert failure.details == {"cause": "hung"}
        await asyncio.wait_for(play.stream_gone.wait(), LIMIT_S)
        assert "ping" in [post.message["method"] for post in play.posts]
