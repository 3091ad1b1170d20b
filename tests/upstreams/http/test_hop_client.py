"""Requests to other replicas: over kept connections, and ended when the replica has gone."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.core.failures import GatewayFailure, Verdict
from pactgate.upstreams.http.hop_client import HopClient
from tests.support.eventually import eventually
from tests.support.scripted_http import Peer, ScriptedHttp, answer


async def test_requests_to_one_replica_share_a_connection() -> None:
    connections = 0

    async def play(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        while True:
            received = await peer.request()
            await peer.send(answer(received.body))

    async with ScriptedHttp(play) as server:
        client = HopClient("/internal/hop")
        for number in range(5):
            response = await client.send(f"127.0.0.1:{server.port}", b"%d" % number)
            assert response.body == b"%d" % number
        await client.close()
    assert connections == 1


async def test_a_list_of_many_servers_comes_back_whole() -> None:
    size = 20 * 1024 * 1024

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer(b"x" * size))

    async with ScriptedHttp(play) as server:
        client = HopClient("/internal/hop")
        assert len((await client.send(f"127.0.0.1:{server.port}", b"x")).body) == size
        await client.close()


async def test_what_waits_for_a_replica_that_has_gone_ends_and_may_have_run() -> None:
    received = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        received.set()
        await peer.gone()

    async with ScriptedHttp(play) as server:
        client, address = HopClient("/internal/hop"), f"127.0.0.1:{server.port}"
        waiting = asyncio.create_task(client.send(address, b"x"))
        await received.wait()
        client.forget(address)
        with pytest.raises(GatewayFailure) as lost:
            await waiting
        assert lost.value.verdict is Verdict.MAY_HAVE_RUN
        await client.close()


async def test_what_waits_for_a_replica_that_hangs_ends_and_what_only_takes_long_does_not() -> None:
    hangs = False
    received = asyncio.Event()

    async def play(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if request.method == "GET" and not hangs:
                await peer.send(answer(b""))
                looks.append(request)
            elif request.method == "POST":
                received.set()

    looks: list[object] = []
    async with ScriptedHttp(play) as server:
        client, address = HopClient("/internal/hop", look_s=0.05), f"127.0.0.1:{server.port}"
        waiting = asyncio.create_task(client.send(address, b"x"))
        await received.wait()
        await eventually(lambda: len(looks) >= 3)
        assert not waiting.done()
        hangs = True
        with pytest.raises(GatewayFailure) as lost:
            await waiting
        assert lost.value.verdict is Verdict.MAY_HAVE_RUN
        await client.close()


async def test_a_replica_that_can_not_be_reached_did_nothing() -> None:
    async with ScriptedHttp(lambda peer: peer.gone()) as server:
        port = server.port
    client = HopClient("/internal/hop")
    with pytest.raises(GatewayFailure) as refused:
        await client.send(f"127.0.0.1:{port}", b"x")
    assert refused.value.verdict is Verdict.DID_NOT_RUN
    await client.close()
    await eventually(lambda: True)
