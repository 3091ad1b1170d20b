from __future__ import annotations

import asyncio

import pytest

from pactgate.inbound.http_exchange import JSON_HEAD, EventStream, HttpExchange
from pactgate.inbound.server_limits import ServerLimits
from pactgate.protocol.messages import encode_result
from tests.support.facing import listening, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import RawClient, get, request


async def test_an_answer_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []

    def handle(exchange: HttpExchange) -> None:
        assert exchange.line is not None
        transport = exchange.line.transport

        class Counting:
            def write(self, data: bytes) -> None:
                writes.append(data)
                transport.write(data)

        monkeypatch.setattr(exchange.line, "transport", Counting(), raising=False)
        exchange.respond(200, JSON_HEAD + b"X-More: yes\r\n", b"{}")
        monkeypatch.undo()

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        answer = await client.ask(get("/"))
    assert answer.headers == [("content-type", "application/json"), ("x-more", "yes"), ("content-length", "2")]
    assert len(writes) == 1


@pytest.mark.parametrize("size", [2, 20_000, 32 * 1024, 400_000])
@pytest.mark.parametrize("protocol", ["1.1", "1.0"])
@on_both_loops
async def test_a_result_is_answered_as_the_same_bytes_whatever_its_size(size: int, protocol: str) -> None:
    result = b'"%b"' % (b"x" * (size - 2))

    def handle(exchange: HttpExchange) -> None:
        exchange.extra_head = b"X-Extra: yes\r\n"
        if exchange.path == "/whole":
            exchange.respond(200, JSON_HEAD, encode_result(b"7", result))
        else:
            exchange.respond_result(b"7", result)
        exchange.respond_result(b"8", result)  # once is enough

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        line = "GET %s HTTP/" + protocol + "\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
        whole, in_pieces = [await client.ask((line % path).encode()) for path in ("/whole", "/result")]
    assert (in_pieces.status, in_pieces.headers, in_pieces.body) == (whole.status, whole.headers, whole.body)
    assert in_pieces.body == b'{"jsonrpc":"2.0","id":7,"result":%b}' % result


async def test_an_exchange_is_answered_once() -> None:
    def handle(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, b"1")
        exchange.respond(200, JSON_HEAD, b"2")
        stream = exchange.open_stream()
        assert not stream.is_open
        assert not stream.write(b"3")
        stream.close()

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        assert (await client.ask(get("/"))).body == b"1"
        assert (await client.ask(get("/"))).body == b"1"


async def test_answers_without_a_body_have_no_type_and_a_head_request_gets_no_body() -> None:
    def handle(exchange: HttpExchange) -> None:
        exchange.extra_head = b"X-Extra: yes\r\n"
        if exchange.method == "HEAD":
            exchange.respond(200, JSON_HEAD, b"{}")
        else:
            exchange.respond(int(exchange.path[1:]))

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        empty = await client.ask(get("/202"))
        assert empty.headers == [("x-extra", "yes"), ("content-length", "0")]
        assert (await client.ask(get("/204"))).headers == [("x-extra", "yes")]
        await client.send(request("HEAD", "/", {"host": "x"}))
        assert (await client.head()).header("content-length") == "2"
        assert (await client.ask(get("/202"))).status == 202


@on_both_loops
async def test_a_stream_is_chunked_and_the_connection_goes_on_after_it() -> None:
    def handle(exchange: HttpExchange) -> None:
        exchange.extra_head = b"X-Extra: yes\r\n"
        stream = exchange.open_stream()
        assert stream.is_open
        assert stream.write(b"data: 1\n\n")
        assert stream.write(b"data: 2\n\n")
        stream.close()
        assert not stream.write(b"data: 3\n\n")

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        for _ in range(2):
            answer = await client.ask(get("/"))
            assert answer.body == b"data: 1\n\ndata: 2\n\n"
            assert answer.header("content-type") == "text/event-stream"
            assert answer.header("x-accel-buffering") == "no"
            assert answer.header("cache-control") == "no-store"
            assert answer.header("x-extra") == "yes"


