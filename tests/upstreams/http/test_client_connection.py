"""One connection and what a server can do on it: every way to frame an answer, every way to break one."""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.client_connection import MAX_HEAD_BYTES
from pactgate.upstreams.http.pool import ConnectionPool, PoolLimits
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, PendingResponse
from tests.support.loops import on_both_loops
from tests.support.scripted_http import LAST_CHUNK, LIMIT_S, Peer, Play, ScriptedHttp, answer, chunk, stream_head

BODY = b'{"jsonrpc":"2.0","id":1,"result":{}}'
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Ask:
    """A client and one scripted server for it."""

    def __init__(self, client: HttpClient, server: ScriptedHttp) -> None:
        self.client = client
        self.server = server
        self.target = HttpTarget("s", server.url)

    async def __call__(self, *, max_body_bytes: int = 1 << 20) -> HttpResponse:
        async with asyncio.timeout(LIMIT_S):
            return await self.client.request(b"POST", self.target, b"X: y\r\n", b"{}", max_body_bytes=max_body_bytes)

    async def fails(self, *, max_body_bytes: int = 1 << 20) -> GatewayFailure:
        with pytest.raises(GatewayFailure) as caught:
            await self(max_body_bytes=max_body_bytes)
        assert caught.value.server == "s"
        return caught.value


@asynccontextmanager
async def asking(play: Play) -> AsyncIterator[Ask]:
    async with ScriptedHttp(play) as server:
        client = HttpClient()
        try:
            yield Ask(client, server)
        finally:
            await client.close()


def playing(*pieces: bytes, then_close: bool = False) -> Play:
    """Every request on every connection is answered with these pieces."""

    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(*pieces)
            if then_close:
                peer.close()
                return

    return play


WHOLE = [
    pytest.param(answer(BODY), id="length"),
    pytest.param(CHUNKED + chunk(BODY[:7]) + chunk(BODY[7:]) + LAST_CHUNK, id="chunks"),
    pytest.param(CHUNKED + b"24;name=value\r\n" + BODY + b"\r\n" + LAST_CHUNK, id="chunk-extension"),
    pytest.param(CHUNKED + chunk(BODY) + b"0\r\nX-Trailer: y\r\nContent-Type: text/html\r\n\r\n", id="trailers"),
    pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + answer(BODY), id="interim"),
    pytest.param(answer(BODY, Content_Encoding="identity"), id="identity"),
]


@pytest.mark.parametrize("text", WHOLE)
async def test_an_answer_is_read_whole_however_it_is_framed_and_the_connection_is_kept(text: bytes) -> None:
    async with asking(playing(text)) as ask:
        for _ in range(3):
            response = await ask()
            assert (response.status, response.body, response.is_json) == (200, BODY, True)
            assert response.stream is None
        assert ask.server.connections == 1


@pytest.mark.parametrize("text", WHOLE)
async def test_an_answer_that_drips_byte_by_byte_is_the_same_answer(text: bytes) -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.drip(text)

    async with asking(play) as ask:
        assert (await ask()).body == BODY
        assert (await ask()).body == BODY
        assert ask.server.connections == 1


@given(st.sampled_from([param.values[0] for param in WHOLE]), st.lists(st.integers(1, 200), max_size=6))
def test_an_answer_may_be_cut_anywhere(text: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]

    async def run() -> None:
        async with asking(playing(*pieces)) as ask:
            assert (await ask()).body == BODY

    asyncio.run(run())


@on_both_loops
async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    text = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + BODY
    async with asking(playing(text, then_close=True)) as ask:
        assert (await ask()).body == BODY
        assert (await ask()).body == BODY
        assert ask.server.connections == 2


async def test_an_acceptance_without_a_length_is_not_waited_out() -> None:
    async with asking(playing(b"HTTP/1.1 202 Accepted\r\n\r\n")) as ask:
        assert ((await ask()).status, (await ask()).status) == (202, 202)
        assert ask.server.connections == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(answer(BODY, Connection="close"), id="said"),
        pytest.param(b"HTTP/1.0" + answer(BODY).removeprefix(b"HTTP/1.1"), id="http-1.0"),
        pytest.param(answer(BODY) + answer(b'{"poison":true}'), id="a-second-answer"),
        pytest.param(answer(BODY) + b"junk", id="junk-after"),
    ],
)
async def test_a_connection_that_can_not_be_trusted_further_is_closed_after_its_answer(text: bytes) -> None:
    async with asking(playing(text)) as ask:
        assert ((await ask()).body, (await ask()).body) == (BODY, BODY)
        assert ask.server.connections == 2


