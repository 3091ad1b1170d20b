"""What clients without a token, or with another one, can take from a client at the same address. The gateway is a process of its own."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.support.facing import modern
from tests.support.raw_http import RawClient, get

TOKEN = "token-of-bob-0123456789"
BOB = {"authorization": f"Bearer {TOKEN}"}
ALICE = {"authorization": "Bearer token-of-alice-0123456789"}
WRONG = {"authorization": "Bearer token-of-nobody-0123456789"}
MOST = 50
HOST = b"Host: 127.0.0.1\r\n"
LARGE = b"Content-Length: 10000000\r\n\r\n"
JSON = b"Content-Type: application/json\r\n"
GOOD = JSON + f"Authorization: {BOB['authorization']}\r\n".encode()
AS_ALICE = f"Authorization: {ALICE['authorization']}\r\n".encode()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("without")
    tokens = {"bob": {"token": TOKEN}, "alice": {"token": ALICE["authorization"].removeprefix("Bearer ")}}
    settings = {"auth": {"tokens": tokens}, "listen": {"maxConnectionsPerAddress": MOST}}
    write_config(folder, {"db": scripted(era="legacy")}, rateLimits={"enabled": False}, **settings)
    with Served(folder) as served:
        served.wait_for("ok    db")
        yield served


@pytest.fixture
def port(gateway: Served) -> int:
    return int(gateway.url.rpartition(":")[2])


@asynccontextmanager
async def opened(port: int, count: int, first: bytes) -> AsyncIterator[list[RawClient]]:
    clients = [RawClient(port) for _ in range(count)]
    for client in clients:
        await client.__aenter__()
        await client.send(first)
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


async def called(port: int, text: str) -> float:
    """A call on a connection of its own; the seconds it took."""
    async with RawClient(port) as bob:
        started = time.monotonic()
        answer = await bob.ask(modern("tools/call", name="db__echo", arguments={"text": text}, **BOB))
        assert answer.json["result"]["content"][0]["text"] == text
        return time.monotonic() - started


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"P", id="one byte"),
        pytest.param(b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + b"X: " + b"x" * 30_000, id="a head without an end"),
        pytest.param(
            b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + LARGE + b"x" * 200_000, id="a large body without a token"
        ),
        pytest.param(
            b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + AS_ALICE + LARGE + b"x" * 200_000,
            id="a large body, another token",
        ),
        pytest.param(modern("tools/call", name="db__echo", **ALICE) * 400, id="another token, calls sent ahead"),
        pytest.param(get("/health/live"), id="a health check, then idle"),
        pytest.param(modern("tools/call", name="db__echo", **WRONG), id="a wrong token, whose refusal is delayed"),
        pytest.param(modern("tools/call", name="db__echo", **ALICE), id="another token, then idle"),
        pytest.param(modern("tools/call", name="db__slow", arguments={"ms": 20000}, **ALICE), id="calls under way"),
    ],
)
async def test_many_connections_of_others_lock_out_nobody_with_a_token(port: int, first: bytes) -> None:
    async with RawClient(port) as before:
        assert (await before.ask(modern("tools/call", name="db__echo", **BOB))).status == 200
        async with opened(port, 4 * MOST, first):
            assert median([await called(port, "x" * size) for size in (10, 90_000) * 3]) < 1.0
            assert (await before.ask(modern("tools/call", name="db__echo", **BOB))).status == 200


@pytest.mark.parametrize(
    ("status", "head"),
    [
        (401, b"POST /mcp HTTP/1.1\r\n" + HOST + JSON),
        (401, b"POST /mcp HTTP/1.1\r\n" + HOST + JSON + b"Authorization: Bearer wrong-token-0123456789\r\n"),
        (401, b"GET /api/status HTTP/1.1\r\n" + HOST),
        (421, b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\n" + GOOD),
        (400, b"POST /mcp HTTP/1.1\r\n" + GOOD),
        (403, b"POST /mcp HTTP/1.1\r\nOrigin: http://evil.example\r\n" + HOST + GOOD),
        (404, b"POST /nothing HTTP/1.1\r\n" + HOST + GOOD),
        (404, b"POST /mcp/nothing HTTP/1.1\r\n" + HOST + GOOD),
        (405, b"PUT /mcp HTTP/1.1\r\n" + HOST + GOOD),
        (405, b"POST /health/live HTTP/1.1\r\n" + HOST),
        (406, b"POST /mcp HTTP/1.1\r\nAccept: text/html\r\n" + HOST + GOOD),
        (415, b"POST /mcp HTTP/1.1\r\n" + HOST + GOOD.replace(b"application/json", b"text/plain")),
        (415, b"POST /mcp HTTP/1.1\r\nContent-Encoding: gzip\r\n" + HOST + GOOD),
        (413, b"POST /mcp HTTP/1.1\r\n" + HOST + GOOD + b"Content-Length: 99999999999\r\n\r\n"),
    ],
)
async def test_a_request_that_will_be_refused_is_refused_by_its_head(port: int, status: int, head: bytes) -> None:
    async with RawClient(port) as client:
        answer = await client.ask(head if head.endswith(b"\r\n\r\n") else head + LARGE)
        assert (answer.status, answer.header("connection")) == (status, "close")
        assert await client.rest() == b""
