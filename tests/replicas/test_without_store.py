"""Replicas with a key and no store: what is of 2026-07-28 works, and what can't is named before anybody calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import GATEWAY, HERE, Program, free_port, listens
from tests.interop.test_asking import client, said
from tests.replicas.cluster import Cluster, needs_nginx
from tests.support.plain_requests import call, initialize

pytestmark = [pytest.mark.interop, needs_nginx, pytest.mark.timeout(120)]


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