async def test_bytes_nobody_asked_for_never_become_the_next_answer() -> None:
    poisoned = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(BODY), answer(b'{"poison":true}'))
        poisoned.set()
        await peer.gone()

    async with asking(play) as ask:
        await ask()
        async with asyncio.timeout(LIMIT_S):
            await poisoned.wait()
        assert (await ask()).body == BODY
        assert ask.server.connections == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"<html>", id="html"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="tls"),
        pytest.param(b"HTTP/9.9 200 OK\r\n\r\n", id="version"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", id="two-lengths"),
        pytest.param(CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", id="length-and-chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc", id="negative"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", id="nul"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n", id="folded"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nPRI", id="upgrade"),
        pytest.param(CHUNKED + b"zz\r\nabc\r\n", id="chunk-size"),
        pytest.param(CHUNKED + b"-1\r\nabc\r\n", id="negative-chunk"),
        pytest.param(answer(b"\x1f\x8b", Content_Encoding="gzip"), id="gzip"),
        pytest.param(answer(b"x", Content_Encoding="br"), id="brotli"),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip, chunked") + chunk(b"x") + LAST_CHUNK, id="gzip-transfer"),
    ],
)
async def test_what_is_not_plain_http_1_1_is_refused_and_the_connection_dropped(text: bytes) -> None:
    async with asking(playing(text)) as ask:
        assert (await ask.fails()).kind is Kind.INVALID_FRAME
        assert (await ask.fails()).kind is Kind.INVALID_FRAME
        assert ask.server.connections == 2


async def test_a_refused_encoding_is_named() -> None:
    async with asking(playing(answer(b"\x1f\x8b", Content_Encoding="gzip"))) as ask:
        assert "'gzip'" in (await ask.fails()).message


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param((b"HTTP/1.1 200 OK\r\n", b"X-A: %b\r\n" % (b"y" * 1000)), id="headers"),
        pytest.param((b"HTTP/1.1 200 OK\r\nX-A: ", b"y" * 1000), id="one-header"),
        pytest.param((b"HTTP/1.1 200 ", b"y" * 1000), id="reason"),
        pytest.param((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40), id="interim"),
        pytest.param((CHUNKED + chunk(b"{}") + b"0\r\nX-A: ", b"y" * 1000), id="trailer"),
        pytest.param((CHUNKED + b"2;", b"y" * 1000), id="chunk-extension"),
    ],
)
async def test_nothing_between_body_bytes_may_go_on_for_ever(endless: tuple[bytes, bytes]) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(endless[0])
        while True:
            await peer.send(endless[1])

    async with asking(play) as ask:
        failure = await ask.fails()
    assert failure.kind is Kind.INVALID_FRAME


