"""The client as a whole: what goes over the wire, how often, and what is left when somebody gives up."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.pool import PoolLimits
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse
from tests.support.certificates import tls_pair
from tests.support.eventually import eventually
from tests.support.loops import on_both_loops
from tests.support.scripted_http import (
    LAST_CHUNK,
    LIMIT_S,
    Peer,
    ReceivedRequest,
    ScriptedHttp,
    answer,
    chunk,
    stream_head,
)


@asynccontextmanager
async def client_of(limits: PoolLimits | None = None) -> AsyncIterator[HttpClient]:
    client = HttpClient(limits)
    try:
        yield client
    finally:
        await client.close()


async def echo(peer: Peer) -> None:
    while True:
        request = await peer.request()
        await peer.send(answer(request.body))


async def test_a_request_goes_out_as_one_write_with_exactly_these_bytes() -> None:
    pieces: list[bytes] = []

    class Wire(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            pieces.append(data)
            self.transport.write(answer(b"{}"))

    server = await asyncio.get_running_loop().create_server(Wire, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with client_of() as client:
        target = HttpTarget("s", f"http://127.0.0.1:{port}/mcp?x=1")
        await client.request(b"POST", target, b"A: b\r\n", b'{"a":1}')
        await client.request(b"GET", target, b"A: b\r\n")
    server.close()
    assert pieces == [
        b"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: identity\r\nA: b\r\n"
        b'Content-Length: 7\r\n\r\n{"a":1}' % port,
        b"GET /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: identity\r\nA: b\r\n\r\n" % port,
    ]


@on_both_loops
async def test_sixty_four_requests_share_eight_connections_and_each_gets_its_own_answer() -> None:
    async with ScriptedHttp(echo) as server, client_of(PoolLimits(max_open=8)) as client:
        target = HttpTarget("s", server.url)
        bodies = [b'{"number":%d}' % number for number in range(64)]
        async with asyncio.timeout(LIMIT_S):
            responses = await asyncio.gather(*(client.request(b"POST", target, b"", body) for body in bodies))
        assert [response.body for response in responses] == bodies
        assert server.connections == 8


@pytest.mark.requirement("S4/NONGOALS")
@on_both_loops
async def test_a_kept_connection_that_dies_under_a_request_is_not_tried_again() -> None:
    """The server closes at the very moment the second request arrives: it may have run, so nobody may repeat it (D6)."""
    seen: list[ReceivedRequest] = []

    async def play(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.send(answer(b"{}"))
        seen.append(await peer.request())
        peer.reset()

    async with ScriptedHttp(play) as server, client_of() as client:
        target = HttpTarget("s", server.url)
        await client.request(b"POST", target, b"", b'"first"')
        with pytest.raises(GatewayFailure) as caught:
            await client.request(b"POST", target, b"", b'"second"')
        assert (caught.value.kind, caught.value.verdict) == (Kind.CONNECTION_LOST, Verdict.MAY_HAVE_RUN)
        assert "before it answered" in caught.value.message
        assert [request.body for request in seen] == [b'"first"', b'"second"']
        assert server.connections == 1


async def test_a_kept_connection_found_closed_before_the_write_is_replaced() -> None:
    closed = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"%d" % peer.number))
        if peer.number == 1:
            peer.close()
            await peer.gone()
            closed.set()

    async with ScriptedHttp(play) as server, client_of() as client:
        target = HttpTarget("s", server.url)
        await client.request(b"POST", target, b"", b"{}")
        async with asyncio.timeout(LIMIT_S):
            await closed.wait()
        assert (await client.request(b"POST", target, b"", b"{}")).body == b"2"


@on_both_loops
async def test_cancelling_a_request_closes_its_connection() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.gone()
        gone.set()

    async with ScriptedHttp(play) as server, client_of() as client:
        asking = asyncio.ensure_future(client.request(b"POST", HttpTarget("s", server.url), b"", b"{}"))
        async with asyncio.timeout(LIMIT_S):
            await arrived.wait()
            asking.cancel()
            await asyncio.wait({asking})
            await gone.wait()
        assert asking.cancelled()


async def test_a_cancelled_wait_for_a_connection_sends_nothing() -> None:
    release = asyncio.Event()
    seen: list[bytes] = []

    async def play(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).body)
            await release.wait()
            await peer.send(answer(b"{}"))

    async with ScriptedHttp(play) as server, client_of(PoolLimits(max_open=1)) as client:
        target = HttpTarget("s", server.url)
        asking = [asyncio.ensure_future(client.request(b"POST", target, b"", b"%d" % number)) for number in range(3)]
        async with asyncio.timeout(LIMIT_S):
            await eventually(lambda: seen)
            asking[1].cancel()
            release.set()
            await asyncio.wait(asking)
        assert seen == [b"0", b"2"]


async def test_an_early_answer_to_a_request_that_is_still_being_written_ends_the_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.send(answer(b"{}", "413 Too Large"))
        await peer.gone()

    async with ScriptedHttp(play) as server, client_of() as client:
        target = HttpTarget("s", server.url)
        for _ in range(2):
            response = await client.request(b"POST", target, b"", b"x" * (16 << 20))
            assert response.status == 413
        assert server.connections == 2


async def test_abandoning_a_target_ends_its_exchanges_and_no_others() -> None:
    release, arrived = asyncio.Event(), asyncio.Semaphore(0)

    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            arrived.release()
            await release.wait()
            await peer.send(answer(b"{}"))

    async with ScriptedHttp(play) as server, client_of(PoolLimits(max_open=2)) as client:
        mine, other = HttpTarget("mine", server.url), HttpTarget("other", server.url)
        sent = asyncio.ensure_future(client.request(b"POST", mine, b"", b"{}"))
        kept = asyncio.ensure_future(client.request(b"POST", other, b"", b"{}"))
        async with asyncio.timeout(LIMIT_S):
            await arrived.acquire()
            await arrived.acquire()
        waiting = asyncio.ensure_future(client.request(b"POST", mine, b"", b"{}"))
        await asyncio.sleep(0)
        client.abandon(mine)
        failures = [await _failure(task) for task in (sent, waiting)]
        assert [failure.verdict for failure in failures] == [Verdict.MAY_HAVE_RUN, Verdict.DID_NOT_RUN]
        with pytest.raises(GatewayFailure) as caught:
            await client.request(b"POST", mine, b"", b"{}")
        assert caught.value.verdict is Verdict.DID_NOT_RUN
        release.set()
        assert (await kept).status == 200


async def _failure(task: asyncio.Future[Any]) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as caught:
        await task
    return caught.value


async def test_a_target_abandoned_while_its_connection_is_dialled_sends_nothing_and_leaves_the_connection() -> None:
    seen: list[bytes] = []

    async def play(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).body)
            await peer.send(answer(b"{}"))

    async with ScriptedHttp(play) as server, client_of() as client:
        mine = HttpTarget("mine", server.url)
        asking = asyncio.ensure_future(client.request(b"POST", mine, b"", b'"mine"'))
        await asyncio.sleep(0)
        client.abandon(mine)
        assert (await _failure(asking)).verdict is Verdict.DID_NOT_RUN
        await client.request(b"POST", HttpTarget("other", server.url), b"", b'"other"')
        assert (seen, server.connections) == ([b'"other"'], 1)


async def test_a_client_closed_while_it_dials_sends_nothing_and_leaves_nothing() -> None:
    async with ScriptedHttp(echo) as server:
        client = HttpClient()
        asking = asyncio.ensure_future(client.request(b"POST", HttpTarget("s", server.url), b"", b"{}"))
        await asyncio.sleep(0)
        await client.close()
        assert (await _failure(asking)).verdict is Verdict.DID_NOT_RUN
        await eventually(lambda: not server.open_connections)


async def test_one_that_waits_gets_another_connection_when_the_one_handed_over_has_died() -> None:
    """The first answer ends with the server's close: what the waiting request is handed is dead before anything is written."""
    seen: list[bytes] = []

    async def play(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).body)
            await peer.send(answer(b"%d" % peer.number))
            if peer.number == 1:
                peer.close()
                return

    async with ScriptedHttp(play) as server, client_of(PoolLimits(max_open=1)) as client:
        target = HttpTarget("s", server.url)
        async with asyncio.timeout(LIMIT_S):
            first = asyncio.ensure_future(client.request(b"POST", target, b"", b'"first"'))
            second = asyncio.ensure_future(client.request(b"POST", target, b"", b'"second"'))
            assert (await first).body == b"1"
            outcome = (await asyncio.gather(second, return_exceptions=True))[0]
        if isinstance(outcome, GatewayFailure):  # the close came after the write: then it must not have been repeated
            assert outcome.verdict is Verdict.MAY_HAVE_RUN
        else:
            assert isinstance(outcome, HttpResponse)
            assert outcome.body == b"2"
        assert seen.count(b'"second"') <= 1


