from __future__ import annotations

import asyncio
import socket

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits
from tests.support.facing import answering_after, listening, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import WAIT_S, RawClient, get


def hello(exchange: HttpExchange) -> None:
    exchange.respond(200, JSON_HEAD, b'"hello"')


@on_both_loops
async def test_a_port_in_use_says_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = HttpServer(hello, ServerLimits(), lambda event: None)
        with pytest.raises(GatewayFailure) as caught:
            await server.listen("127.0.0.1", port)
        await server.close(0)
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert caught.value.message == f"port {port} is in use; choose another with --port or listen.port"


@pytest.mark.parametrize(
    ("host", "words"), [("192.0.2.1", "not an address of this machine"), ("no-such-host.invalid", "can't be resolved")]
)
async def test_an_address_that_can_not_be_bound_says_why(host: str, words: str) -> None:
    server = HttpServer(hello, ServerLimits(), lambda event: None)
    with pytest.raises(GatewayFailure) as caught:
        await server.listen(host, 0)
    await server.close(0)
    assert words in caught.value.message


@on_both_loops
async def test_closing_ends_idle_connections_at_once_and_takes_no_new_ones() -> None:
    async with listening(hello) as (server, port, _), RawClient(port) as client:
        await client.ask(get("/"))
        await asyncio.wait_for(server.close(10 * WAIT_S), WAIT_S)  # the grace is for those that have work
        assert await client.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await RawClient(port).__aenter__()


@on_both_loops
async def test_closing_lets_running_exchanges_finish() -> None:
    started, go = asyncio.Event(), asyncio.Event()
    wait = answering_after(go, lambda exchange: exchange.respond(200, JSON_HEAD, b'"done"'))

    def slow(exchange: HttpExchange) -> None:
        started.set()
        wait(exchange)

    async with listening(slow) as (server, port, _), RawClient(port) as client:
        await client.send(get("/"))
        await started.wait()
        closing = asyncio.create_task(server.close(WAIT_S))
        await until(lambda: server.is_closing)
        go.set()
        answer = await client.answer()
        assert (answer.body, answer.header("connection")) == (b'"done"', "close")
        await asyncio.wait_for(closing, WAIT_S)
        assert server.connection_count == 0


@on_both_loops
async def test_what_is_still_running_after_the_grace_period_is_told_and_cut() -> None:
    started = asyncio.Event()
    wait = answering_after(asyncio.Event(), hello)

    def endless(exchange: HttpExchange) -> None:
        started.set()
        wait(exchange)

    async with listening(endless) as (server, port, _), RawClient(port) as client:
        await client.send(get("/"))
        await started.wait()
        await server.close(0.01)
        answer = await client.answer()
        assert (answer.status, answer.body, answer.header("connection")) == (503, b'"stopping"', "close")
        assert server.connection_count == 0


async def test_a_stream_nobody_works_on_ends_in_good_order_when_the_server_closes() -> None:
    def standing(exchange: HttpExchange) -> None:
        exchange.open_stream().write(b"data: x\n\n")

    async with listening(standing) as (server, port, _), RawClient(port) as client:
        await client.send(get("/"))
        assert (await client.head()).status == 200
        assert await client.chunk() == b"data: x\n\n"
        await server.close(WAIT_S)
        assert await client.chunk() == b""


class Stubborn:
    """Work that counts how often it is told to stop, and goes on."""

    def __init__(self) -> None:
        self.cancellations = 0

    def cancel(self) -> None:
        self.cancellations += 1


async def test_work_that_will_not_stop_does_not_hold_up_the_end() -> None:
    started, work = asyncio.Event(), Stubborn()

    def stubborn(exchange: HttpExchange) -> None:
        started.set()
        exchange.work = work

    async with listening(stubborn) as (server, port, _), RawClient(port) as client:
        await client.send(get("/"))
        await started.wait()
        async with asyncio.timeout(WAIT_S):
            await server.close(0)
        assert server.connection_count == 0
        assert work.cancellations == 1
        assert await client.rest() == b""


async def test_many_clients_are_served_side_by_side() -> None:
    async with listening(hello) as (server, port, _):

        async def one() -> None:
            async with RawClient(port) as client:
                for _ in range(20):
                    assert (await client.ask(get("/"))).status == 200

        await asyncio.gather(*(one() for _ in range(50)))
        await until(lambda: server.connection_count == 0)
        assert server.held_bytes == 0