async def test_a_head_over_the_bound_is_refused_even_when_it_comes_at_once_with_its_body() -> None:
    async with asking(playing(answer(BODY, X_A="y" * MAX_HEAD_BYTES))) as ask:
        assert (await ask.fails()).kind is Kind.INVALID_FRAME
    async with asking(playing(answer(BODY, X_A="y" * (MAX_HEAD_BYTES // 2)))) as ask:
        assert (await ask()).body == BODY


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(answer(b"x" * 5000), id="length"),
        pytest.param(CHUNKED + chunk(b"x" * 2000) * 3 + LAST_CHUNK, id="chunks"),
        pytest.param(answer(b"x" * 5000, "500 Broken"), id="error-page"),
    ],
)
async def test_a_body_over_the_bound_is_refused(text: bytes) -> None:
    async with asking(playing(text)) as ask:
        failure = await ask.fails(max_body_bytes=4096)
        assert failure.kind is Kind.INVALID_FRAME
        assert "4096" in failure.message


async def test_an_endless_body_is_cut_within_bounded_memory() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        while True:
            await peer.send(chunk(b"x" * 65536))

    async with asking(play) as ask:
        tracemalloc.start()
        try:
            assert (await ask.fails(max_body_bytes=1 << 20)).kind is Kind.INVALID_FRAME
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


async def test_a_body_in_very_many_tiny_chunks_is_refused_before_it_holds_the_loop() -> None:
    async with asking(playing(CHUNKED + chunk(b"xy") * 110_000 + LAST_CHUNK)) as ask:
        assert (await ask.fails()).kind is Kind.INVALID_FRAME


@on_both_loops
async def test_a_reset_in_the_middle_of_a_body_is_a_lost_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(BODY)[:-5])
        peer.reset()

    async with asking(play) as ask:
        failure = await ask.fails()
    assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
    assert "in the middle" in failure.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(answer(BODY)[:-1], id="length"),
        pytest.param(CHUNKED + chunk(BODY), id="chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Ty", id="head"),
        pytest.param(b"H", id="one-byte"),
    ],
)
async def test_a_cut_answer_is_never_taken_for_a_whole_one(text: bytes) -> None:
    async with asking(playing(text, then_close=True)) as ask:
        failure = await ask.fails()
    assert (failure.kind, failure.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_but_explained_without_credentials(status: int) -> None:
    location = "https://user:secret@elsewhere.example:8443/mcp/?token=secret"
    async with asking(playing(answer(b"", f"{status} Moved", Location=location))) as ask:
        failure = await ask.fails()
    assert failure.kind is Kind.HTTP_STATUS
    assert failure.details == {"status": status, "permanent": True}
    assert "elsewhere.example:8443" in failure.message
    assert "secret" not in failure.message
    assert failure.verdict is (Verdict.MAY_HAVE_RUN if status == 303 else Verdict.DID_NOT_RUN)


@pytest.mark.parametrize("location", [None, "/mcp/", "http://["])
async def test_a_redirect_to_nowhere_in_particular_is_explained_too(location: str | None) -> None:
    given = {} if location is None else {"Location": location}
    async with asking(playing(answer(b"", "307 Temporary Redirect", **given))) as ask:
        assert "another path" in (await ask.fails()).message


# Giving up in the moment the answer has come


@pytest.mark.parametrize("text", [answer(BODY), stream_head() + chunk(b"data: 1\n\n")], ids=["whole", "stream"])
async def test_an_answer_nobody_waits_for_any_more_frees_or_ends_its_connection(text: bytes) -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(text)
        await peer.gone()
        gone.set()

    async with ScriptedHttp(play) as server:
        pool, target = ConnectionPool(PoolLimits(), lambda: None), HttpTarget("s", server.url)
        connection = await pool.obtain(target)
        pending = PendingResponse(loop=asyncio.get_running_loop())
        connection.begin(pending, target, b"GET" + target.tail + b"\r\n", 1000)
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait({pending})
            connection.give_up(pending)
            pending.abandon()
            if pending.result().stream is None:
                assert pool.take() is connection
                connection.abort()
            await gone.wait()
        pool.close()
        await pool.emptied()


# Streams


@on_both_loops
async def test_an_event_stream_is_handed_over_at_its_head_and_read_as_it_arrives() -> None:
    go_on = asyncio.Event()

    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(stream_head(), chunk(b"data: 1\n\n"))
            await go_on.wait()
            await peer.send(chunk(b"data: 2\n\n"), LAST_CHUNK)

    async with asking(play) as ask:
        for _ in range(2):
            go_on.clear()
            stream = (await ask()).stream
            assert stream is not None
            assert await stream.read() == b"data: 1\n\n"
            go_on.set()
            assert await stream.read() == b"data: 2\n\n"
            assert await stream.read() == b""
        assert ask.server.connections == 1


async def test_a_stream_without_a_length_ends_with_its_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"
    async with asking(playing(head + b"data: 1\n\n", then_close=True)) as ask:
        stream = (await ask()).stream
        assert stream is not None
        assert await stream.read() == b"data: 1\n\n"
        assert await stream.read() == b""


async def test_a_stream_that_breaks_raises_after_what_it_brought() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head() + chunk(b"data: 1\n\n"))
        peer.close()

    async with asking(play) as ask:
        stream = (await ask()).stream
        assert stream is not None
        assert await stream.read() == b"data: 1\n\n"
        with pytest.raises(GatewayFailure) as caught:
            await stream.read()
    assert caught.value.kind is Kind.CONNECTION_LOST


