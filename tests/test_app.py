"""The composition root: wired without starting anything, started and stopped without leaving anything."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from pactgate.app import build
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Event, GatewayStarted, GatewayStopped, ServerFailed
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.policy.cache_policy import CacheKeys
from pactgate.policy.result_cache import LeaderTicket
from pactgate.state.ports import Lookup
from tests.support.callers import call, context
from tests.support.processes import running_children
from tests.support.servers import scripted

ANYWHERE = ListenSection(port=0)


def get(url: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urlopen(Request(url, headers=headers), timeout=5) as answer:
        return int(answer.status)


def test_building_starts_nothing_and_needs_no_event_loop(tmp_path: Path) -> None:
    log = tmp_path / "log"
    gateway = build(Config(servers={"files": scripted(options={"log": str(log)})}), lambda event: None)
    assert gateway.snapshot()["servers"][0]["status"] == "disconnected"
    assert running_children() == []
    assert not log.exists()


@pytest.mark.requirement("S1/XC-003")
async def test_stopping_ends_every_process_task_and_descriptor() -> None:
    tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
    events: list[Event] = []
    gateway = build(Config(servers={"a": scripted("a"), "b": scripted("b")}, listen=ANYWHERE), events.append)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.connections.session("a")
    assert await asyncio.to_thread(get, f"{address}/health/live") == 200
    await gateway.stop(grace_s=1)
    assert running_children() == []
    assert len(asyncio.all_tasks()) == tasks
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert isinstance(events[0], GatewayStarted)
    assert isinstance(events[-1], GatewayStopped)


@pytest.mark.requirement("S1/XC-003")
async def test_a_start_that_fails_half_way_leaves_nothing_of_its_first_half() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    first = build(Config(listen=ANYWHERE), lambda event: None)
    port = int((await first.serve_http()).rsplit(":", 1)[1])
    second = build(Config(servers={"a": scripted("a")}, listen=ListenSection(port=port)), lambda event: None)
    await second.start()
    await second.connections.session("a")
    with pytest.raises(GatewayFailure) as caught:
        await second.serve_http()
    await second.stop(grace_s=0)
    await first.stop(grace_s=0)
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert running_children() == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_a_secret_that_two_reloads_have_replaced_is_still_masked(caplog: pytest.LogCaptureFixture) -> None:
    gateway = build(Config(secrets=("first-secret",)), lambda event: None)
    await gateway.start()
    try:
        for secret in ("second-secret", "third-secret"):
            await gateway.reload(Config(secrets=(secret,)))
        gateway.report(
            ServerFailed("crm", 1, "401 for first-secret, second-secret and third-secret", "MCP_ECO_CONNECTION_FAILED")
        )
        assert caplog.records[-1].getMessage().endswith("401 for ***, *** and *** (MCP_ECO_CONNECTION_FAILED)")
    finally:
        await gateway.stop(grace_s=0)


async def test_whoever_gets_the_name_of_a_holder_that_is_gone_gets_nothing_that_was_kept_for_it() -> None:
    """The name of a holder is the key of what is kept for it."""
    auth = Auth(tokens={"ops": Token(token="a-token-of-some-length")})
    gateway = build(Config(listen=ANYWHERE, auth=auth, servers={"files": scripted()}), lambda event: None)
    await gateway.serve_http()
    await gateway.start()
    try:
        await gateway.connections.session("files")
        ticket = gateway.results.ask(CacheKeys(b"key of ops", None), "files")
        assert isinstance(ticket, LeaderTicket)
        ticket.keep(b"{}", ttl_ms=60_000)
        assert isinstance(gateway.results.ask(CacheKeys(b"key of ops", None), "files"), Lookup)
        await gateway.reload(replace(gateway.config, auth=Auth(tokens={"dev": Token(token="b-token-of-some-length")})))
        assert isinstance(gateway.results.ask(CacheKeys(b"key of ops", None), "files"), LeaderTicket)
    finally:
        await gateway.stop(grace_s=0)


async def test_the_snapshot_shows_no_command_lines_and_no_secrets() -> None:
    config = scripted(env={"KEY": "hunter2hunter2"})
    gateway = build(Config(servers={"files": config}, secrets=("hunter2hunter2",)), lambda event: None)
    await gateway.start()
    await gateway.connections.session("files")
    text = json.dumps(gateway.snapshot())
    await gateway.stop(grace_s=0)
    assert "hunter2" not in text
    assert "stdio_upstream.py" not in text


async def test_a_secret_that_a_server_prints_or_says_reaches_nobody() -> None:
    secret = "hunter2hunter2"
    dying = ServerConfig(
        id="dying",
        command=sys.executable,
        args=("-c", f"import sys; sys.exit('the key is {secret}')"),
        max_retries=0,
        era="legacy",
    )
    echo = scripted("echo")
    config = Config(servers={"dying": dying, "echo": echo}, secrets=(secret,))
    gateway = build(config, lambda event: None)
    await gateway.start()
    told = [await gateway.kernel.handle(context(), call("dying.anything"))]
    told.append(await gateway.kernel.handle(context(), call("echo.refuse", {"code": -1, "message": f"no {secret}"})))
    state = json.dumps(gateway.snapshot())
    await gateway.stop(grace_s=0)
    assert "the key is" in state
    assert secret not in state
    assert all(secret not in repr(reply) for reply in told)
    assert "***" in repr(told[1])


_OPTIONAL = (
    "pactgate.audit.audit_log",
    "pactgate.capture.recorder",
    "pactgate.config.persist",
    "pactgate.inbound.connect_pages",
    "pactgate.inbound.console",
    "pactgate.inbound.stdio_frontend",
    "pactgate.stored_replicas",
    "pactgate.telemetry.trace_export",
    "pactgate.upstreams.process.child_reaper",
    "pactgate.upstreams.python_tools",
    "shutil",
    "zipfile",
)
_START = """
import asyncio, json, sys
from pactgate.cli.serve import serve
from pactgate.app import Gateway
from pactgate.config.model import Config, ListenSection
from pactgate.config.server_settings import ServerConfig
async def main():
    config = Config(listen=ListenSection(port=0), servers={"up": ServerConfig(id="up", url="http://127.0.0.1:9/mcp")})
    gateway = Gateway(config, lambda event: None)
    await gateway.serve_http()
    await gateway.start()
    await gateway.stop(0)
asyncio.run(main())
"""


def test_a_gateway_over_http_imports_no_part_that_nothing_asks_for() -> None:
    code = f"{_START}\nprint(json.dumps([name for name in {_OPTIONAL!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout) == []
