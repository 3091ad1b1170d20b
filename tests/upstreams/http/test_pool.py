"""The connection pool: how many connections, how long, for whom, and the failure when there is none."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client_connection import ClientConnection
from pactgate.upstreams.http.connect import Connector
from pactgate.upstreams.http.pool import ConnectionPool, PoolLimits
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import PendingResponse
from tests.support.certificates import tls_pair
from tests.support.deaf_socket import deaf_socket
from tests.support.eventually import eventually
from tests.support.loops import on_both_loops
from tests.support.scripted_http import LIMIT_S, Peer, Play, ScriptedHttp, answer


class MovedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock the test moves forward."""

    moved_s = 0.0

    def time(self) -> float:
        return super().time() + self.moved_s


def with_moved_time(test: Callable[[MovedLoop], Awaitable[None]]) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MovedLoop)
        await test(loop)

    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        runner.run(run())


async def serving(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(answer(b"{}"))


class Lender:
    def __init__(self, pool: ConnectionPool, server: ScriptedHttp) -> None:
        self.pool = pool
        self.server = server
        self.target = HttpTarget("s", server.url)

    async def lend(self) -> ClientConnection:
        async with asyncio.timeout(LIMIT_S):
            return await self.pool.obtain(self.target)

    async def use(self) -> ClientConnection:
        """Lend a connection for one exchange, after which it goes back by itself."""
        connection = await self.lend()
        request = b"GET" + self.target.tail + b"\r\n"
        async with asyncio.timeout(LIMIT_S):
            pending = PendingResponse(loop=asyncio.get_running_loop())
            connection.begin(pending, self.target, request, 1000)
            await pending
        return connection

    async def until(self, condition: Callable[[], object]) -> None:
        await eventually(condition)


@asynccontextmanager
async def lending(limits: PoolLimits | None = None, play: Play = serving) -> AsyncIterator[Lender]:
    async with ScriptedHttp(play) as server:
        pool = ConnectionPool(limits or PoolLimits(), lambda: None)
        try:
            yield Lender(pool, server)
        finally:
            pool.close()
            async with asyncio.timeout(LIMIT_S):
                await pool.emptied()


async def test_the_last_connection_used_is_the_first_one_lent() -> None:
    async with lending() as lender:
        first, second = await lender.lend(), await lender.lend()
        lender.pool.give_back(first)
        lender.pool.give_back(second)
        assert await lender.lend() is second
        assert await lender.lend() is first
        assert lender.server.connections == 2


@on_both_loops
async def test_no_more_than_the_bound_are_opened_and_waiting_is_in_order() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        only = await lender.lend()
        order: list[int] = []

        async def wait(number: int) -> None:
            connection = await lender.lend()
            order.append(number)
            lender.pool.give_back(connection)

        waiting = [asyncio.ensure_future(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        lender.pool.give_back(only)
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3, 4]
        assert lender.server.connections == 1


async def test_one_that_gives_up_waiting_does_not_keep_the_others_waiting() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        only = await lender.lend()
        waiting = [asyncio.ensure_future(lender.pool.obtain(lender.target)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        lender.pool.give_back(only)
        waiting[1].cancel()  # it was just handed the connection, and has not run since
        assert await waiting[2] is only
        assert waiting[0].cancelled()
        assert waiting[1].cancelled()


async def test_a_lost_connection_makes_room_for_one_that_waits() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        only = await lender.lend()
        waiting = asyncio.ensure_future(lender.pool.obtain(lender.target))
        given_up = asyncio.ensure_future(lender.pool.obtain(lender.target))
        await asyncio.sleep(0)
        only.abort()
        given_up.cancel()
        async with asyncio.timeout(LIMIT_S):
            assert await waiting is not only
        assert lender.server.connections == 2


async def test_the_right_to_open_a_connection_is_passed_on_by_one_that_gives_up() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        only = await lender.lend()
        waiting = [asyncio.ensure_future(lender.pool.obtain(lender.target)) for _ in range(2)]
        await asyncio.sleep(0)
        only.abort()
        await asyncio.sleep(0)
        waiting[0].cancel()  # it was just given the right to open one, and has not run since
        async with asyncio.timeout(LIMIT_S):
            assert (await waiting[1]).is_open


async def test_waiting_is_bounded() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        await lender.lend()
        waiting = [asyncio.ensure_future(lender.pool.obtain(lender.target)) for _ in range(1024)]
        await asyncio.sleep(0)
        with pytest.raises(GatewayFailure) as caught:
            await lender.lend()
        assert (caught.value.kind, caught.value.verdict) == (Kind.OVERLOADED, Verdict.DID_NOT_RUN)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        with pytest.raises(TimeoutError):  # those who left take up no place: this one waits again
            async with asyncio.timeout(0.01):
                await lender.pool.obtain(lender.target)


async def test_closing_the_pool_ends_waits_and_connections() -> None:
    async with lending(PoolLimits(max_open=1)) as lender:
        connection = await lender.lend()
        waiting = asyncio.ensure_future(lender.pool.obtain(lender.target))
        await asyncio.sleep(0)
        lender.pool.close()
        with pytest.raises(GatewayFailure) as caught:
            await waiting
        assert (caught.value.kind, caught.value.verdict) == (Kind.CONNECTION_LOST, Verdict.DID_NOT_RUN)
        async with asyncio.timeout(LIMIT_S):
            await lender.pool.emptied()
        assert not connection.is_open


# Age


@on_both_loops
async def test_a_connection_the_server_closed_while_idle_is_not_lent_again() -> None:
    closing = asyncio.Event()

    async def play(peer: Peer) -> None:
        if peer.number == 1:
            await closing.wait()
            peer.close()
        await peer.gone()

    async with lending(play=play) as lender:
        first = await lender.lend()
        lender.pool.give_back(first)
        closing.set()
        await lender.until(lambda: not lender.pool.has_idle)
        assert await lender.lend() is not first


async def test_its_owner_is_told_to_sweep_whenever_there_is_something_to_sweep_again() -> None:
    async with ScriptedHttp(serving) as server:
        told: list[None] = []
        lender = Lender(ConnectionPool(PoolLimits(), lambda: told.append(None)), server)
        for _ in range(3):
            first = await lender.use()
        assert len(told) == 1, "it is watched until a sweep finds nothing idle"
        assert await lender.lend() is first
        lender.pool.sweep()
        lender.pool.give_back(first)
        assert len(told) == 2
        lender.pool.sweep()
        await lender.use()
        assert len(told) == 2
        lender.pool.close()


def test_an_idle_connection_is_closed_after_its_time() -> None:
    async def run(loop: MovedLoop) -> None:
        async with lending() as lender:
            connection = await lender.use()
            loop.moved_s = 49
            lender.pool.sweep()
            assert lender.pool.has_idle
            loop.moved_s = 51
            lender.pool.sweep()
            assert not lender.pool.has_idle
            await lender.until(lambda: lender.pool.is_unused)
            assert not connection.is_open

    with_moved_time(run)


def test_one_past_its_time_is_not_lent_even_before_it_is_swept() -> None:
    async def run(loop: MovedLoop) -> None:
        async with lending() as lender:
            old = await lender.use()
            loop.moved_s = 51
            assert await lender.lend() is not old

    with_moved_time(run)


@pytest.mark.parametrize(
    ("hint", "good_s", "late_s"),
    [("timeout=5", 3.9, 4.1), ("max=100, timeout = 20", 18.9, 19.1), ("timeout=600", 49, 51), ("odd", 49, 51)],
)
def test_the_servers_own_limit_is_kept_with_a_second_to_spare(hint: str, good_s: float, late_s: float) -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer(b"{}", Keep_Alive=hint))

    async def run(loop: MovedLoop) -> None:
        async with lending(play=play) as lender:
            connection = await lender.use()
            loop.moved_s += good_s
            assert await lender.use() is connection
            loop.moved_s += late_s
            assert await lender.use() is not connection

    with_moved_time(run)


def test_a_limit_of_a_second_means_no_keeping() -> None:
    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer(b"{}", Keep_Alive="timeout=1"))

    async def run(_: MovedLoop) -> None:
        async with lending(play=play) as lender:
            connection = await lender.use()
            assert await lender.use() is not connection

    with_moved_time(run)


def test_a_limit_the_server_does_not_name_is_learnt_from_what_it_does() -> None:
    closing = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"{}"))
        if peer.number == 1:
            await closing.wait()
            peer.close()
            return
        await peer.request()
        await peer.send(answer(b"{}"))
        await peer.gone()

    async def run(loop: MovedLoop) -> None:
        async with lending(play=play) as lender:
            await lender.use()
            loop.moved_s += 5
            closing.set()
            await lender.until(lambda: not lender.pool.has_idle)
            assert lender.pool.keep_s == pytest.approx(4, abs=0.5)
            second = await lender.use()
            loop.moved_s += 3
            assert await lender.use() is second
            loop.moved_s += 4.6
            assert await lender.use() is not second

    with_moved_time(run)


