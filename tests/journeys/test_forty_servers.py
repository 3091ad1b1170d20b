"""Forty servers, three hung at different points, one in a crash loop, one flooding: nobody else pays for them.

The healthy ones are there while the others still hang, and everything that is not there is named with its reason wherever
somebody may look. Marked `timing`: they are there within two seconds of the start, and calls are as quick as they are beside
healthy servers alone.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from bench.load import Load, measure
from tests.cli.program import Served, write_config
from tests.interop.processes import PYTHON, Program, free_port, listens
from tests.interop.raw import RawCaller
from tests.support.eventually import eventually, eventually_blocking
from tests.support.facing import initialize, modern
from tests.support.processes import children_of
from tests.support.raw_http import RawClient

LIGHT_SERVER = Path(__file__).with_name("light_server.py")
WEB = 26
PIPES = 9
START_LIMIT_S = 2.0
ROUNDS = 5
HUNG = ("silent", "deaf", "listless")
MISSING = (*HUNG, "crashing")
REASONS = {
    "silent": "did not connect within 1000 ms",
    "deaf": "did not connect within 1000 ms",
    "listless": "within 1000 ms",
    "crashing": "ended with exit code 3",
}

pytestmark = pytest.mark.timeout(120)


def light(manner: str) -> dict[str, Any]:
    limits = {"connectionTimeoutMs": 1000, "requestTimeoutMs": 1000, "maxRetries": 1}
    return {"command": sys.executable, "args": ["-I", "-S", str(LIGHT_SERVER), manner], **limits}


SICK = {manner: light(manner) for manner in (*MISSING, "flooding")}


class Fleet(NamedTuple):
    """The gateway in front of all forty: what its first list said, and how long after its start everything had been called."""

    gateway: Served
    healthy: dict[str, Any]
    first_list: dict[str, Any]
    took_s: float


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forty")


@pytest.fixture(scope="module")
def healthy(folder: Path) -> Iterator[dict[str, Any]]:
    """Most over HTTP, all of them in one process, the others processes of their own: a machine has only so many cores."""
    first = consecutive_ports(WEB)
    command = [PYTHON, "-m", "bench.upstream_http", "--port", str(first), "--ports", str(WEB), "--tools", "3"]
    program = Program(command, folder / "web.log")
    try:
        program.wait_until(lambda: listens(first + WEB - 1), "all its ports listen")
        web = {f"web{number:02d}": {"url": f"http://127.0.0.1:{first + number}/mcp"} for number in range(WEB)}
        yield web | {f"pipe{number}": light("healthy") for number in range(PIPES)}
    finally:
        program.stop()


def consecutive_ports(count: int) -> int:
    for _ in range(200):
        first = free_port()
        if not any(listens(first + number) for number in range(count)):
            return first
    raise AssertionError(f"no {count} free ports in a row")


@contextmanager
def serving(folder: Path, servers: dict[str, Any]) -> Iterator[Served]:
    folder.mkdir()
    write_config(folder, servers, rateLimits={"enabled": False})
    with Served(folder) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def fleet(folder: Path, healthy: dict[str, Any]) -> Iterator[Fleet]:
    assert len(healthy | SICK) == 40
    started = time.monotonic()
    with serving(folder / "all", healthy | SICK) as gateway:
        with calling(gateway, "modern") as caller:
            first_list = json.loads(caller.request("tools/list"))
            for server in healthy:
                caller.call(f"{server}__echo", '{"text":"hello"}')
        yield Fleet(gateway, healthy, first_list, time.monotonic() - started)


@contextmanager
def calling(gateway: Served, era: str) -> Iterator[RawCaller]:
    caller = RawCaller(f"{gateway.url}/mcp", era)
    try:
        yield caller
    finally:
        caller.close()


@pytest.mark.requirement("S0/ECO-002")
def test_the_very_first_list_has_every_healthy_server(fleet: Fleet) -> None:
    assert set(fleet.healthy) <= {tool["name"].partition("__")[0] for tool in fleet.first_list["tools"]}


@pytest.mark.timing
@pytest.mark.requirement("S0/ECO-002")
def test_the_healthy_servers_are_listed_and_callable_within_two_seconds_of_the_start(fleet: Fleet) -> None:
    assert fleet.took_s <= START_LIMIT_S


@pytest.mark.requirement("S0/ECO-002")
def test_the_very_first_list_says_who_is_missing(fleet: Fleet) -> None:
    assert set(HUNG) <= set(fleet.first_list["_meta"]["dev.pactgate/missing"])


# -- what is missing is said, wherever somebody may look


def in_a_list(gateway: Served) -> str:
    with calling(gateway, "modern") as caller:
        return json.dumps(json.loads(caller.request("tools/list"))["_meta"]["dev.pactgate/missing"])


def in_a_list_of_a_session(gateway: Served) -> str:
    with calling(gateway, "legacy") as caller:
        return json.dumps(json.loads(caller.request("tools/list"))["_meta"]["dev.pactgate/missing"])


def in_the_instructions_of_a_handshake(gateway: Served) -> str:
    head = {"Content-Type": "application/json", "Accept": "application/json"}
    return str(fetch(gateway, "POST", "/mcp", json.dumps(initialize()), head)["result"]["instructions"])


def fetch(gateway: Served, *request: Any) -> dict[str, Any]:
    connection = HTTPConnection("127.0.0.1", port_of(gateway), timeout=5)
    try:
        connection.request(*request)
        facts: dict[str, Any] = json.loads(connection.getresponse().read())
        return facts
    finally:
        connection.close()


def in_the_instructions_of_a_discovery(gateway: Served) -> str:
    with calling(gateway, "modern") as caller:
        return str(json.loads(caller.request("server/discover"))["instructions"])


def in_the_status_resource(gateway: Served) -> str:
    uri = "pactgate://status"
    with calling(gateway, "modern") as caller:
        result = json.loads(caller.request("resources/read", f'"uri":"{uri}"', name=uri))
    return json.dumps(json.loads(result["contents"][0]["text"])["missing"])


def in_the_health_check(gateway: Served) -> str:
    facts = health(gateway)
    assert facts["status"] == "degraded"
    return json.dumps({server["serverId"]: server["lastError"] for server in facts["servers"]})


def on_the_command_line(gateway: Served) -> str:
    done = gateway.run("status")
    assert done.returncode == 1
    return done.stdout


PLACES = (
    in_a_list,
    in_a_list_of_a_session,
    in_the_instructions_of_a_handshake,
    in_the_instructions_of_a_discovery,
    in_the_status_resource,
    in_the_health_check,
    on_the_command_line,
)


def health(gateway: Served) -> dict[str, Any]:
    return fetch(gateway, "GET", "/health")


@pytest.mark.requirement("S0/ECO-200")
@pytest.mark.parametrize("look", PLACES, ids=lambda look: look.__name__)
def test_who_is_missing_is_said_with_the_reason(look: Callable[[Served], str], fleet: Fleet) -> None:
    """A server that is tried again has no reason for a moment, so it may be looked for a few times; so may the one that dies
    as soon as it has listed, which is there for a moment each time."""
    open_reasons = dict(REASONS)

    def all_reasons_are_said() -> bool:
        said = " ".join(look(fleet.gateway).split())
        assert all(server in said for server in HUNG)
        for server in [server for server, reason in open_reasons.items() if reason in said]:
            del open_reasons[server]
        return not open_reasons

    eventually_blocking(all_reasons_are_said, within_s=10)


@pytest.mark.requirement("S0/ECO-200")
def test_the_healthy_ones_are_shown_as_connected_and_nothing_is_wrong_with_them(fleet: Fleet) -> None:
    shown = {server["serverId"]: server for server in health(fleet.gateway)["servers"]}
    assert len(shown) == 40
    for server in fleet.healthy:
        assert (shown[server]["status"], shown[server]["lastError"]) == ("connected", None)
        assert shown[server]["toolCount"] > 0


@pytest.mark.requirement("S0/ECO-002")
@pytest.mark.parametrize(
    "server",
    [
        "silent",
        "deaf",
        "listless",
        "crashing",
    ],
)
async def test_a_call_to_a_missing_server_says_why_and_soon(server: str, fleet: Fleet) -> None:
    async def the_reason_is_said() -> bool:
        async with RawClient(port_of(fleet.gateway)) as client:
            said = (await client.ask(modern("tools/call", name=f"{server}__echo"))).body.decode()
        assert f'"server":"{server}"' in said
        return REASONS[server] in said

    await eventually(the_reason_is_said, within_s=10)


def port_of(gateway: Served) -> int:
    return int(gateway.url.rpartition(":")[2])


def test_one_server_that_never_lists_is_enough_to_be_degraded(folder: Path) -> None:
    with serving(folder / "listless", {"healthy": light("healthy"), "listless": light("listless")}) as gateway:
        eventually_blocking(lambda: events(gateway, "DiscoveryFailed", "listless"), within_s=10)
        assert health(gateway)["status"] == "degraded"
        assert gateway.run("status").returncode == 1


# -- what the sick ones may cost


def events(gateway: Served, kind: str, server: str) -> int:
    return sum(line["event"] == kind and line.get("server") == server for line in gateway.log_lines())


def test_a_crash_loop_is_slowed_and_a_flood_of_changes_costs_few_lists(fleet: Fleet) -> None:
    uptime_s = fetch(fleet.gateway, "GET", "/api/status")["uptimeMs"] / 1000
    assert events(fleet.gateway, "ServerConnected", "crashing") <= 2 + uptime_s
    assert events(fleet.gateway, "ServerDiscovered", "flooding") <= 2 + uptime_s


def test_each_server_has_at_most_one_process(fleet: Fleet) -> None:
    child_reaper = 1
    assert len(children_of(fleet.gateway.process.pid)) <= PIPES + len(SICK) + child_reaper


@pytest.mark.timing
@pytest.mark.requirement("S0/ECO-002")
def test_calls_to_healthy_servers_are_as_quick_as_they_are_alone(
    folder: Path, healthy: dict[str, Any], fleet: Fleet
) -> None:
    with serving(folder / "alone", healthy) as alone:
        ratios = {kind: slowdown(alone, fleet.gateway, kind) for kind in ("web", "pipe")}
    assert max(ratios.values()) <= 2, f"p99 beside the sick ones over p99 alone: {ratios}"


def slowdown(alone: Served, crowded: Served, kind: str) -> float:
    """How many times the p99 of one gateway is that of the other, in the middle of interleaved rounds."""
    p99s_us: dict[Served, list[float]] = {alone: [], crowded: []}
    for number in range(ROUNDS):
        server = f"web{number:02d}" if kind == "web" else f"pipe{number}"
        with standing_still(crowded):
            p99s_us[alone].append(p99_us(alone, server))
        p99s_us[crowded].append(p99_us(crowded, server))
    return statistics.median(p99s_us[crowded]) / statistics.median(p99s_us[alone])


def p99_us(gateway: Served, server: str) -> float:
    load = Load(f"{gateway.url}/mcp", f"{server}__echo", era="modern", connections=4, calls=2000, seconds=0.8)
    measured = uvloop.run(measure(load))
    assert measured.failed == 0
    return measured.p99_us


@contextmanager
def standing_still(gateway: Served) -> Iterator[None]:
    """Alone is alone: who is not measured takes no processor time, and whoever floods it finds its pipe full."""
    os.kill(gateway.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(gateway.process.pid, signal.SIGCONT)
