"""One of three replicas is killed under load: only its own calls fail, nothing runs twice, and everybody else goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import HERE, Program, free_port, listens
from tests.replicas.cluster import Cluster, needs_nginx
from tests.replicas.steady_load import RATE, SteadyLoad
from tests.support.eventually import elapsed, eventually, eventually_blocking
from tests.support.plain_requests import call, initialize, modern
from tests.support.processes import command_line, descendants_of
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.servers import UPSTREAM

pytestmark = [pytest.mark.interop, needs_redis, needs_nginx, pytest.mark.timeout(120)]


GONE_S = 40.0
"""LIFE_S, and SETTLE_S as well where a busy machine made a replica miss the store once."""


def plain(log: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({"log": str(log)})]}


async def test_a_killed_replica_takes_only_its_own_calls_with_it(redis: RedisServer, tmp_path: Path) -> None:
    log = tmp_path / "received"
    with Cluster(tmp_path, {"plain": plain(log)}, store=redis.url) as cluster:
        load = SteadyLoad(cluster.balance(), "plain__echo")
        await load.open()
        victim = cluster.programs[0].pid
        children = [pid for pid in descendants_of(victim) if command_line(pid)]
        assert children
        await load.run(2)
        running = asyncio.create_task(load.run(4))
        await elapsed(1)
        killed_at = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: cluster.programs[0].process.poll() is not None)
        gone_at = time.monotonic()
        await running
        await load.close()
        failed = {text: one for text, one in load.outcomes.items() if not one.is_good}
        ran = Counter(
            json.loads(line)["params"]["arguments"]["text"]
            for line in log.read_text().splitlines()
            if '"tools/call"' in line
        )
        assert len(load.outcomes) == 6 * RATE
        assert [text for text, one in failed.items() if not one.was_under_way(killed_at, gone_at)] == []
        assert all(one.status == 502 or one.verdict in ("did_not_run", "may_have_run") for one in failed.values())
        assert max(ran.values()) == 1
        assert all(ran[text] == 1 for text in load.outcomes.keys() - failed.keys())
        assert not any(ran[text] for text, one in failed.items() if one.verdict == "did_not_run")
        assert load.opened_again >= 1
        await eventually(lambda: not any(command_line(pid) for pid in children))
        await eventually(lambda: cluster.health(1)["state"]["replicas"] == 2, within_s=GONE_S)


@pytest.mark.timing
async def test_the_others_are_as_fast_as_before(redis: RedisServer, tmp_path: Path) -> None:
    with Cluster(tmp_path, {"plain": plain(tmp_path / "received")}, store=redis.url) as cluster:
        load = SteadyLoad(cluster.balance(), "plain__echo")
        await load.open()
        await load.run(2)
        begun_at = time.monotonic()
        await load.run(8)
        killed_at = time.monotonic()
        os.kill(cluster.programs[0].pid, signal.SIGKILL)
        await load.run(9)
        await load.close()
        before, after = load.p99_ms(begun_at, killed_at), load.p99_ms(killed_at + 1, time.monotonic())
        assert after <= 1.2 * before, f"p99 {before:.1f} ms before, {after:.1f} ms after"


def test_legacy_clients_of_a_killed_replica_initialize_again_and_go_on(redis: RedisServer, tmp_path: Path) -> None:
    with Cluster(tmp_path, {"plain": plain(tmp_path / "received")}, store=redis.url) as cluster:
        session = initialize(cluster.addresses[0])
        assert call(cluster.addresses[1], session, "plain__echo", text="x")[0] == 200
        cluster.kill(0)
        eventually_blocking(lambda: call(cluster.addresses[1], session, "plain__echo", text="x")[0] == 404)
        status, body = call(cluster.addresses[2], session, "plain__echo", text="x")
        assert status == 404
        assert body["error"]["data"]["failure_mode"] == "unknown_session"
        again = initialize(cluster.addresses[1])
        assert call(cluster.addresses[2], again, "plain__echo", text="x")[0] == 200


async def test_a_call_under_way_at_a_killed_owner_fails_with_its_verdict_and_runs_once(
    redis: RedisServer, tmp_path: Path
) -> None:
    log = tmp_path / "received"
    with Cluster(tmp_path, {"plain": plain(log)}, store=redis.url) as cluster:
        session = initialize(cluster.addresses[0])
        waiting = asyncio.create_task(
            asyncio.to_thread(call, cluster.addresses[1], session, "plain__slow", ms=30_000, nonce="only-once")
        )
        await eventually(lambda: log.exists() and "only-once" in log.read_text())
        cluster.kill(0)
        _, body = await waiting
        assert body["error"]["data"]["failure_mode"] == "replica_lost"
        assert body["error"]["data"]["verdict"] == "may_have_run"
        assert call(cluster.addresses[2], session, "plain__echo")[0] == 404
        assert log.read_text().count("only-once") == 1


@pytest.mark.parametrize("store", ["there", "away"])
async def test_what_waits_at_a_replica_that_hangs_ends_with_its_verdict_also_without_the_store(
    redis: RedisServer, tmp_path: Path, store: str
) -> None:
    log = tmp_path / "received"
    with Cluster(tmp_path, {"plain": plain(log)}, store=redis.url, count=2) as cluster:
        session = initialize(cluster.addresses[0])
        slow = partial(call, cluster.addresses[1], session, "plain__slow")
        waiting = asyncio.create_task(asyncio.to_thread(slow, ms=60_000, nonce="only-once"))
        await eventually(lambda: log.exists() and "only-once" in log.read_text())
        if store == "away":
            redis.stop()
        os.kill(cluster.programs[0].pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            _, body = await waiting
            assert time.monotonic() - begun < 15
            assert _failure(body) == ("replica_lost", "may_have_run")
        finally:
            os.kill(cluster.programs[0].pid, signal.SIGCONT)
        assert log.read_text().count("only-once") == 1


def test_a_suspended_call_of_a_killed_replica_is_gone_and_never_runs_again(redis: RedisServer, tmp_path: Path) -> None:
    port = free_port()
    asking = Program([sys.executable, str(HERE / "servers" / "asking.py"), "http", str(port)], tmp_path / "asking.log")
    try:
        asking.wait_until(lambda: listens(port), "it listens")
        servers = {"old": {"url": f"http://127.0.0.1:{port}/mcp", "era": "legacy"}}
        with Cluster(tmp_path, servers, store=redis.url) as cluster:
            params: dict[str, Any] = {"name": "old__greet", "arguments": {}}
            asked = modern(cluster.addresses[0], "tools/call", params, elicitation={})["result"]
            (key,) = asked["inputRequests"]
            answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
            again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            cluster.kill(0)
            said = [_failure(modern(address, "tools/call", again, elicitation={})) for address in cluster.addresses[1:]]
            assert said == [("replica_lost", "may_have_run")] * 2
            eventually_blocking(lambda: cluster.health(1)["state"]["replicas"] == 2, within_s=GONE_S)
            said = [_failure(modern(address, "tools/call", again, elicitation={})) for address in cluster.addresses[1:]]
            assert said == [("replica_lost", "may_have_run")] * 2
    finally:
        asking.stop()


def test_a_replica_that_stops_in_order_is_ready_no_more_and_goes_on_serving_meanwhile(
    redis: RedisServer, tmp_path: Path
) -> None:
    settings = {"listen": {"drainMs": 1500}}
    with Cluster(tmp_path, {"plain": plain(tmp_path / "log")}, store=redis.url, settings=settings) as cluster:
        session = initialize(cluster.addresses[0])
        cluster.programs[0].process.terminate()
        eventually_blocking(lambda: _ready(cluster.addresses[0]) == (503, "draining"))
        assert call(cluster.addresses[1], session, "plain__echo", text="x")[0] == 200
        assert call(cluster.addresses[0], session, "plain__echo", text="x")[0] == 200
        assert cluster.programs[0].process.wait(10) == 0
        eventually_blocking(lambda: cluster.health(1)["state"]["replicas"] == 2, within_s=GONE_S)
        assert call(cluster.addresses[1], session, "plain__echo", text="x")[0] == 404


def _ready(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{address}/health/ready", timeout=5) as answer:
            return answer.status, json.loads(answer.read())["status"]
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())["status"]


def _failure(body: dict[str, Any]) -> tuple[str, str]:
    if "error" in body:
        data = body["error"]["data"]
    else:
        envelope = body["result"]["_meta"]["dev.pactgate/envelope"]
        data = envelope.get("failure") or envelope["error"]
    return data["failure_mode"], data["verdict"]
