"""Bytes as a hostile or slow client sends them, over real sockets: framing, limits, time, order."""

from __future__ import annotations

import asyncio
import socket
import time
from functools import partial

import pytest

from pactgate.core.events import InternalFailure, RequestRefused
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.server_limits import ServerLimits
from tests.support.bad_http import HOST, NOT_REQUESTS, with_body, with_chunks
from tests.support.eventually import eventually
from tests.support.facing import answering_after, listening, modern_call, serving, until
from tests.support.loops import on_both_loops
from tests.support.raw_http import WAIT_S, RawClient, encode_body, get, post

QUICK = ServerLimits(
    max_connections=50,
    head_timeout_s=0.1,
    body_timeout_s=0.1,
    idle_timeout_s=0.1,
    write_timeout_s=0.2,
    linger_s=0.1,
    stream_keepalive_s=0.05,
    sweep_s=0.01,
)


@pytest.mark.parametrize("case", NOT_REQUESTS)
async def test_what_is_no_request_is_answered_once_and_the_connection_ends(case: str) -> None:
    wire, status = NOT_REQUESTS[case]
    async with serving() as served:
        async with served.client() as client:
            answer = await client.ask(wire)
            assert answer.status == status
            assert answer.header("connection") == "close"
            assert "error" in answer.json
            assert await client.rest() == b""
        await served.still_serves()
        assert [event.status for event in served.events if isinstance(event, RequestRefused)] == [answer.status]


@on_both_loops
async def test_an_endless_chunked_body_is_ended_by_us() -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    async with serving() as served:
        async with served.client() as client:
            await client.send(with_chunks(chunk))
            for _ in range(200):
                client.writer.write(chunk)
            assert (await client.answer()).status == 413
        await served.still_serves()
        assert served.server.held_bytes == 0


@pytest.mark.timing
async def test_three_hundred_thousand_chunks_of_one_byte_are_linear() -> None:
    body = encode_body(modern_call("echo", {"text": "x" * 300_000}))
    wire = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    mirrored = (b"MCP-Protocol-Version: 2026-07-28", b"Mcp-Method: tools/call", b"Mcp-Name: echo")
    async with serving() as served, served.client() as client:
        started = time.process_time()
        answer = await client.ask(with_body(*mirrored, b"Transfer-Encoding: chunked", body=wire))
        assert answer.status == 200
        assert len(answer.body) > 300_000
        assert time.process_time() - started < 3


async def test_a_request_that_trickles_in_byte_by_byte_is_served() -> None:
    async with serving() as served, served.client() as client:
        for byte in get("/health"):
            await client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await client.answer()).status == 200


# -- order


def paths(exchange: HttpExchange) -> None:
    exchange.respond(200, JSON_HEAD, exchange.path.encode())


@on_both_loops
async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async with listening(paths) as (_, port, _), RawClient(port) as client:
        chunked = b"POST /chunked HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        await client.send(b"".join(get(f"/{number}") + post(b"{}", f"/p{number}") + chunked for number in range(20)))
        for number in range(20):
            assert (await client.answer()).body == b"/%d" % number
            assert (await client.answer()).body == b"/p%d" % number
            assert (await client.answer()).body == b"/chunked"


@on_both_loops
async def test_one_request_runs_at_a_time_and_few_bytes_are_read_ahead() -> None:
    running = 0
    go = asyncio.Event()

    wait = answering_after(go, paths)

    def slow(exchange: HttpExchange) -> None:
        nonlocal running
        running += 1
        wait(exchange)

    async with listening(slow) as (server, port, _), RawClient(port) as client:
        await client.send(get("/0"))
        await until(lambda: running == 1)
        wire = b"".join(get(f"/{number}") for number in range(1, 40_000))
        client.writer.write(wire)
        await until(lambda: server.held_bytes > 64 * 1024)
        for _ in range(100):
            await asyncio.sleep(0)
        assert running == 1
        assert server.held_bytes < 1024 * 1024
        go.set()
        for number in range(300):
            assert (await client.answer()).body == b"/%d" % number


