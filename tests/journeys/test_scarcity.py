"""Many clients that do nothing or vanish, and descriptors that run out: what that costs, and that it is given back."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from bench.cpu import own_descriptors, own_rss_bytes
from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually
from tests.support.facing import modern
from tests.support.raw_http import RawClient

IDLE, VANISHING, STARVED = 1000, 500, 200
SPARE_DESCRIPTORS = 20
TOLERANCE = 5
KIB = 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("scarcity")
    write_config(folder, {"db": scripted(era="legacy")}, rateLimits={"enabled": False})
    with Served(folder) as served:
        served.wait_for("ok    db")
        yield served


@asynccontextmanager
async def connected(gateway: Served, count: int, first: bytes) -> AsyncIterator[None]:
    """So many clients, which vanish at the end without a word."""
    clients = [RawClient(port_of(gateway)) for _ in range(count)]
    try:
        for client in clients:
            await client.__aenter__()
            await client.send(first)
        yield
    finally:
        for client in clients:
            client.transport.abort()


def port_of(gateway: Served) -> int:
    return int(gateway.url.rpartition(":")[2])


def call(tool: str, **arguments: object) -> bytes:
    return modern("tools/call", name=f"db__{tool}", arguments=arguments)


async def is_served(gateway: Served) -> bool:
    async with RawClient(port_of(gateway)) as client:
        return (await client.ask(call("echo", text="x"))).status == 200


def cpu_s(gateway: Served) -> float:
    with open(f"/proc/{gateway.process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("count", "first", "kib_each"),
    [
        pytest.param(IDLE, b"", 16, id="idle clients"),
        pytest.param(VANISHING, call("slow", ms=20_000), 64, id="clients with a call under way"),
    ],
)
async def test_many_clients_cost_little_and_leave_nothing(
    count: int, first: bytes, kib_each: int, gateway: Served
) -> None:
    assert await is_served(gateway)
    pid = gateway.process.pid
    descriptors, rss_bytes = own_descriptors(pid), own_rss_bytes(pid)
    async with connected(gateway, count, first):
        await eventually(lambda: own_descriptors(pid) >= descriptors + count - TOLERANCE)
        assert (own_rss_bytes(pid) - rss_bytes) / count < kib_each * KIB
        assert await is_served(gateway)
    await eventually(lambda: own_descriptors(pid) <= descriptors + TOLERANCE)


async def test_without_descriptors_the_gateway_waits_quietly_and_serves_again(gateway: Served) -> None:
    pid = gateway.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    most = own_descriptors(pid) + SPARE_DESCRIPTORS
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, limits[1]))
    try:
        async with connected(gateway, STARVED, b""):
            await eventually(lambda: own_descriptors(pid) >= most - TOLERANCE)
            began_s, spent_s, written = time.monotonic(), cpu_s(gateway), len(gateway.log_text())
            await eventually(lambda: time.monotonic() > began_s + 1.0)  # the rest of the machine does what it does
            assert cpu_s(gateway) - spent_s < 0.5 * (time.monotonic() - began_s)
            assert len(gateway.log_text()) - written < 64 * KIB
        await eventually(lambda: own_descriptors(pid) < most - TOLERANCE)
        assert await is_served(gateway)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