async def test_an_error_that_calls_itself_an_event_stream_is_read_whole() -> None:
    async with asking(playing(answer(b"data: x\n\n", "400 Bad Request", "text/event-stream"))) as ask:
        response = await ask()
    assert (response.status, response.stream, response.body) == (400, None, b"data: x\n\n")


@on_both_loops
async def test_a_server_that_outruns_its_reader_is_held_back() -> None:
    sent = 0
    blocked = asyncio.Event()

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(stream_head())
        piece = chunk(b":" + b"x" * 65534 + b"\n")
        while sent < 64 << 20:
            try:
                async with asyncio.timeout(0.5):
                    await peer.send(piece)
            except TimeoutError:
                blocked.set()
                return
            sent += len(piece)

    async with asking(play) as ask:
        stream = (await ask()).stream
        assert stream is not None
        async with asyncio.timeout(LIMIT_S):
            await blocked.wait()
        assert len(await stream.read()) < 1 << 20
        stream.close()
    assert sent < 32 << 20


@on_both_loops
async def test_closing_a_stream_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), chunk(b"data: 1\n\n"))
        await peer.gone()
        gone.set()

    async with asking(play) as ask:
        stream = (await ask()).stream
        assert stream is not None
        stream.close()
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()


async def test_a_stream_let_finish_keeps_its_connection_when_it_ends_soon() -> None:
    go_on, ended = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(stream_head(), chunk(b"data: 1\n\n"))
        await go_on.wait()
        await peer.send(chunk(b":\n\n"), LAST_CHUNK)
        ended.set()
        await peer.request()
        await peer.send(answer(BODY))
        await peer.gone()

    async with asking(play) as ask:
        stream = (await ask()).stream
        assert stream is not None
        assert await stream.read() == b"data: 1\n\n"
        stream.let_finish()
        assert await stream.read() == b""
        go_on.set()
        async with asyncio.timeout(LIMIT_S):
            await ended.wait()
        assert (await ask()).body == BODY
        assert ask.server.connections == 1


@pytest.mark.parametrize("endless", [chunk(b":" + b"x" * 30000 + b"\n"), b""])
async def test_a_stream_let_finish_that_does_not_end_loses_its_connection(endless: bytes) -> None:
    gone = asyncio.Event()
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(stream_head(), chunk(b"data: 1\n\n"))
        try:
            while endless:
                await peer.send(endless)
                sent += len(endless)
            await peer.gone()
        except ConnectionError:
            pass
        gone.set()

    async with asking(play) as ask:
        stream = (await ask()).stream
        assert stream is not None
        await stream.read()
        stream.let_finish()
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()
    assert sent < 2 << 20


# Answers whose head is known.


@pytest.mark.parametrize("cut", [0, 1, 5, len(BODY) - 1], ids=["head alone", "one byte", "some", "all but one"])
@on_both_loops
async def test_an_answer_with_a_known_head_is_read_whole_in_whatever_pieces_its_body_comes(cut: int) -> None:
    head = answer(BODY).removesuffix(BODY)

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(BODY))
        await peer.request()
        await peer.send(head + BODY[:cut])
        for place in range(cut, len(BODY)):
            await peer.send(BODY[place : place + 1])
        await peer.request()
        await peer.send(answer(BODY))
        await peer.gone()

    async with ScriptedHttp(play) as server:
        client, target = HttpClient(), HttpTarget("s", server.url)
        async with asyncio.timeout(LIMIT_S):
            for _ in range(3):
                response = await client.request(b"POST", target, b"", b"{}")
                assert (response.status, response.body) == (200, BODY)
            await client.close()


@on_both_loops
async def test_more_than_a_known_head_promised_is_not_taken_and_ends_the_connection() -> None:
    head, dials = answer(BODY).removesuffix(BODY), 0

    async def play(peer: Peer) -> None:
        nonlocal dials
        dials += 1
        await peer.request()
        await peer.send(answer(BODY))
        if dials == 1:
            await peer.request()
            await peer.send(head + BODY[:3])
            await peer.send(BODY[3:] + b"HTTP/1.1 200 OK")
        await peer.gone()

    async with ScriptedHttp(play) as server:
        client, target = HttpClient(), HttpTarget("s", server.url)
        async with asyncio.timeout(LIMIT_S):
            for _ in range(3):
                assert (await client.request(b"POST", target, b"", b"{}")).body == BODY
            await client.close()
    assert dials == 2
