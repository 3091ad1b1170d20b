"""Replicas with a key and no store: what is of 2026-07-28 works, and what can't is named before anybody calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import play
from tests.interop.pairings import VIEWS, Pairing, every_pairing, why_not_here
from tests.interop.processes import GATEWAY, HERE, PYTHON, Fleet, Program, free_port, listens
from tests.interop.suite import EXPECTED, judge_server
from tests.interop.suite import why_not_here as why_no_suite
from tests.interop.test_asking import client, said
from tests.interop.test_conformance import REQUIRED
from tests.replicas.cluster import Cluster, needs_nginx
from tests.support.plain_requests import call, initialize

pytestmark = [pytest.mark.interop, needs_nginx, pytest.mark.timeout(120)]


MODERN = [
    pairing
    for pairing in every_pairing()
    if pairing.client.endswith("-modern") and pairing.upstream.id.startswith(("modern", "dual"))
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Fleet(folder) as fleet:
        fleet.add("suite", [PYTHON, HERE / "servers" / "conformance.py", "both"], "/mcp")
        for upstream in {pairing.upstream for pairing in MODERN}:
            fleet.add(upstream.id, upstream.command(), upstream.path if upstream.transport != "stdio" else None)
        with Cluster(folder, fleet.started(), store=None, settings={"views": VIEWS}) as cluster:
            cluster.balance()
            yield cluster


@pytest.mark.skipif(why_no_suite() is not None, reason=str(why_no_suite()))
def test_every_scenario_that_2026_07_28_requires_passes(cluster: Cluster, tmp_path: Path) -> None:
    found = judge_server(f"{cluster.address}/mcp/suite", "2026-07-28", tmp_path / "results")
    assert len(found.required) == REQUIRED["2026-07-28"]
    assert found.failed == set(EXPECTED["both"]["2026-07-28"]), found.text


@pytest.fixture(scope="module")
def played(cluster: Cluster) -> dict[tuple[str, str, str], dict[str, Any]]:
    return play(cluster.address, MODERN)


@pytest.mark.parametrize("pairing", MODERN, ids=lambda one: f"{one.client}->{one.upstream.id}{one.path}")
def test_every_modern_client_reaches_every_modern_server(
    pairing: Pairing, played: dict[tuple[str, str, str], dict[str, Any]]
) -> None:
    missing = why_not_here(upstream=pairing.upstream, client=pairing.client)
    if missing is not None:
        pytest.skip(missing)
    outcome = played[pairing.client, pairing.upstream.id, pairing.path]
    assert outcome.get("text") == f"hello {pairing.client}, this is {pairing.upstream.id}", outcome


async def test_what_is_of_2026_07_28_needs_no_store_and_what_can_not_work_is_named(tmp_path: Path) -> None:
    port = free_port()
    asking = Program([sys.executable, str(HERE / "servers" / "asking.py"), "http", str(port)], tmp_path / "asking.log")
    try:
        asking.wait_until(lambda: listens(port), "it listens")
        servers: dict[str, Any] = {"new": {"url": f"http://127.0.0.1:{port}/mcp", "era": "modern"}}
        with Cluster(tmp_path, servers, store=None) as cluster:
            url = f"{cluster.balance()}/mcp"
            for _ in range(3):
                async with client(url, "modern", "Ada") as talking:
                    assert await said(talking, "new__greet") == "hello Ada"
                    assert await said(talking, "new__think") == "the model said Ada"
            session = initialize(cluster.addresses[0])
            assert call(cluster.addresses[0], session, "new__look")[0] == 200
            assert call(cluster.addresses[1], session, "new__look")[0] == 404
            assert "legacy sessions" in cluster.health(0)["state"]["notShared"]
            words = [*GATEWAY, "check", "--json", "--config", str(tmp_path / "pactgate.json")]
            done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=30)
            assert any("legacy sessions" in warning["message"] for warning in json.loads(done.stdout)["warnings"])
    finally:
        asking.stop()