@on_both_loops
async def test_few_bytes_are_read_ahead_while_one_request_after_the_other_is_answered() -> None:
    """What was read ahead is copied for each request: the work must not grow with the square of what a client sends at once."""
    most = 0

    def answer(exchange: HttpExchange) -> None:
        nonlocal most
        most = max(most, server.held_bytes)
        paths(exchange)

    async with listening(answer) as (server, port, _), RawClient(port) as client:
        client.writer.write(b"".join(get(f"/{number}") for number in range(40_000)))
        for number in range(500):
            assert (await client.answer()).body == b"/%d" % number
    assert 64 * 1024 < most < 1024 * 1024


async def test_a_client_that_does_not_take_its_answers_gets_no_more_work_done() -> None:
    served = 0

    def large(exchange: HttpExchange) -> None:
        nonlocal served
        served += 1
        exchange.respond(200, JSON_HEAD, b"x" * 4_000_000)

    async with listening(large) as (_, port, _), RawClient(port) as client:
        client.transport.pause_reading()
        await client.send(get("/") * 50)
        await until(lambda: served >= 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert served < 10
        client.transport.resume_reading()
        for _ in range(50):
            assert len((await client.answer()).body) == 4_000_000


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    async with listening(paths) as (_, port, _), RawClient(port) as client:
        await client.send(b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.head()).status == 100
        assert (await client.ask(b"{}")).body == b"/x"
        both = b"POST /y HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}"
        await client.send(both)
        assert (await client.head()).status == 200


async def test_offers_to_switch_protocols_are_passed_over() -> None:
    websocket = get("/x", connection="Upgrade", upgrade="websocket", sec_websocket_key="x")
    h2c = post(b"{}", "/y", connection="Upgrade, HTTP2-Settings", upgrade="h2c", http2_settings="AAMAAABk")
    async with listening(paths) as (_, port, _), RawClient(port) as client:
        assert (await client.ask(websocket)).body == b"/x"
        assert (await client.ask(h2c)).body == b"/y"


async def test_a_connection_ends_after_the_answer_where_the_client_or_http_1_0_says_so() -> None:
    async with listening(paths) as (_, port, _):
        for wire in (get("/x", connection="close"), b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n"):
            async with RawClient(port) as client:
                answer = await client.ask(wire)
                assert (answer.body, answer.header("connection")) == (b"/x", "close")
                assert await client.rest() == b""
        async with RawClient(port) as client:
            kept = await client.ask(b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n" + HOST + b"\r\n")
            assert kept.header("connection") == "keep-alive"
            assert (await client.ask(get("/y"))).body == b"/y"


# -- time


async def gone(client: RawClient, *, within_s: float = WAIT_S) -> bytes:
    return await asyncio.wait_for(client.rest(), within_s)


@on_both_loops
async def test_a_slow_head_a_slow_body_and_an_idle_connection_are_ended_by_us() -> None:
    async with listening(paths, QUICK) as (server, port, _):
        async with RawClient(port) as client:
            assert await gone(client) == b""
        async with RawClient(port) as client:
            assert (await client.ask(b"GET / HTTP/1.1\r\nHost:")).status == 408
            assert await gone(client) == b""
        async with RawClient(port) as client:
            assert (await client.ask(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}")).status == 408
        async with RawClient(port) as client:
            assert (await client.ask(get("/x"))).status == 200
            assert await gone(client) == b""
        await until(lambda: server.connection_count == 0)


PROGRESS = ServerLimits(max_connections=5, body_timeout_s=0.2, body_progress_bytes=100, linger_s=0.1, sweep_s=0.01)


async def test_a_body_that_makes_progress_may_take_longer_than_the_time_for_one_part() -> None:
    async with listening(paths, PROGRESS) as (_, port, _), RawClient(port) as client:
        loop = asyncio.get_running_loop()
        await client.send(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 501\r\n\r\n")
        for part in range(5):
            later = loop.time() + 0.1
            await until(partial(_is_past, loop, later))
            await client.send(b"x" * (101 if part == 4 else 100))
        assert (await client.answer()).body == b"/x"


async def test_a_body_that_came_fast_earns_no_time_to_rest() -> None:
    async with listening(paths, PROGRESS) as (_, port, _), RawClient(port) as client:
        await client.send(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 8_999_999)
        started = asyncio.get_running_loop().time()
        assert (await client.answer()).status == 408
        assert asyncio.get_running_loop().time() - started < 2


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"Content-Length: 9999", b"x"),
        (b"Transfer-Encoding: chunked", b"1\r\nx\r\n"),
        (b"Transfer-Encoding: chunked", b"1;" + b"x" * 200 + b"\r\nx\r\n"),
    ],
    ids=["a byte at a time", "a chunk of a byte at a time", "chunk lines that are longer than their chunks"],
)
async def test_a_body_that_trickles_in_is_ended_in_spite_of_its_bytes(head: bytes, piece: bytes) -> None:
    async with listening(paths, PROGRESS) as (server, port, _), RawClient(port) as client:
        await client.send(b"POST /x HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")

        async def ended() -> bool:
            await client.send(piece)
            return server.connection_count == 0

        await eventually(ended, within_s=5)
        assert (await client.answer()).status == 408


async def test_a_head_that_trickles_in_is_ended_in_spite_of_its_bytes() -> None:
    async with listening(paths, QUICK) as (server, port, _), RawClient(port) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n")

        async def ended() -> bool:
            await client.send(b"X: y\r\n")
            return server.connection_count == 0

        await eventually(ended, within_s=5)
        assert (await client.answer()).status == 408


async def test_a_client_that_takes_its_answer_a_byte_at_a_time_is_cut_off() -> None:
    def large(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, b"x" * 20_000_000)

    async with listening(large, QUICK) as (server, port, _):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(get("/"))
            client.setblocking(False)

            async def cut_off() -> bool:
                await asyncio.get_running_loop().sock_recv(client, 1)
                return server.connection_count == 0

            await eventually(lambda: server.connection_count == 1)
            await eventually(cut_off, within_s=5)


@on_both_loops
async def test_a_client_that_stops_taking_its_answer_is_cut_off() -> None:
    def large(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, b"x" * 20_000_000)

    async with listening(large, QUICK) as (server, port, _), RawClient(port) as client:
        client.transport.pause_reading()
        await client.send(get("/"))
        await until(lambda: server.connection_count == 1)
        await until(lambda: server.connection_count == 0)


def _is_past(loop: asyncio.AbstractEventLoop, end: float) -> bool:
    return loop.time() > end


@on_both_loops
async def test_a_client_that_takes_its_answer_slowly_but_steadily_gets_all_of_it() -> None:
    def large(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, b"x" * 20_000_000)

    async with listening(large, QUICK) as (_, port, _), RawClient(port) as client:
        loop, transport = asyncio.get_running_loop(), client.transport
        await client.send(get("/"))
        taken = 0
        for _ in range(6):
            transport.pause_reading()
            later = loop.time() + 0.07
            await until(partial(_is_past, loop, later))
            transport.resume_reading()
            taken += len(await asyncio.wait_for(client.reader.readexactly(1_000_000), WAIT_S))
        assert taken + len(await client.rest()) > 20_000_000


@on_both_loops
async def test_a_client_that_never_closes_its_side_does_not_keep_the_connection() -> None:
    async with listening(paths, QUICK) as (server, port, _), RawClient(port) as client:
        await client.send(b"nonsense\r\n")
        assert (await client.answer()).status == 400
        await until(lambda: server.connection_count == 0)


async def test_a_refused_client_that_goes_on_sending_can_read_why_but_not_send_for_ever() -> None:
    async with listening(paths) as (server, port, _), RawClient(port) as client:
        assert (await client.ask(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")).status == 413
        block = b"x" * 1_000_000
        for _ in range(40):
            await client.send(block)
        await until(lambda: server.connection_count == 0)


async def test_an_open_stream_is_kept_alive_with_comments() -> None:
    def streaming(exchange: HttpExchange) -> None:
        exchange.open_stream().write(b"data: x\n\n")

    async with listening(streaming, QUICK) as (_, port, _), RawClient(port) as client:
        await client.send(get("/"))
        assert (await client.head()).status == 200
        assert await client.chunk() == b"data: x\n\n"
        assert [await client.chunk() for _ in range(3)] == [b":\n\n"] * 3


# -- bounds over all clients


async def test_what_is_held_for_all_clients_together_is_bounded() -> None:
    limits = ServerLimits(max_connections=10, max_held_bytes=3_000_000)
    go = asyncio.Event()

    slow = answering_after(go, lambda exchange: exchange.respond(200))
    async with listening(slow, limits) as (server, port, _):
        async with RawClient(port) as first, RawClient(port) as second, RawClient(port) as third:
            await first.send(post(b"x" * 2_000_000))
            await until(lambda: server.held_bytes >= 2_000_000)
            answer = await second.ask(post(b"x" * 2_000_000))
            assert (answer.status, answer.header("retry-after")) == (503, "1")
            await third.send(post(b"{}"))
            go.set()
            assert (await first.answer()).status == 200
            assert (await third.answer()).status == 200
        await until(lambda: server.connection_count == 0)
        assert server.held_bytes == 0


async def test_held_bytes_are_given_back_when_a_client_leaves_in_the_middle() -> None:
    async with listening(paths) as (server, port, _):
        async with RawClient(port) as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + b"x" * 800_000)
            await until(lambda: server.held_bytes > 700_000)
        await until(lambda: server.held_bytes == 0)


# -- handlers that misbehave


async def test_a_handler_that_raises_becomes_a_plain_500_and_an_event() -> None:
    def broken(exchange: HttpExchange) -> None:
        raise RuntimeError("the secret of the house")

    async with listening(broken) as (_, port, events), RawClient(port) as client:
        answer = await client.ask(get("/"))
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert [type(event) for event in events] == [InternalFailure]
        assert (await client.ask(get("/"))).status == 500


@on_both_loops
async def test_a_handler_that_raises_is_contained_to_its_connection() -> None:
    def handle(exchange: HttpExchange) -> None:
        if exchange.path == "/stream":
            exchange.open_stream().write(b"data: x\n\n")
        if exchange.path != "/":
            raise RuntimeError(exchange.path)
        exchange.respond(200, JSON_HEAD, b"{}")

    async with listening(handle) as (server, port, events):
        async with RawClient(port) as other, RawClient(port) as plain, RawClient(port) as streaming:
            assert (await other.ask(get("/"))).status == 200
            for _ in range(3):
                assert (await plain.ask(get("/plain"))).status == 500
                assert (await other.ask(get("/"))).status == 200
            await streaming.send(get("/stream"))
            await streaming.rest()
            await until(lambda: server.connection_count == 2)
            assert (await other.ask(get("/"))).status == 200
            assert (await plain.ask(get("/"))).status == 200
        faults = [event.error for event in events if isinstance(event, InternalFailure)]
        assert faults == ["RuntimeError('/plain')"] * 3 + ["RuntimeError('/stream')"]


async def test_a_handler_that_raises_after_its_answer_leaves_the_answer_as_it_is() -> None:
    def broken(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, exchange.path.encode())
        raise RuntimeError

    async with listening(broken) as (_, port, events), RawClient(port) as client:
        await client.send(get("/a") + get("/b"))
        assert [(await client.answer()).body for _ in range(2)] == [b"/a", b"/b"]
        assert [type(event) for event in events] == [InternalFailure] * 2


async def test_a_handler_that_raises_does_not_stop_what_was_sent_behind_its_request() -> None:
    def broken(exchange: HttpExchange) -> None:
        if exchange.path == "/bad":
            raise RuntimeError
        paths(exchange)

    async with listening(broken) as (_, port, _), RawClient(port) as client:
        await client.send(get("/bad") + get("/good"))
        assert (await client.answer()).status == 500
        assert (await client.answer()).body == b"/good"


async def test_a_handler_that_raises_in_a_stream_ends_the_connection() -> None:
    def broken(exchange: HttpExchange) -> None:
        exchange.open_stream().write(b"data: x\n\n")
        raise RuntimeError

    async with listening(broken) as (_, port, _), RawClient(port) as client:
        await client.send(get("/"))
        assert (await client.head()).status == 200
        assert not (await client.rest()).endswith(b"0\r\n\r\n")


# -- heads that repeat


def bodies(exchange: HttpExchange) -> None:
    exchange.respond(200, JSON_HEAD, exchange.path.encode() + b" " + exchange.body)


@on_both_loops
async def test_requests_with_the_same_head_but_for_its_length_keep_their_own_bodies_on_every_connection() -> None:
    async with listening(bodies) as (_, port, _), RawClient(port) as first, RawClient(port) as second:
        for size in (5, 500, 0, 70_000, 1):
            for client, letter in ((first, b"a"), (second, b"b")):
                body = letter * size
                assert (await client.ask(post(body, "/x"))).body == b"/x " + body
        ahead = [b"%d" % 10**digits for digits in range(6)]
        await first.send(b"".join(post(body, "/x") for body in ahead))
        assert [(await first.answer()).body for _ in ahead] == [b"/x " + body for body in ahead]


# -- requests that are judged by their heads


class Doorkeeper:
    """Refuses whoever asks for `/no`, and raises at `/broken`; counts what it is asked, and what is handled."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.handled: list[str] = []

    def admit(self, exchange: HttpExchange) -> bool:
        self.judged.append(exchange.path)
        if exchange.path == "/broken":
            raise RuntimeError
        if exchange.path == "/no":
            exchange.respond(401, JSON_HEAD, b'"no"')
        return exchange.path != "/no"

    def handle(self, exchange: HttpExchange) -> None:
        self.handled.append(exchange.path)
        exchange.respond(200, JSON_HEAD, b"%d" % len(exchange.body))


@pytest.mark.parametrize("body", [b"", b"x" * 100, b"x" * 300_000])
@on_both_loops
async def test_a_request_that_is_refused_is_answered_before_its_body_has_come(body: bytes) -> None:
    door = Doorkeeper()
    async with listening(door.handle, admit=door.admit) as (server, port, _), RawClient(port) as client:
        answer = await client.ask(b"POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + body)
        assert (answer.status, answer.body, answer.header("connection")) == (401, b'"no"', "close")
        assert server.held_bytes == 0
        await client.send(b"x" * 100_000)
        assert await client.rest() == b""
        assert (door.judged, door.handled) == (["/no"], [])


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"Expect: 100-continue", 401), (b"Transfer-Encoding: chunked", 401), (b"Content-Encoding: gzip", 415)],
)
async def test_a_refused_client_is_neither_told_to_go_on_nor_waited_for(head: bytes, status: int) -> None:
    door = Doorkeeper()
    length = b"" if head.startswith(b"Transfer") else b"Content-Length: 9\r\n"
    async with listening(door.handle, admit=door.admit) as (_, port, _), RawClient(port) as client:
        answer = await client.ask(b"POST /no HTTP/1.1\r\nHost: x\r\n" + length + head + b"\r\n\r\n")
        assert (answer.status, answer.header("connection")) == (status, "close")
        assert door.handled == []


async def test_each_request_is_judged_once_and_those_that_come_in_one_piece_are_judged_by_their_handler() -> None:
    door = Doorkeeper()
    async with listening(door.handle, admit=door.admit) as (_, port, _), RawClient(port) as client:
        assert (await client.ask(post(b"{}", "/whole"))).body == b"2"
        assert door.judged == []
        wire = post(b"x" * 50_000, "/parts")
        for start in range(0, len(wire), 9999):
            await client.send(wire[start : start + 9999])
            await until(lambda: True)
        assert (await client.answer()).body == b"50000"
        assert (await client.ask(post(b"x" * 100_000, "/large"))).body == b"100000"
        assert door.judged == ["/parts", "/large"]
        assert door.handled == ["/whole", "/parts", "/large"]


async def test_a_fault_while_a_head_is_judged_is_contained_to_its_connection() -> None:
    door = Doorkeeper()
    async with listening(door.handle, admit=door.admit) as (server, port, events):
        async with RawClient(port) as client:
            assert (await client.ask(b"POST /broken HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")).status == 500
            assert await client.rest() == b""
        async with RawClient(port) as other:
            assert (await other.ask(post(b"{}", "/"))).status == 200
        assert [type(event) for event in events] == [InternalFailure]
        assert server.held_bytes == 0


async def test_a_request_that_needs_no_body_is_answered_at_once_and_its_body_is_thrown_away() -> None:
    async with serving() as served, served.client() as client:
        head = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
        answer = await client.ask(head + b"GET /health/live")
        assert (answer.status, answer.header("connection")) == (200, "close")
        assert await client.rest() == b""


# -- answers that are not taken


async def test_answers_that_are_not_taken_count_for_their_client_and_are_bounded() -> None:
    def large(exchange: HttpExchange) -> None:
        exchange.respond(200, JSON_HEAD, b"x" * 12_000_000)

    limits = ServerLimits(max_connections=20, max_held_bytes=20_000_000)
    async with listening(large, limits) as (server, port, _):
        clients = [RawClient(port) for _ in range(4)]
        for client in clients:
            await client.__aenter__()
            client.transport.pause_reading()
            await client.send(get("/", connection="close"))
        await until(lambda: server.connection_count == 1)
        assert 0 < server.held_bytes <= 20_000_000
        for client in clients:
            client.transport.resume_reading()
        lengths = sorted([len(await client.rest()) for client in clients])
        assert lengths[-1] > 12_000_000 > lengths[-2]
        await until(lambda: server.held_bytes == 0)
        for client in clients:
            await client.close()


async def test_requests_sent_ahead_in_the_same_piece_are_counted_too() -> None:
    go = asyncio.Event()
    async with listening(answering_after(go, paths)) as (server, port, _), RawClient(port) as client:
        await client.send(get("/0") + get("/1") * 500)
        await until(lambda: server.held_bytes > 10_000)
        go.set()
        for _ in range(501):
            assert (await client.answer()).status == 200
        await until(lambda: server.held_bytes == 0)


# -- clients that go away


@on_both_loops
async def test_a_client_that_goes_away_is_noticed_at_once() -> None:
    gone_away = asyncio.Event()

    written: list[bool] = []

    def answer(exchange: HttpExchange) -> None:
        exchange.respond(200)
        written.append(exchange.open_stream().write(b"x"))

    wait = answering_after(gone_away, answer)

    def waiting(exchange: HttpExchange) -> None:
        exchange.on_disconnect = gone_away.set
        wait(exchange)

    async with listening(waiting) as (server, port, events):
        async with RawClient(port) as client:
            await client.send(get("/"))
            await until(lambda: server.connection_count == 1)
        await asyncio.wait_for(gone_away.wait(), WAIT_S)
        await until(lambda: server.connection_count == 0 and bool(written))
        assert written == [False]
        assert events == []


async def test_the_hook_is_not_called_after_the_answer() -> None:
    called: list[str] = []

    def quick(exchange: HttpExchange) -> None:
        exchange.on_disconnect = lambda: called.append("gone")
        exchange.respond(200)

    async with listening(quick) as (server, port, _):
        async with RawClient(port) as client:
            await client.ask(get("/"))
        await until(lambda: server.connection_count == 0)
        assert called == []
