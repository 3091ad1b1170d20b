"""Three replicas behind nginx in round robin, so that nearly every request lands on another one than the last.

The official conformance suite, every client of the interop tests against every upstream, and questions over all four pairings of eras.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import play
from tests.interop.pairings import UPSTREAMS, VIEWS, Pairing, every_pairing, why_not_here
from tests.interop.processes import HERE, PYTHON, Fleet
from tests.interop.suite import EXPECTED, Found, judge_server
from tests.interop.suite import why_not_here as why_no_suite
from tests.interop.test_asking import MODES, client, said
from tests.interop.test_conformance import FIXTURES, REQUIRED, RUNS
from tests.replicas.cluster import Cluster, needs_nginx
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = [pytest.mark.interop, needs_redis, needs_nginx, pytest.mark.timeout(240)]

ASKING = ("legacy-http-asks", "modern-http-asks")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cluster(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Fleet(folder) as fleet:
        for fixture in FIXTURES:
            fleet.add(fixture, [PYTHON, HERE / "servers" / "conformance.py", fixture], "/mcp")
        fleet.add(ASKING[0], [sys.executable, HERE / "servers" / "asking.py", "http"], "/mcp", era="legacy")
        fleet.add_again(ASKING[1], ASKING[0], era="modern")
        for upstream in UPSTREAMS:
            if why_not_here(upstream=upstream) is None:
                fleet.add(upstream.id, upstream.command(), upstream.path if upstream.transport != "stdio" else None)
        with Cluster(folder, fleet.started(), store=redis.url, settings={"views": VIEWS}) as cluster:
            cluster.balance()
            yield cluster


@pytest.fixture(scope="module")
def judged(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Found]:
    folder: Path = tmp_path_factory.mktemp("results")

    def run(job: tuple[str, str]) -> Found:
        fixture, revision = job
        return judge_server(f"{cluster.address}/mcp/{fixture}", revision, folder / fixture / revision)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUNS, pool.map(run, RUNS), strict=True))


@pytest.mark.skipif(why_no_suite() is not None, reason=str(why_no_suite()))
@pytest.mark.parametrize(("fixture", "revision"), RUNS)
def test_every_required_scenario_passes(fixture: str, revision: str, judged: dict[tuple[str, str], Found]) -> None:
    found = judged[fixture, revision]
    assert len(found.required) == REQUIRED[revision]
    assert found.failed == set(EXPECTED[fixture][revision]), found.text


@pytest.fixture(scope="module")
def played(cluster: Cluster) -> dict[tuple[str, str, str], dict[str, Any]]:
    return play(cluster.address)


@pytest.mark.parametrize("pairing", list(every_pairing()), ids=lambda one: f"{one.client}->{one.upstream.id}{one.path}")
def test_every_client_reaches_every_upstream(
    pairing: Pairing, played: dict[tuple[str, str, str], dict[str, Any]]
) -> None:
    missing = why_not_here(upstream=pairing.upstream, client=pairing.client)
    if missing is not None:
        pytest.skip(missing)
    outcome = played[pairing.client, pairing.upstream.id, pairing.path]
    assert "error" not in outcome, outcome
    assert outcome["text"] == f"hello {pairing.client}, this is {pairing.upstream.id}"


@pytest.mark.parametrize("upstream", ASKING)
@pytest.mark.parametrize("caller", list(MODES))
async def test_a_server_asks_and_its_caller_answers_at_another_replica(
    cluster: Cluster, caller: str, upstream: str
) -> None:
    async with client(f"{cluster.address}/mcp/{upstream}", caller, "Ada") as talking:
        assert await said(talking, "greet") == "hello Ada"
        assert await said(talking, "think") == "the model said Ada"
        assert await said(talking, "look") == "file:///Ada"


@pytest.mark.parametrize("caller", list(MODES))
async def test_of_many_clients_each_answers_its_own_calls(cluster: Cluster, caller: str) -> None:
    url = f"{cluster.address}/mcp/{ASKING[0]}"
    async with client(url, caller, "Ada") as ada, client(url, caller, "Eve") as eve:
        calls = [said(talking, "greet") for _ in range(4) for talking in (ada, eve)]
        assert await asyncio.gather(*calls) == ["hello Ada", "hello Eve"] * 4
