"""Who makes room when there are as many connections as may be, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from pactgate.core.events import ConnectionsClosed, RequestRefused
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.server_limits import ServerLimits
from tests.support.facing import answering_after, listening, modern, serving, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import RawClient, get, post

LIMITS = ServerLimits(max_connections=40, max_connections_per_address=16)
ELSEWHERE = "127.0.0.2"


@asynccontextmanager
async def opened(port: int, count: int, first: bytes = b"G", host: str = "127.0.0.1") -> AsyncIterator[list[RawClient]]:
    clients = [RawClient(port, host) for _ in range(count)]
    for client in clients:
        await client.__aenter__()
        await client.send(first)
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


async def is_open(client: RawClient) -> bool:
    """Whether the gateway has not closed its side."""
    try:
        await asyncio.wait_for(client.reader.read(1), 0.05)
    except TimeoutError:
        return True
    except ConnectionError:
        return False
    return False


def call() -> bytes:
    return modern("tools/call", name="echo")


async def test_a_flood_of_connections_without_a_request_locks_nobody_out() -> None:
    async with serving(limits=LIMITS) as served, served.client() as before:
        assert (await before.ask(call())).status == 200
        async with opened(served.port, 100):
            assert served.server.connection_count <= 16
            assert (await before.ask(call())).status == 200
            for _ in range(20):
                assert (await served.ask(call())).status == 200
        closed = [event for event in served.events if isinstance(event, ConnectionsClosed)]
        assert {event.address for event in closed} == {"127.0.0.1"}
        assert not any(isinstance(event, RequestRefused) for event in served.events)


async def test_a_flood_from_one_address_leaves_the_connections_of_another_alone() -> None:
    async with (
        serving(limits=LIMITS) as served,
        opened(served.port, 5, host=ELSEWHERE) as neighbours,
        opened(served.port, 100),
    ):
        assert served.server.connection_count <= 16 + 5
        assert all([await is_open(client) for client in neighbours])


async def test_idle_connections_make_room_only_after_those_that_were_never_admitted_the_oldest_first() -> None:
    limits = ServerLimits(max_connections=40, max_connections_per_address=4)
    async with serving(limits=limits) as served, served.client() as older, served.client() as newer:
        assert (await older.ask(call())).status == 200
        assert (await newer.ask(call())).status == 200
        async with opened(served.port, 2) as silent:
            assert (await served.ask(call())).status == 200
            assert not await is_open(silent[0])
            async with opened(served.port, 3, call()) as served_later:
                for client in served_later:
                    assert (await client.answer()).status == 200
                assert not await is_open(silent[1])
                assert not await is_open(older)
                assert await is_open(newer)


class Working:
    """A frontend whose requests, of the principals their paths name, are under way until `go` is set."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self._work = answering_after(self.go, lambda exchange: exchange.respond(200))

        self._admitted: set[object] = set()

    def admit(self, exchange: HttpExchange) -> bool:
        """The same head is judged once, as the frontend does."""
        assert exchange.line is not None
        if exchange.head not in self._admitted and not exchange.line.may_serve(exchange.path):
            exchange.respond(503)
            return False
        self._admitted.add(exchange.head)
        return True

    def handle(self, exchange: HttpExchange) -> None:
        if self.admit(exchange):
            self._work(exchange)


FOUR = ServerLimits(max_connections=40, max_connections_per_address=4)


@on_both_loops
async def test_a_request_under_way_makes_no_room_and_beyond_the_limit_its_principal_is_refused() -> None:
    working = Working()
    async with listening(working.handle, FOUR) as (server, port, _), opened(port, 4, get("/alice")) as hers:
        await until(lambda: len(server.exchanges()) == 4)
        async with RawClient(port) as refused:
            answer = await refused.ask(get("/alice"))
            assert (answer.status, answer.header("connection")) == (503, "close")
        working.go.set()
        assert [(await client.answer()).status for client in hers] == [200] * 4


@pytest.mark.parametrize("request_", [get("/bob"), post(b"x" * 300_000, "/bob")], ids=["small", "large"])
@on_both_loops
async def test_beyond_the_limit_another_principal_is_served_one_request_at_a_time(request_: bytes) -> None:
    working = Working()
    listener = listening(working.handle, FOUR, working.admit)
    async with listener as (server, port, _), opened(port, 4, get("/alice")):
        await until(lambda: len(server.exchanges()) == 4)
        async with RawClient(port) as bob:
            await bob.send(request_)
            await until(lambda: len(server.exchanges()) == 5)
            async with RawClient(port) as one_too_many:
                assert await one_too_many.rest() == b""
            working.go.set()
            answer = await bob.answer()
            assert (answer.status, answer.header("connection")) == (200, "close")
            assert await bob.rest() == b""


async def test_the_limit_of_one_address_does_not_concern_another() -> None:
    working = Working()
    async with listening(working.handle, FOUR) as (server, port, _), opened(port, 4, get("/alice")):
        await until(lambda: len(server.exchanges()) == 4)
        async with opened(port, 4, get("/alice"), ELSEWHERE):
            await until(lambda: len(server.exchanges()) == 8)


async def test_far_beyond_the_limit_connections_are_closed_without_a_word() -> None:
    working = Working()
    limits = ServerLimits(max_connections=32, max_connections_per_address=32)
    async with listening(working.handle, limits) as (server, port, _), opened(port, 80, get("/alice")) as hers:
        await until(lambda: len(server.exchanges()) == 24)
        assert server.connection_count <= 24 + 1
        assert sum([await is_open(client) for client in hers]) == 24


async def test_all_addresses_together_are_bounded_and_still_leave_room_for_a_new_one() -> None:
    async with (
        serving(limits=LIMITS) as served,
        opened(served.port, 15),
        opened(served.port, 15, host=ELSEWHERE),
        opened(served.port, 15, host="127.0.0.3"),
    ):
        assert served.server.connection_count <= 40
        async with RawClient(served.port, "127.0.0.4") as client:
            assert (await client.ask(call())).status == 200


@pytest.mark.parametrize(("count", "is_kept"), [(9, True), (11, False)])
async def test_idle_connections_end_sooner_while_it_is_crowded(count: int, is_kept: bool) -> None:
    limits = ServerLimits(max_connections=14, crowded_idle_timeout_s=0.1, sweep_s=0.02)
    loop = asyncio.get_running_loop()
    async with (
        serving(limits=limits) as served,
        opened(served.port, count - 3, call()) as idle,
        opened(served.port, 3, call(), ELSEWHERE),
    ):
        for client in idle:
            assert (await client.answer()).status == 200
        later = loop.time() + 0.4
        await until(partial(lambda end: loop.time() > end, later))
        assert await is_open(idle[0]) is is_kept
