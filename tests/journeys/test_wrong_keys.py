"""Whoever tries keys costs the others next to nothing: 10,000 wrong keys a second beside a client at work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import pytest

from pactgate.protocol.versions import LATEST_MODERN
from tests.cli.program import Served, run, scripted, write_config
from tests.support.facing import META, message
from tests.support.raw_http import RawClient, post

PER_SECOND = 10_000
ROUNDS = 7
CALLS = 1500
GUESSER = """
import secrets, socket, sys, time
from pactgate.core.api_key import write_key
from tests.support.raw_http import post
port, per_second, at_once = map(int, sys.argv[1:])
def guess():
    key = write_key(secrets.randbits(40), secrets.randbits(256))
    return post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, authorization=f"Bearer {key}")
many = [b"".join(guess() for _ in range(at_once)) for _ in range(50)]
opened, sent, began = [], 0, time.monotonic()
print("guessing", flush=True)
while True:
    connection = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0))
    connection.settimeout(0.05)
    try:
        connection.sendall(many[sent % 50])
    except OSError:
        pass
    opened.append(connection)
    if len(opened) > 200:
        opened.pop(0).close()
    sent += at_once
    time.sleep(max(0.0, began + sent / per_second - time.monotonic()))
"""


@contextmanager
def guessing(port: int, at_once: int) -> Iterator[None]:
    words = [sys.executable, "-c", GUESSER, str(port), str(PER_SECOND), str(at_once)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as guesser:
        try:
            assert guesser.stdout is not None
            guesser.stdout.readline()
            yield
        finally:
            guesser.kill()


async def p99_ms(port: int, key: str) -> float:
    """Of calls one after the other on one connection."""
    params = {"name": "db__pid", "arguments": {}, "_meta": META}
    headers = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": "tools/call", "mcp_name": "db__pid"}
    request = post(message("tools/call", params), authorization=f"Bearer {key}", **headers)
    took = []
    async with RawClient(port) as client:
        for _ in range(CALLS):
            began = time.perf_counter()
            assert (await client.ask(request)).status == 200
            took.append((time.perf_counter() - began) * 1000)
    return quantiles(took, n=100)[98]


@pytest.mark.timing
@pytest.mark.timeout(180)
def test_wrong_keys_leave_the_p99_of_others_within_a_tenth(tmp_path: Path) -> None:
    write_config(tmp_path, {"db": scripted(era="legacy")}, rateLimits={"enabled": False})
    key = run(tmp_path, "keys", "add", "ann").stdout.strip()
    with Served(tmp_path) as served:
        served.wait_for("ok    db")
        port = int(served.url.rpartition(":")[2])
        quiet, loud = [], []
        for _ in range(ROUNDS):
            quiet.append(asyncio.run(p99_ms(port, key)))
            with guessing(port, at_once=20):
                loud.append(asyncio.run(p99_ms(port, key)))
        assert median(loud) < 1.1 * median(quiet) + 0.05