def test_a_restart_does_not_end_keeping() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"{}"))
        if peer.number == 1:
            peer.close()
            return
        await peer.gone()

    async def run(_: MovedLoop) -> None:
        async with lending(play=play) as lender:
            await lender.use()
            await lender.until(lambda: not lender.pool.has_idle)
            assert lender.pool.keep_s == 2

    with_moved_time(run)


def test_more_than_the_bound_are_not_kept_idle_for_long() -> None:
    async def run(loop: MovedLoop) -> None:
        async with lending(PoolLimits(max_idle=2)) as lender:
            lent = [await lender.lend() for _ in range(5)]
            for connection in lent:
                lender.pool.give_back(connection)
            lender.pool.sweep()
            assert all(connection.is_open for connection in lent)
            loop.moved_s = 2
            lender.pool.sweep()
            await lender.until(lambda: sum(connection.is_open for connection in lent) == 2)
            assert [connection.is_open for connection in lent] == [False, False, False, True, True]

    with_moved_time(run)


# Dialling


async def fails(url: str, tls: ssl.SSLContext | None = None, limits: PoolLimits | None = None) -> GatewayFailure:
    pool = ConnectionPool(limits or PoolLimits(), lambda: None, Connector(tls=tls))
    with pytest.raises(GatewayFailure) as caught:
        async with asyncio.timeout(LIMIT_S):
            await pool.obtain(HttpTarget("files", url))
    assert pool.is_unused
    assert caught.value.server == "files"
    assert caught.value.verdict is Verdict.DID_NOT_RUN
    assert "files" in caught.value.message
    assert "secret" not in caught.value.message
    return caught.value


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@on_both_loops
async def test_a_refused_connection_says_that_nothing_listens_there(host: str) -> None:
    failure = await fails(f"http://{host}:{unused_port()}/secret")
    assert failure.kind is Kind.CONNECTION_FAILED
    assert failure.details == {}
    assert "nothing listens" in failure.message


