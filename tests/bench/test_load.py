from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from bench.answers import Upstream
from bench.load import Load, LoadError, measure
from bench.traffic import FIXED, MIXED, texts
from bench.upstream_http import UpstreamConnection

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Counted(UpstreamConnection):
    """Says when it has ended, so that a test can wait for the server's side of a connection too."""

    def __init__(self, known: Upstream, made: list[asyncio.Event], *, streams: bool) -> None:
        super().__init__(known, streams=streams)
        self._ended = asyncio.Event()
        made.append(self._ended)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()


@asynccontextmanager
async def upstream(tools: int = 23, *, streams: bool = False) -> AsyncIterator[str]:
    known, made = Upstream(tools), list[asyncio.Event]()
    server = await asyncio.get_running_loop().create_server(
        lambda: Counted(known, made, streams=streams), "127.0.0.1", 0
    )
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        for ended in made:
            await asyncio.wait_for(ended.wait(), 5)


@asynccontextmanager
async def impostor(respond: Respond) -> AsyncIterator[str]:
    busy: set[asyncio.Task[None] | None] = set()

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        busy.add(asyncio.current_task())
        await respond(reader, writer)
        await writer.wait_closed()

    server = await asyncio.start_server(tracked, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        await asyncio.wait_for(asyncio.gather(*filter(None, busy)), 5)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    "load",
    [
        Load("", connections=4, calls=50),
        Load("", "blob", kind="blob", size=100_000, calls=20),
        Load("", kind="list", tools=23, calls=20),
    ],
    ids=["echo", "blob", "list"],
)
async def test_each_kind_of_load_is_answered_in_either_era(load: Load, era: str) -> None:
    async with upstream() as url:
        asked = Load(
            url,
            load.tool,
            load.kind,
            era,
            connections=load.connections,
            calls=load.calls,
            size=load.size,
            tools=load.tools,
        )
        measured = await measure(asked)
    assert (measured.calls, measured.failed) == (load.calls, 0)
    assert 0 < measured.p50_us <= measured.p99_us
    assert measured.answer_bytes > (load.size if load.kind != "list" else 1000)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_mixed_requests_are_answered_and_checked_in_either_era(era: str) -> None:
    async with upstream() as url:
        measured = await measure(Load(url, era=era, connections=4, calls=3000, shape=MIXED))
    assert (measured.calls, measured.failed) == (3000, 0)


async def test_an_answer_to_another_request_is_a_failure() -> None:
    text = texts(FIXED)[0].with_prefix(0, 0)[1]
    body = b'{"jsonrpc":"2.0","id":10000009,"result":{"content":[{"type":"text","text":"%b"}]}}' % text.encode()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with impostor(respond) as url:
        with pytest.raises(LoadError, match="10000009"):
            await measure(Load(url, era="modern", calls=3, warmup=0))


async def test_answers_that_come_as_an_event_stream_are_answers() -> None:
    async with upstream(streams=True) as url:
        measured = await measure(Load(url, connections=2, calls=20))
    assert (measured.calls, measured.failed) == (20, 0)


async def test_a_rate_is_kept_by_all_connections_together() -> None:
    async with upstream() as url:
        measured = await measure(Load(url, connections=4, seconds=0.5, warmup=0, calls_per_s=200))
    assert 20 <= measured.calls <= 105, "100 calls are due in half a second; a late one is sent at once, none early"


async def test_a_list_that_lacks_a_tool_is_a_failure() -> None:
    async with upstream(tools=22) as url:
        with pytest.raises(LoadError, match="22 tools listed, 23 expected"):
            await measure(Load(url, kind="list", tools=23, calls=1))


async def test_an_answer_with_somebody_elses_text_is_a_failure() -> None:
    body = b'{"jsonrpc":"2.0","id":10000000,"result":{"content":[{"type":"text","text":"yours?"}]}}'

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with impostor(respond) as url:
        with pytest.raises(LoadError, match="yours"):
            await measure(Load(url, era="modern", calls=3, warmup=0))


async def test_a_connection_that_is_closed_instead_of_answered_is_a_failure() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.close()

    async with impostor(respond) as url:
        with pytest.raises(LoadError, match="closed while an answer was due"):
            await measure(Load(url, era="modern", calls=3, warmup=0))


async def test_nobody_listening_is_said_so() -> None:
    async with upstream() as url:
        gone = url
    with pytest.raises(LoadError, match="Connect"):
        await measure(Load(gone, calls=1))
