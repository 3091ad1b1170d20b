"""One client with a token that takes all it can get, and what that costs another client. The gateway is a process of its own."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually
from tests.support.facing import call, initialize, message, modern
from tests.support.raw_http import RawClient, post

TOKENS = {name: {"token": f"token-of-{name}-0123456789"} for name in ("alice", "bob")}
ALICE, BOB = ({"authorization": f"Bearer {entry['token']}"} for entry in TOKENS.values())
SLOW_CALLS = 160


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("shares")
    servers = {"db": scripted(era="legacy"), "own": {**scripted(era="legacy"), "isolation": "session"}}
    write_config(folder, servers, auth={"tokens": TOKENS}, rateLimits={"enabled": False})
    with Served(folder) as served:
        served.wait_for("ok    db")
        served.wait_for("ok    own")
        yield served


def port_of(gateway: Served) -> int:
    return int(gateway.url.rpartition(":")[2])


@asynccontextmanager
async def slow_calls(port: int) -> AsyncIterator[None]:
    clients = [RawClient(port) for _ in range(SLOW_CALLS)]
    for client in clients:
        await client.__aenter__()
        await client.send(modern("tools/call", name="db__slow", arguments={"ms": 30000}, **ALICE))

    async def are_held() -> bool:
        return b"pactgate_calls_held %d\n" % SLOW_CALLS in (await watcher.ask(metrics())).body

    async with RawClient(port) as watcher:
        await eventually(are_held)
    try:
        yield
    finally:
        for client in clients:
            await client.close()


def metrics() -> bytes:
    return f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {BOB['authorization']}\r\n\r\n".encode()


async def test_a_client_that_holds_slow_tools_leaves_the_calls_of_another_as_quick_as_before(gateway: Served) -> None:
    port = port_of(gateway)
    async with slow_calls(port), RawClient(port) as bob:
        took_s = []
        for _ in range(5):
            started = time.monotonic()
            answer = await bob.ask(modern("tools/call", name="db__echo", arguments={"text": "hello"}, **BOB))
            assert answer.json["result"]["content"][0]["text"] == "hello"
            took_s.append(time.monotonic() - started)
        assert median(took_s) < 1.0  # the slow ones take thirty seconds


async def private_pid(client: RawClient, session: dict[str, str]) -> str:
    answer = await client.ask(post(call("own__pid"), **session))
    found: str = answer.json["result"]["content"][0]["text"]
    return found


async def open_session(client: RawClient, who: dict[str, str]) -> dict[str, str]:
    answer = await client.ask(post(initialize(), **who))
    session = {**who, "mcp_session_id": str(answer.header("mcp-session-id"))}
    await client.ask(post(message("notifications/initialized", id_=None), **session))
    return session


async def test_the_process_of_one_client_survives_forty_sessions_of_another(gateway: Served) -> None:
    async with RawClient(port_of(gateway)) as bob, RawClient(port_of(gateway)) as alice:
        his = await open_session(bob, BOB)
        before = await private_pid(bob, his)
        hers = {await private_pid(alice, await open_session(alice, ALICE)) for _ in range(40)}
        assert len(hers) == 40
        assert await private_pid(bob, his) == before