@pytest.mark.requirement("S4/F3")
@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "a..b"])
@on_both_loops
async def test_a_name_that_is_not_found_may_be_found_later(host: str) -> None:
    failure = await fails(f"http://{host}/secret")
    assert failure.kind is Kind.CONNECTION_FAILED
    assert "permanent" not in failure.details
    assert host not in failure.message


async def test_a_server_that_does_not_accept_is_given_up_in_time() -> None:
    with deaf_socket() as address:
        failure = await fails(f"http://{address}/", limits=PoolLimits(connect_timeout_s=0.2))
    assert failure.kind is Kind.CONNECT_TIMEOUT


@on_both_loops
async def test_a_certificate_nobody_vouches_for_can_not_be_mended_by_trying_again(tmp_path: Path) -> None:
    server_tls, _ = tls_pair(tmp_path)
    async with ScriptedHttp(serving, tls=server_tls) as server:
        failure = await fails(server.url, ssl.create_default_context())
    assert failure.kind is Kind.CONNECTION_FAILED
    assert failure.details == {"permanent": True}
    assert "certificate" in failure.message


@on_both_loops
async def test_a_server_that_speaks_no_tls_is_named_as_such() -> None:
    async def play(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.gone()

    async with ScriptedHttp(play) as server:
        failure = await fails(server.url.replace("http:", "https:"), ssl.create_default_context())
    assert failure.kind is Kind.CONNECTION_FAILED
    assert "permanent" not in failure.details
    assert "https" in failure.message


async def test_giving_up_while_dialling_leaves_nothing(tmp_path: Path) -> None:
    """The server accepts and never shakes hands."""
    accepted, gone = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        accepted.set()
        await peer.gone()
        gone.set()

    async with ScriptedHttp(play) as server:
        pool = ConnectionPool(PoolLimits(), lambda: None)
        target = HttpTarget("s", server.url.replace("http:", "https:"))
        dialling = asyncio.ensure_future(pool.obtain(target))
        async with asyncio.timeout(LIMIT_S):
            await accepted.wait()
            dialling.cancel()
            await asyncio.wait({dialling})
            await gone.wait()
        assert pool.is_unused