async def test_one_tls_context_is_made_and_only_for_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    async with ScriptedHttp(echo) as plain, client_of() as client:
        await client.request(b"POST", HttpTarget("s", plain.url), b"", b"{}")
        assert made == []
    monkeypatch.setattr(ssl, "create_default_context", make)
    server_tls, _ = tls_pair(tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", counted)
    async with ScriptedHttp(echo, tls=server_tls) as secure, client_of() as client:
        for _ in range(2):
            with pytest.raises(GatewayFailure) as caught:
                await client.request(b"POST", HttpTarget("s", secure.url), b"", b"{}")
            assert caught.value.details == {"permanent": True}
    assert len(made) == 1


@on_both_loops
async def test_closing_the_client_ends_everything_it_has_open() -> None:
    async def play(peer: Peer) -> None:
        request = await peer.request()
        if request.body == b"whole":
            await peer.send(answer(b"{}"))
        elif request.body == b"stream":
            await peer.send(stream_head(), chunk(b":\n"))
        await peer.gone()

    async with ScriptedHttp(play) as server:
        client = HttpClient()
        target = HttpTarget("s", server.url)
        stream = (await client.request(b"POST", target, b"", b"stream")).stream
        assert stream is not None
        await client.request(b"POST", target, b"", b"whole")
        asking = asyncio.ensure_future(client.request(b"POST", target, b"", b"never"))
        async with asyncio.timeout(LIMIT_S):
            await asyncio.sleep(0)
            await client.close()
            assert (await _failure(asking)).kind is Kind.CONNECTION_LOST
            assert await stream.read() == b":\n"
            with pytest.raises(GatewayFailure):
                await stream.read()
            await eventually(lambda: not server.open_connections)
        with pytest.raises(GatewayFailure) as caught:
            await client.request(b"POST", target, b"", b"{}")
        assert caught.value.verdict is Verdict.DID_NOT_RUN


@on_both_loops
async def test_requests_and_streams_travel_over_tls(tmp_path: Path) -> None:
    server_tls, client_tls = tls_pair(tmp_path)
    big = b'"' + b"x" * (1 << 20) + b'"'

    async def play(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if request.method == "GET":
                await peer.send(stream_head(), chunk(b"data: 1\n\n"), LAST_CHUNK)
            else:
                await peer.send(answer(request.body))

    async with ScriptedHttp(play, tls=server_tls) as server:
        client = HttpClient(tls=client_tls)
        try:
            target = HttpTarget("s", server.url)
            assert (await client.request(b"POST", target, b"", big)).body == big
            stream = (await client.request(b"GET", target, b"")).stream
            assert stream is not None
            assert await stream.read() == b"data: 1\n\n"
            assert await stream.read() == b""
            assert (await client.request(b"POST", target, b"", b"{}")).body == b"{}"
            assert server.connections == 1
        finally:
            await client.close()


async def test_idle_connections_are_closed_in_time_without_being_asked() -> None:
    gone = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"{}"))
        await peer.gone()
        gone.set()

    async with ScriptedHttp(play) as server, client_of(PoolLimits(idle_s=0.05)) as client:
        await client.request(b"POST", HttpTarget("s", server.url), b"", b"{}")
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()


async def test_nothing_is_left_after_two_thousand_requests() -> None:
    async with ScriptedHttp(echo) as server, client_of() as client:
        target = HttpTarget("s", server.url)

        async def ask(count: int) -> None:
            for _ in range(count):
                await client.request(b"POST", target, b"", b"{}")

        await asyncio.gather(*(ask(20) for _ in range(8)))
        gc.collect()
        before = len(gc.get_objects())
        await asyncio.gather(*(ask(250) for _ in range(8)))
        gc.collect()
        assert len(gc.get_objects()) - before < 200
        assert server.connections <= 8


async def test_small_packets_are_not_held_back() -> None:
    """TCP_NODELAY: the kernel must not wait for more to send."""
    async with ScriptedHttp(echo) as server, client_of() as client:
        target = HttpTarget("s", server.url)
        await client.request(b"POST", target, b"", b"{}")
        ours = [
            item
            for item in gc.get_objects()
            if isinstance(item, asyncio.Transport)
            and item.get_extra_info("peername") == ("127.0.0.1", server.port)
            and not item.is_closing()
        ]
        assert ours
        for transport in ours:
            assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
