"""The relay for HTTP, against a server that writes exactly what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.capture.http_relay import BadUrlError, HttpRelay, Origin
from tests.capture.taps import Noted

STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


class Site:
    """A server that answers request after request with prepared bytes, and keeps what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.received = b""
        self.gone = asyncio.Event()
        self.go_on = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.received += data
            if self._answers and self._is_whole():
                for piece in self._answers.pop(0).split(b"|"):
                    writer.write(piece)
                    await writer.drain()
        self.gone.set()
        writer.close()

    def _is_whole(self) -> bool:
        head, found, body = self.received.rpartition(b"\r\n\r\n")
        return bool(found) and (b"POST" not in head or len(body) > 0 or self.received.endswith(b"\r\n0\r\n\r\n"))


@asynccontextmanager
async def relayed(site: Site, path: str = "/mcp") -> AsyncIterator[tuple[Noted, int, int]]:
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    tap = Noted()
    relay = HttpRelay(f"http://127.0.0.1:{port}{path}", tap)
    try:
        async with asyncio.timeout(5):
            yield tap, await relay.open(0), port
    finally:
        await relay.close()
        server.close()
    assert tap.is_closed


async def exchange(port: int, sent: bytes, expected: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    got = await reader.readexactly(expected)
    writer.close()
    await writer.wait_closed()
    return got


def post(body: bytes, port: int, extra: bytes = b"") -> bytes:
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Odd-CASE:  kept \r\nAccept-Encoding: gzip\r\n%b" % (
        port,
        extra,
    )
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


async def test_only_host_and_accept_encoding_change_on_the_way_and_nothing_on_the_way_back() -> None:
    body, answer = (
        b'{"jsonrpc":"2.0","id":1,"method":"x"}',
        b"HTTP/1.1 200 Fine\r\ncontent-LENGTH: 2\r\nX: \xff\r\n\r\n{}",
    )
    site = Site(answer)
    async with relayed(site) as (tap, port, server_port):
        assert await exchange(port, post(body, port), len(answer)) == answer
        expected = (
            post(body, port).replace(b"Accept-Encoding: gzip\r\n", b"").replace(b"Host: 127.0.0.1:%d\r\n" % port, b"")
        )
        rewritten = b"Host: 127.0.0.1:%d\r\nAccept-Encoding: identity\r\n" % server_port
        assert site.received == expected.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\n" + rewritten)
        (hop,) = tap.hops
        assert (hop.verb, hop.path, hop.body) == ("POST", "/mcp", body)
        assert hop.answer is not None
        assert (hop.answer[0], hop.answer[2]) == (200, b"{}")


async def test_a_stream_passes_piece_by_piece_and_its_events_are_told() -> None:
    chunks = b"6\r\ndata: \r\n|4\r\n{}\n\n\r\n|0\r\n\r\n"
    site = Site(STREAM + b"|" + chunks)
    wire = STREAM + chunks.replace(b"|", b"")
    async with relayed(site) as (tap, port, _):
        assert await exchange(port, post(b'{"jsonrpc":"2.0"}', port), len(wire)) == wire
        (hop,) = tap.hops
        assert hop.stream is not None
        assert hop.stream[1].count(b"Set-Cookie") == 2
        assert hop.data == b"data: {}\n\n"
        assert hop.ended_by_client is False


async def test_a_client_that_leaves_a_stream_is_seen_by_the_server_and_in_the_record() -> None:
    site = Site(STREAM + b"4\r\n:\n\n\n\r\n")
    async with relayed(site) as (tap, port, _):
        await exchange(port, post(b'{"jsonrpc":"2.0"}', port), len(STREAM))
        await site.gone.wait()
        assert tap.hops[0].ended_by_client is True


async def test_requests_on_one_connection_are_told_apart_chunked_or_not() -> None:
    answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    site = Site(answer, answer)
    chunked = b"POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n"
    async with relayed(site) as (tap, port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for sent in (post(b"{}", port), chunked):
            writer.write(sent)
            assert await reader.readexactly(len(answer)) == answer
        writer.close()
        await writer.wait_closed()
        assert [hop.body for hop in tap.hops] == [b"{}", b"[1,2]"]
        assert [hop.answer and hop.answer[0] for hop in tap.hops] == [202, 202]


async def test_what_is_not_mcp_passes_unrecorded() -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    site = Site(answer)
    async with relayed(site) as (tap, port, _):
        sent = b"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: x\r\n\r\n"
        assert await exchange(port, sent, len(answer)) == answer
        assert tap.hops == []


async def test_a_server_that_can_not_be_reached_is_said_with_a_502() -> None:
    closed = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    relay = HttpRelay(f"http://127.0.0.1:{port}/mcp", Noted())
    bound = await relay.open(0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", bound)
        writer.write(b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read(100)).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        writer.close()
        await writer.wait_closed()
    finally:
        await relay.close()


@pytest.mark.parametrize("url", ["ftp://x/", "http:///x", "http://user:pw@x/", "http://x:99999999/", "nonsense"])
def test_an_address_that_can_not_be_recorded_is_refused(url: str) -> None:
    with pytest.raises(BadUrlError):
        Origin(url)
