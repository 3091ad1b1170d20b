"""A connection changes hands: two servers in one process, each with its own callers, one of which accepts everything."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.inbound.auth import Guard
from pactgate.inbound.http_exchange import Exchange
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits
from pactgate.workers import listening, packets
from pactgate.workers.handover import Handover
from pactgate.workers.homes import Place, home_of
from tests.support.children import descriptors
from tests.support.facing import until
from tests.support.loops import on_both_loops
from tests.support.raw_http import RawClient, get, post

HERE = next(name for name in "abcdefgh" if home_of(name, 2) == 0)
THERE = next(name for name in "abcdefgh" if home_of(name, 2) == 1)
GUARD = {name: (name, frozenset[str]()) for name in (HERE, THERE)}


class Pair:
    """Two workers; only the first listens."""

    def __init__(
        self, port: int, servers: list[HttpServer], handovers: list[Handover], inbox: socket.socket, guard: Guard
    ) -> None:
        self.port = port
        self.inbox = inbox
        self.guard = guard
        self.servers = servers
        self.first, self.second = handovers


@asynccontextmanager
async def two_workers() -> AsyncIterator[Pair]:
    inboxes = [packets.pair() for _ in range(2)]
    guard = Guard(host="127.0.0.1", tokens=GUARD)
    [listener] = listening.bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    servers, handovers = [], []
    for index in range(2):

        async def handle(exchange: Exchange, index: int = index) -> None:
            exchange.respond(200, body=b"%d:%d" % (index, len(exchange.body)))

        server = HttpServer(handle, ServerLimits(), lambda event: None)
        outboxes = [writing.dup() for _, writing in inboxes]
        handovers.append(Handover(Place(index, 2), inboxes[index][0].dup(), outboxes, guard, server))
        await server.listen_on([listener] if index == 0 else [])
        servers.append(server)
    try:
        yield Pair(port, servers, handovers, inboxes[1][0], guard)
    finally:
        for server, handover in zip(servers, handovers, strict=True):
            handover.close()
            await server.close(0.0)
        for pair in inboxes:
            listening.close(pair)


def asking(name: str, body: bytes = b"hello", path: str = "/mcp") -> bytes:
    return post(body, path, authorization=f"Bearer {name}")


@on_both_loops
async def test_every_request_is_served_where_its_caller_is_at_home_and_nothing_is_left_open() -> None:
    async with two_workers() as pair:
        pass  # a loop that listens for the first time opens what it keeps
    before = descriptors()
    async with two_workers() as pair, RawClient(pair.port) as client:
        for name, home in ((HERE, 0), (THERE, 1), (THERE, 1), (HERE, 0), (THERE, 1)):
            assert (await client.ask(asking(name))).body == b"%d:5" % home
        assert (pair.first.handed_count, pair.second.handed_count) == (2, 1)
        assert sum(server.connection_count for server in pair.servers) == 1
    await until(lambda: descriptors() == before)


@on_both_loops
async def test_what_was_sent_ahead_and_in_pieces_goes_along() -> None:
    async with two_workers() as pair:
        async with RawClient(pair.port) as client:
            await client.send(asking(THERE) + asking(THERE, b"again!") + asking(HERE)[:30])
            assert [(await client.answer()).body for _ in range(2)] == [b"1:5", b"1:6"]
            await client.send(asking(HERE)[30:])
            assert (await client.answer()).body == b"0:5"
        whole = asking(THERE, b"x" * 300_000)
        for cut in (1, 60, len(whole) // 2):
            async with RawClient(pair.port) as client:
                await client.send(whole[:cut])
                await asyncio.sleep(0)
                await client.send(whole[cut:])
                assert (await client.answer()).body == b"1:300000"


@on_both_loops
async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked_at_home() -> None:
    async with two_workers() as pair, RawClient(pair.port) as client:
        data = post(b"hello", authorization=f"Bearer {THERE}", expect="100-continue")
        await client.send(data[:-5])
        assert (await client.head()).status == 100
        await client.send(data[-5:])
        assert (await client.answer()).body == b"1:5"


@on_both_loops
async def test_what_is_not_a_caller_s_own_is_answered_by_whoever_is_asked() -> None:
    async with two_workers() as pair, RawClient(pair.port) as client:
        assert (await client.ask(get("/metrics", authorization=f"Bearer {THERE}"))).body == b"0:0"
        assert (await client.ask(asking("stranger"))).body == b"0:5", "to be refused there"
        assert pair.first.handed_count == 0


@on_both_loops
async def test_where_the_worker_is_away_or_full_the_caller_is_told_to_come_again() -> None:
    async with two_workers() as pair:
        pair.first.away.add(1)
        async with RawClient(pair.port) as client:
            refused = await client.ask(asking(THERE))
            assert (refused.status, refused.header("retry-after")) == (503, "1")
        pair.first.away.clear()
        pair.second.close()
        async with asyncio.timeout(5):
            clients = []
            while True:
                client = await RawClient(pair.port).__aenter__()
                clients.append(client)
                await client.send(asking(THERE, b"x" * 60_000))
                answer = asyncio.create_task(client.head())
                await asyncio.wait([answer], timeout=0.05)
                if answer.done():
                    assert answer.result().status == 503
                    break
                answer.cancel()
                await asyncio.wait([answer])
            for client in clients:
                await client.close()


@on_both_loops
async def test_a_worker_that_is_ending_leaves_connections_to_its_successor() -> None:
    async with two_workers() as pair, RawClient(pair.port) as client:
        pair.servers[1].is_closing = True
        await client.send(asking(THERE))
        await until(lambda: pair.first.handed_count == 1)
        await asyncio.sleep(0)
        assert pair.second.adopted_count == 0
        pair.servers[1].is_closing = False
        successor = Handover(Place(1, 2), pair.inbox.dup(), [], pair.guard, pair.servers[1])
        assert (await client.answer()).body == b"1:5"
        successor.close()


async def test_a_connection_whose_answer_is_not_taken_yet_is_not_torn_from_it() -> None:
    class Stuck:
        """A transport with something unsent."""

        def get_write_buffer_size(self) -> int:
            return 1

    async with two_workers() as pair:
        with pytest.raises(Exception, match="Take the answer"):
            pair.first._send(1, Stuck(), b"")  # type: ignore[arg-type]
