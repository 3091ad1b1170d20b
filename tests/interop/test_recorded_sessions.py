"""Real servers and real clients, recorded by `pactgate record` and by the gateway, then judged by every rule.

A finding here is either true, and listed with its reason, or a mistake in a rule or in the recorder.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pactgate import check_capture
from tests.interop.pairings import PREPARE
from tests.interop.processes import (
    GATEWAY,
    HERE,
    MCP1_PYTHON,
    NODE,
    NODE_FOLDER,
    PYTHON,
    Fleet,
    Program,
    free_port,
    listens,
)
from tests.interop.test_real_servers import Page, Real, make_repository, real_servers

TOUR_S = 40
pytestmark = [pytest.mark.interop, pytest.mark.timeout(150)]  # the fixtures make all captures, two at a time
RECORDED = {
    "time": "py-auto",
    "git": "ts1",
    "fetch": "py-legacy",
    "everything": "ts2-auto",
    "filesystem": "py-auto",
    "memory": "ts1",
}
"""Six servers, and the client each is recorded with; the era is what the two agree on."""
UNKNOWN_TOOL = {
    "GW-052": ['tools/call of "no_such_tool", which does not exist, is answered with a result that says isError.']
}
"""The SDKs answer so. The schema, CallToolResult.isError: errors in finding the tool should be reported as an error response."""
TRUE_FINDINGS = {"everything": UNKNOWN_TOOL, "filesystem": UNKNOWN_TOOL, "memory": UNKNOWN_TOOL}
THROUGH_THE_GATEWAY = ("py-legacy", "py-2026-07-28", "ts1", "ts2-modern")


def tour(client: str, place: dict[str, Any], real: Real, tool: str) -> dict[str, Any]:
    """One visit by a real client."""
    job = {**place, "tool": tool, "arguments": real.arguments}
    if client.startswith("py-"):
        command = [PYTHON, HERE / "clients" / "tour.py", json.dumps({**job, "mode": client[3:]})]
    else:
        command = [NODE, HERE / "clients" / "tour.mjs", NODE_FOLDER, json.dumps({**job, "client": client})]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TOUR_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def why_not(client: str, real: Real) -> str | None:
    if not client.startswith("py-") and not (NODE_FOLDER / ".installed").is_file():
        return f"NOT RUN: the TypeScript clients are not installed: {PREPARE}"
    return real.why_not_here()


def findings(capture: Path) -> dict[str, list[str]]:
    """Every rule that does not hold, conflicts between sessions included, with what it says."""
    report = check_capture(capture, rules="all", fail_on="should")
    found = {result.code: [result.message] for _, result in report.failures()}
    for conflict in report.conflicts():
        found.setdefault(conflict.code, []).append(conflict.message)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "files").mkdir()
    (folder / "files" / "a.txt").write_text("a file")
    make_repository(str(folder / "repository"))
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[dict[str, Real]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        thread = Thread(target=page.serve_forever, args=(0.05,))
        thread.start()
        yield real_servers(folder, f"http://127.0.0.1:{page.server_address[1]}/page")
        page.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def recorded(folder: Path, servers: dict[str, Real]) -> dict[str, Path]:
    """The captures of `pactgate record`, by server. Made side by side."""

    def record(id_: str) -> tuple[str, Path]:
        real, capture = servers[id_], folder / f"{id_}.json"
        command = [*GATEWAY, "record", "-o", str(capture), "--", *real.command()]
        seen = tour(RECORDED[id_], {"command": command}, real, real.tool)
        assert seen["called"]
        return id_, capture

    here = [id_ for id_, client in RECORDED.items() if why_not(client, servers[id_]) is None]
    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(record, here))


@pytest.mark.parametrize("id_", RECORDED)
def test_no_rule_raises_a_false_alarm_about_a_recorded_session_of_a_real_server(
    id_: str, recorded: dict[str, Path], servers: dict[str, Real]
) -> None:
    if id_ not in recorded:
        pytest.skip(why_not(RECORDED[id_], servers[id_]) or "")
    capture = json.loads(recorded[id_].read_text())
    assert len(capture["exchanges"]) >= 5
    assert capture["closed"] is True
    assert findings(recorded[id_]) == TRUE_FINDINGS.get(id_, {})


@pytest.fixture(scope="module")
def captures(folder: Path, servers: dict[str, Real]) -> Path:
    """What a gateway in front of all servers recorded while clients of both eras called a tool of each."""
    if any(why_not("ts1", real) for real in servers.values()):
        pytest.skip(f"NOT RUN: the real servers and clients are not installed: {PREPARE}")
    with Fleet(folder) as fleet:
        for real in servers.values():
            fleet.add(real.id, real.command(), None)
        tools = {real.id: real.tool for real in servers.values()}
        address = fleet.start_gateway(tools, {"capture": {"dir": "captures"}})[1]
        turns = zip(servers.values(), cycle(THROUGH_THE_GATEWAY), strict=False)
        visits = [(client, {"url": f"{address}/mcp"}, real, f"{real.id}__{real.tool}") for real, client in turns]
        time_alone = {"url": f"{address}/mcp/time"}
        visits += [(client, time_alone, servers["time"], "convert_time") for client in THROUGH_THE_GATEWAY]
        with ThreadPoolExecutor(2) as pool:
            seen = list(pool.map(lambda visit: tour(*visit), visits))
        assert all(each["called"] for each in seen)
    return folder / "captures"


def test_the_gateway_records_both_legs_and_no_rule_finds_fault(captures: Path, servers: dict[str, Real]) -> None:
    files = sorted(captures.iterdir())
    assert [file for file in files if file.suffix != ".json"] == []
    heads = [json.loads(file.read_text()) for file in files]
    asked: dict[str, set[str]] = {}
    for head in heads:
        if head["leg"] == "servers":  # a server may have several sessions, one of them shared
            methods = {exchange["request"].get("method") for exchange in head["exchanges"]}
            asked.setdefault(head["server_label"], set()).update(methods)
    assert set(asked) == set(servers)
    assert [label for label, methods in asked.items() if "tools/call" not in methods] == []
    callers = [head for head in heads if head["leg"] == "callers"]
    assert {(head["server_label"], head["era"]) for head in callers} == {
        (label, era) for label in ("pactgate/mcp", "pactgate/mcp/time") for era in ("legacy", "modern")
    }
    assert {file.name: found for file in files if (found := findings(file))} == {}


def test_an_http_server_is_recorded_with_clients_of_both_eras_and_only_what_is_true_is_found(
    folder: Path, servers: dict[str, Real]
) -> None:
    if why_not("ts1", servers["everything"]):
        pytest.skip(f"NOT RUN: {PREPARE}")
    server_port, port, capture = free_port(), free_port(), folder / "http.json"
    server = Program([PYTHON, HERE / "servers" / "sdk2.py", "x", "http", str(server_port)], folder / "sdk2.log")
    url = f"http://127.0.0.1:{server_port}/mcp"
    relay = Program([*GATEWAY, "record", "--url", url, "--port", str(port), "-o", capture], folder / "relay.log")
    try:
        server.wait_until(lambda: listens(server_port), "it listens")
        relay.wait_until(lambda: listens(port), "it listens")
        real = servers["time"]._replace(arguments={"who": "you"})
        place = {"url": f"http://127.0.0.1:{port}/mcp"}
        for client in ("py-legacy", "py-2026-07-28", "ts1", "ts2-modern"):
            assert tour(client, place, real, "greet")["called"]
    finally:
        relay.stop()
        server.stop()
    sessions = json.loads(capture.read_text())
    assert sorted(session["era"] for session in sessions) == ["legacy", "legacy", "modern"]
    assert findings(capture) == UNKNOWN_TOOL


def test_what_a_live_server_does_wrong_is_found_and_only_that(tmp_path: Path) -> None:
    """The 1.x line of the official SDK answers a method it does not know with -32602; JSON-RPC has -32601 for that. It serves a cursor that
    it did not give out, which SHOULD be -32602, and tells of an unknown tool by a result.
    """
    if not MCP1_PYTHON.exists():
        pytest.skip(f"NOT RUN: the 1.x SDK is not installed: {PREPARE}")
    capture = tmp_path / "live.json"
    server = [MCP1_PYTHON, HERE / "servers" / "sdk1.py", "x", "stdio"]
    words = [*GATEWAY, "compliance", "invariants", "--live", "-o", capture, "--", *server]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=TOUR_S, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert list(findings(capture)) == ["INV-007", "GW-047", "GW-052"]