async def test_a_stream_over_http_1_0_ends_with_the_connection() -> None:
    def handle(exchange: HttpExchange) -> None:
        stream = exchange.open_stream()
        stream.write(b"data: 1\n\n")
        stream.close()

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        answer = await client.ask(b"GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
        assert answer.body == b"data: 1\n\n"
        assert answer.header("connection") == "close"


@on_both_loops
async def test_a_stream_that_is_not_taken_is_cut_at_its_bound() -> None:
    outcomes: list[bool] = []
    unsent: list[int] = []
    gone = asyncio.Event()

    def handle(exchange: HttpExchange) -> None:
        exchange.on_disconnect = gone.set
        write_on(exchange.open_stream())

    def write_on(stream: EventStream) -> None:
        if stream.is_open and len(outcomes) < 10_000:
            outcomes.append(stream.write(b"x" * 100_000))
            asyncio.get_running_loop().call_soon(write_on, stream)
        else:
            unsent.append(stream.unsent_bytes)

    limits = ServerLimits(max_connections=5, max_unsent_bytes=1_000_000)
    async with listening(handle, limits) as (server, port, _), RawClient(port) as client:
        client.transport.pause_reading()
        await client.send(get("/"))
        await asyncio.wait_for(gone.wait(), 5)
        await until(lambda: server.connection_count == 0 and bool(unsent))
    assert unsent == [0]
    assert outcomes[-1] is False
    assert len(outcomes) < 1000


async def test_an_answer_that_failed_before_it_began_is_an_internal_error() -> None:
    def handle(exchange: HttpExchange) -> None:
        exchange.work = asyncio.get_running_loop().create_future()
        exchange.fail(b'"seven"' if exchange.path == "/id" else None)
        exchange.fail(b"8")  # once is enough

    async with listening(handle) as (_, port, _), RawClient(port) as client:
        for path, id_ in (("/id", "seven"), ("/", None)):
            answer = await client.ask(get(path))
            assert (answer.status, answer.header("content-type")) == (500, "application/json")
            assert (answer.json["id"], answer.json["error"]["message"]) == (id_, "Internal error.")
            assert (answer.error_code, answer.json["error"]["data"]["failure_mode"]) == (-32603, "internal")


async def test_an_answer_that_failed_after_it_began_ends_the_connection() -> None:
    gone = asyncio.Event()

    def handle(exchange: HttpExchange) -> None:
        exchange.on_disconnect = gone.set
        exchange.open_stream().write(b"data: 1\n\n")
        exchange.fail(b"7")

    async with listening(handle) as (server, port, _), RawClient(port) as client:
        await client.send(get("/"))
        assert b"Internal error" not in await client.rest()
        await asyncio.wait_for(gone.wait(), 5)
        await until(lambda: server.connection_count == 0)


async def test_an_answer_that_failed_after_its_client_went_away_is_nobodys_business() -> None:
    outcomes: list[bool] = []

    def handle(exchange: HttpExchange) -> None:
        def fail() -> None:
            exchange.fail(b"7")
            outcomes.append(exchange.is_answered)

        exchange.on_disconnect = fail

    async with listening(handle) as (server, port, events):
        async with RawClient(port) as client:
            await client.send(get("/"))
            await until(lambda: server.connection_count == 1)
        await until(lambda: bool(outcomes))
        assert (outcomes, events) == ([False], [])


async def test_one_large_write_is_taken_whole() -> None:
    def handle(exchange: HttpExchange) -> None:
        stream = exchange.open_stream()
        assert stream.write(b"x" * 9_000_000)
        stream.close()

    limits = ServerLimits(max_connections=5, max_unsent_bytes=1_000_000)
    async with listening(handle, limits) as (_, port, _), RawClient(port) as client:
        assert len((await client.ask(get("/"))).body) == 9_000_000
