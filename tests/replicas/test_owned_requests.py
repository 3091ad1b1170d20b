"""What one replica owns is served by it, wherever the request lands: three gateways, a real Redis, real clients."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import HERE, Program, free_port, listens
from tests.interop.raw import LEGACY
from tests.replicas.cluster import Cluster, needs_nginx
from tests.support.plain_requests import call, initialize, modern
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.servers import UPSTREAM

TASKS = Path(__file__).parents[1] / "support" / "task_server.py"
pytestmark = [pytest.mark.interop, needs_redis, needs_nginx, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, str(HERE / "servers" / "asking.py"), "http", str(port)]
    program = Program(command, tmp_path_factory.mktemp("asking") / "log")
    program.wait_until(lambda: listens(port), "it listens")
    yield f"http://127.0.0.1:{port}/mcp"
    program.stop()


def servers(asking: str) -> dict[str, Any]:
    plain = {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({"era": "legacy"})]}
    return {
        "plain": plain,
        "old": {"url": asking, "era": "legacy"},
        "new": {"url": asking, "era": "modern"},
        "tasks": {"command": sys.executable, "args": [str(TASKS), "modern"]},
    }


@pytest.fixture(scope="module")
def cluster(redis: RedisServer, asking: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    rules = [{"allow": "*", "to": "*"}, {"deny": "plain.pid", "to": "*"}]
    settings = {"response": {"maxResponseBytes": 4096}, "permissions": rules}
    with Cluster(folder, servers(asking), store=redis.url, settings=settings) as cluster:
        cluster.balance()
        yield cluster


def test_a_legacy_session_is_served_by_its_replica_wherever_its_requests_land(cluster: Cluster) -> None:
    session = initialize(cluster.addresses[0])
    for address in cluster.addresses:
        status, body = call(address, session, "plain__echo", text=address)
        assert status == 200
        assert address in body["result"]["content"][0]["text"]


def test_a_denied_tool_is_as_unknown_through_another_replica(cluster: Cluster) -> None:
    session = initialize(cluster.addresses[0])
    for address in cluster.addresses:
        denied, unknown = [call(address, session, f"plain__{name}") for name in ("pid", "pix")]
        said = [json.dumps(body["error"]) for _, body in (denied, unknown)]
        assert denied[0] == unknown[0]
        assert _without_ids(said[0]) == _without_ids(said[1]).replace("pix", "pid")


def _without_ids(said: str) -> str:
    return re.sub(r'"(requestId|durationMs)": ("[^"]*"|\d+)', "", said)


def test_a_session_that_is_deleted_through_one_replica_is_gone_for_all(cluster: Cluster) -> None:
    session = initialize(cluster.addresses[0])
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    request = urllib.request.Request(f"{cluster.addresses[1]}/mcp", None, headers, method="DELETE")
    with urllib.request.urlopen(request, timeout=5) as response:
        assert response.status == 200
    for address in cluster.addresses:
        assert call(address, session, "plain__echo")[0] == 404


def test_an_id_that_no_replica_made_is_unknown_everywhere(cluster: Cluster) -> None:
    for forged in ("0" * 32, "A" * 70, "x"):
        for address in cluster.addresses:
            status, body = call(address, forged, "plain__echo")
            assert status == 404
            assert body["error"]["data"]["failure_mode"] == "unknown_session"


@pytest.mark.parametrize("server", ["old", "new"])
def test_a_modern_client_answers_a_question_at_another_replica_and_can_do_so_once(
    cluster: Cluster, server: str
) -> None:
    first, second, third = cluster.addresses
    params: dict[str, Any] = {"name": f"{server}__greet", "arguments": {}}
    asked = modern(first, "tools/call", params, elicitation={})["result"]
    assert asked["resultType"] == "input_required"
    (key,) = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
    again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
    done = modern(second, "tools/call", again, elicitation={})["result"]
    assert done["content"][0]["text"] == "hello Ada"
    for address in (first, second, third):
        repeated = modern(address, "tools/call", again, elicitation={})
        assert repeated["error"]["data"]["failure_mode"] == "invalid_params"


def test_a_result_in_pages_is_read_at_any_replica(cluster: Cluster) -> None:
    big = {"content": [], "structuredContent": {"text": "x" * 9000}}
    params: dict[str, Any] = {"name": "plain__raw", "arguments": {"text": json.dumps(big)}}
    answer = modern(cluster.addresses[0], "tools/call", params)["result"]
    details = answer["structuredContent"]["error"]["details"] if "structuredContent" in answer else answer["_meta"]
    uri = _find(details, "resultUri") or _find(answer, "resultUri")
    assert uri is not None, answer
    read = ""
    for page in range(1, 20):
        address = cluster.addresses[page % 3]
        found = modern(address, "resources/read", {"uri": uri})["result"]
        read += found["contents"][0]["text"]
        following = found["_meta"]["dev.pactgate/page"].get("next")
        if following is None:
            break
        uri = following
    assert "x" * 9000 in read


def test_a_task_is_followed_and_cancelled_at_any_replica(cluster: Cluster) -> None:
    able: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    params: dict[str, Any] = {"name": "echo", "arguments": {"n": 1}}
    begun = modern(cluster.addresses[0], "tools/call", params, path="/mcp/tasks", **able)["result"]
    assert begun["resultType"] == "task"
    for address in cluster.addresses:
        for method in ("tasks/get", "tasks/cancel"):
            found = modern(address, method, {"taskId": begun["taskId"]}, path="/mcp/tasks", **able)["result"]
            assert found["taskId"] == begun["taskId"]
        other = modern(address, "tasks/get", {"taskId": f"{begun['taskId']}0"}, path="/mcp/tasks", **able)
        assert other["error"]["code"] == -32602


def test_what_is_stored_is_sealed_and_has_an_end(cluster: Cluster, redis: RedisServer) -> None:
    initialize(cluster.addresses[0])
    keys = redis.keys()
    assert keys
    assert all(life_ms > 0 for life_ms in keys.values()), keys
    stored = redis.dump()
    assert b"127.0.0.1" not in stored
    assert b"plain" not in stored


def test_a_request_of_nobody_is_refused_at_the_address_for_replicas(cluster: Cluster, redis: RedisServer) -> None:
    """The addresses are sealed, so the test finds the port by asking the kernel which ones the process has."""
    ports = set().union(*(_listening(program) for program in cluster.programs)) - set(cluster.ports)
    assert len(ports) >= 3
    for port in ports:
        for path, expected in (("/internal/hop", 421), ("/mcp", 404), ("/health", 404)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", b"{}", method="POST")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=5)
            assert refused.value.code == expected
            refused.value.close()
    request = urllib.request.Request(f"{cluster.addresses[0]}/internal/hop", b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    assert refused.value.code == 404
    refused.value.close()


def _find(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if name in value:
            return value[name]
        value = list(value.values())
    if isinstance(value, list):
        return next((found for one in value if (found := _find(one, name)) is not None), None)
    return None


def _listening(program: Program) -> set[int]:
    inodes = set()
    for link in Path(f"/proc/{program.pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}
