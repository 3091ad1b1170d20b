"""Replicas whose clocks differ by a minute from the first to the last: seals open, requests are handed over, limits hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import HERE, Program, free_port, listens
from tests.replicas.cluster import Cluster
from tests.support.plain_requests import call, initialize, modern
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.servers import UPSTREAM

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
pytestmark = [
    pytest.mark.interop,
    needs_redis,
    pytest.mark.timeout(120),
    pytest.mark.skipif(FAKETIME is None, reason="NOT RUN: libfaketime is not installed: apt-get install faketime"),
]
RPM, BURST = 60, 20


@pytest.fixture
def cluster(redis: RedisServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A busy machine may miss the store now and then; the parameter says what becomes of rate limits then."""
    shifted = ("env", f"LD_PRELOAD={FAKETIME}", "FAKETIME_DONT_FAKE_MONOTONIC=1")
    under = [(*shifted, f"FAKETIME={shift}") for shift in ("-30s", "+0s", "+30s")]
    clock = [sys.executable, "-c", "import time; print(time.time())"]
    behind, _, ahead = [float(subprocess.check_output([*words, *clock])) for words in under]
    assert ahead - behind > 59, "their clocks do differ"
    port = free_port()
    asking = Program([sys.executable, str(HERE / "servers" / "asking.py"), "http", str(port)], tmp_path / "asking.log")
    asking.wait_until(lambda: listens(port), "it listens")
    plain = {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({"era": "legacy"})]}
    servers: dict[str, Any] = {"plain": plain}
    servers |= {era: {"url": f"http://127.0.0.1:{port}/mcp", "era": era} for era in ("legacy", "modern")}
    limits = {"rateLimits": {"tools": {"plain.echo": {"rpm": RPM, "burst": BURST}}}}
    try:
        policies = {"onFailure": {"rates": request.param, "singleUse": "local"}}
        with Cluster(tmp_path, servers, store=redis.url, settings=limits, under=under, state=policies) as cluster:
            yield cluster
    finally:
        asking.stop()


@pytest.mark.parametrize("cluster", ["local"], indirect=True)
def test_seals_open_and_requests_are_handed_over_between_any_two(cluster: Cluster) -> None:
    for asked_at, answered_at in permutations(cluster.addresses, 2):
        for era in ("legacy", "modern"):
            params: dict[str, Any] = {"name": f"{era}__greet", "arguments": {}}
            asked = modern(asked_at, "tools/call", params, elicitation={})["result"]
            (key,) = asked["inputRequests"]
            answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
            again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            done = modern(answered_at, "tools/call", again, elicitation={})["result"]
            assert done["content"][0]["text"] == "hello Ada"
        session = initialize(asked_at)
        assert call(answered_at, session, "legacy__look")[0] == 200


@pytest.mark.parametrize("cluster", ["refuse"], indirect=True)
def test_leases_of_all_replicas_together_stay_within_the_limit(cluster: Cluster) -> None:
    went = 0
    for number in range(3 * BURST):
        address = cluster.addresses[number % 3 if number % 5 == 0 else 0]
        body = modern(address, "tools/call", {"name": "plain__echo", "arguments": {"text": "x"}})
        went += not body["result"].get("isError")
    assert 0 < went <= BURST + 10, "what came back meanwhile: one a second"
