"""Slow calls piled up on one server, and what they cost the callers of another; and a stop with calls under way."""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvloop

from bench.load import Load, measure
from tests.cli.program import Served, write_config
from tests.interop.processes import free_port
from tests.support.eventually import eventually_blocking
from tests.support.facing import modern
from tests.support.processes import descendants_of
from tests.support.raw_http import Answer, RawClient

PILED_UP = 200
ROUNDS = 5


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two servers in one process, so that the slow calls cost the quick ones nothing but what the gateway makes of them."""
    port = free_port()
    command = [sys.executable, "-m", "bench.upstream_http", "--port", str(port), "--ports", "2", "--tools", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as upstream:
        assert upstream.stdout is not None
        assert upstream.stdout.readline().strip() == b"ready"
        folder = tmp_path_factory.mktemp("overload")
        urls = {name: {"url": f"http://127.0.0.1:{port + n}/mcp"} for n, name in enumerate(("slow", "quick"))}
        write_config(folder, urls, timeouts={"toolOverrides": {"slow": 60000}}, rateLimits={"enabled": False})
        with Served(folder) as served:
            served.wait_for("ok    quick")
            yield served
        upstream.terminate()


def ask_slow(url: str, ms: int) -> Answer:
    async def ask() -> Answer:
        async with RawClient(int(url.rpartition(":")[2])) as client:
            return await client.ask(modern("tools/call", name="slow__slow", arguments={"ms": ms, "text": "x"}))

    return asyncio.run(asyncio.wait_for(ask(), 60))


def p99_us(url: str) -> float:
    measured = uvloop.run(
        measure(Load(f"{url}/mcp", "quick__echo", era="modern", connections=4, calls=1500, seconds=1.0))
    )
    assert measured.failed == 0
    return measured.p99_us


@contextmanager
def piled_up(url: str) -> Iterator[None]:
    """So many slow calls under way, or waiting for their turn, for as long as this lasts."""
    enough = threading.Event()

    async def keep() -> None:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(one()) for _ in range(PILED_UP)]
            await asyncio.to_thread(enough.wait, 30)
            for call in calls:
                call.cancel()

    async def one() -> None:
        async with RawClient(int(url.rpartition(":")[2])) as client:
            await client.send(modern("tools/call", name="slow__slow", arguments={"ms": 50000, "text": "x"}))
            await asyncio.Event().wait()

    keeper = threading.Thread(target=lambda: asyncio.run(keep()))
    keeper.start()
    try:
        until_held(url, PILED_UP)
        yield
    finally:
        enough.set()
        keeper.join()
        until_held(url, 0)


def until_held(url: str, count: int) -> None:
    """Opening and closing so many connections at once would be measured otherwise, in the gateway and in this process."""
    eventually_blocking(lambda: f"pactgate_calls_held {count}\n" in metrics_of(url), within_s=10)


def test_two_hundred_slow_calls_on_one_server_hold_up_no_call_to_another(gateway: Served) -> None:
    with piled_up(gateway.url):
        measured = uvloop.run(
            measure(Load(f"{gateway.url}/mcp", "quick__echo", era="modern", connections=4, calls=100))
        )
        assert (measured.calls, measured.failed) == (100, 0)
        assert f"pactgate_calls_held {PILED_UP}\n" in metrics_of(gateway.url)


@pytest.mark.timing
def test_two_hundred_slow_calls_on_one_server_leave_the_other_as_quick_as_before(gateway: Served) -> None:
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone.append(p99_us(gateway.url))
        with piled_up(gateway.url):
            beside.append(p99_us(gateway.url))
    assert statistics.median(beside) <= 2 * statistics.median(alone)


@pytest.mark.requirement("S1/XC-003")
def test_asked_to_stop_with_twenty_short_calls_under_way_it_answers_all_of_them(
    gateway: Served, tmp_path: Path
) -> None:
    config = json.loads((gateway.folder / "pactgate.json").read_text())
    write_config(tmp_path, config["mcpServers"])
    with Served(tmp_path) as own, ThreadPoolExecutor(20) as pool:
        own.wait_for("ok    slow")
        answers = [pool.submit(ask_slow, own.url, 1000) for _ in range(20)]
        until_held(own.url, 20)
        own.process.send_signal(signal.SIGTERM)
        assert [answer.result().json["result"]["content"][0]["text"] for answer in answers] == ["x"] * 20
        assert own.process.wait(10) == 0
        assert descendants_of(own.process.pid) == []


def metrics_of(url: str) -> str:
    async def ask() -> Answer:
        async with RawClient(int(url.rpartition(":")[2])) as client:
            return await client.ask(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    return asyncio.run(asyncio.wait_for(ask(), 5)).body.decode()
