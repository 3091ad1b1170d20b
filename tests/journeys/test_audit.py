"""The audit log of a real gateway under real calls: killed at any moment, out of disk, and beside a second gateway.

`PACTGATE_KILLS=50` runs the whole fifty; by default there are fewer, to keep the suite short.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pactgate.audit.verify import files_of, lines_of, verify
from pactgate.config.model import Config
from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits
from pactgate.config.sections.rate_limits import RateLimits, ToolRate
from pactgate.core.events import ConfigurationReloaded
from pactgate.policy.access import ADMINISTRATOR
from pactgate.protocol.messages import encode_json, value
from tests.cli.program import PROGRAM, Served, environment, write_config
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.facing import META, message, modern
from tests.support.raw_http import WAIT_S, RawClient
from tests.support.servers import scripted

KILLS = int(os.environ.get("PACTGATE_KILLS", "6"))
CALLERS = 6
SECONDS_BETWEEN = (0.0, 0.15)
LIGHT = Path(__file__).with_name("light_server.py")
SERVERS = {"files": {"command": sys.executable, "args": ["-I", "-S", str(LIGHT), "healthy"], "era": "legacy"}}

pytestmark = pytest.mark.timeout(120)


def port_of(served: Served) -> int:
    return int(served.url.rpartition(":")[2])


def request_id_of(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return str(answer["error"]["data"]["requestId"])
    return str(answer["result"]["_meta"]["dev.pactgate/envelope"]["requestId"])


async def call_until_the_end(port: int, acknowledged: list[str], first: asyncio.Event, tool: str) -> None:
    """One caller: calls as fast as it is answered, and remembers every call it has an answer of."""
    async with RawClient(port) as client:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                answer = await client.ask(modern("tools/call", name=tool, arguments={"text": "hello"}))
                acknowledged.append(request_id_of(answer.json))
                first.set()


async def load_and_kill(served: Served, after_s: float) -> list[str]:
    acknowledged: list[str] = []
    first, port = asyncio.Event(), port_of(served)
    tools = ["files__echo"] * (CALLERS - 1) + ["files__nothing"]
    callers = [asyncio.create_task(call_until_the_end(port, acknowledged, first, tool)) for tool in tools]
    async with asyncio.timeout(2 * WAIT_S):
        await first.wait()
        await asyncio.wait(callers, timeout=after_s)
        served.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*callers)
    return acknowledged


def recorded(log: Path) -> list[str]:
    lines = [value(line) for path in files_of(log) for _, line in lines_of(path) if line.endswith(b"\n")]
    return [line["requestId"] for line in lines if line["kind"] == "call"]


def test_a_gateway_killed_at_any_moment_has_recorded_every_call_it_answered(tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS, audit={"file": "audit.jsonl", "maxBytes": 262144})
    log, chance = tmp_path / "audit.jsonl", random.Random(5)
    acknowledged: list[str] = []
    for _ in range(KILLS):
        with Served(tmp_path) as served:
            acknowledged += asyncio.run(load_and_kill(served, chance.uniform(*SECONDS_BETWEEN)))
        verdict = verify(files_of(log))
        assert verdict.is_valid, verdict.breaks
    in_log = recorded(log)
    assert len(set(in_log)) == len(in_log)
    assert len(acknowledged) >= KILLS
    assert set(acknowledged) <= set(in_log)


def limit_files(served: Served, max_bytes: int) -> None:
    """No file of this process may grow beyond this: what a full disk is like, for it alone."""
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))


@pytest.mark.parametrize("policy", ["refuse", "continue"])
async def test_a_full_disk_is_met_as_configured_and_got_over_without_a_restart(policy: str, tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS, audit={"file": "audit.jsonl", "onFailure": policy})
    log = tmp_path / "audit.jsonl"
    with Served(tmp_path, PYTHONDONTWRITEBYTECODE="1") as served:  # or a module's cache would be cut short too
        async with RawClient(port_of(served)) as client:
            call = modern("tools/call", name="files__echo", arguments={"text": "hello"})
            ids = [request_id_of((await client.ask(call)).json)]
            limit_files(served, log.stat().st_size)
            answers = [(await client.ask(call)).json for _ in range(3)]
            failures = [answer["result"]["_meta"]["dev.pactgate/envelope"].get("failure") for answer in answers]
            if policy == "refuse":
                held_back, *refused = failures
                assert (held_back["failure_mode"], held_back["verdict"]) == ("audit_unavailable", "ran")
                assert not held_back["retryable"]
                assert {(one["failure_mode"], one["verdict"]) for one in refused} == {
                    ("audit_unavailable", "did_not_run")
                }
                assert all(one["retryable"] and one["retryAfter"] == 1 for one in refused)
            else:
                assert failures == [None] * 3
            ids += [request_id_of(answer) for answer in answers]
            assert verify(files_of(log)).is_valid
            limit_files(served, resource.RLIM_INFINITY)
            await eventually(lambda: set(ids) <= set(recorded(log)))
            answer = (await client.ask(call)).json
            assert "failure" not in answer["result"]["_meta"]["dev.pactgate/envelope"]
        ids.append(request_id_of(answer))
    assert recorded(log)[: len(ids)] == ids
    assert verify(files_of(log)).is_valid


def test_two_gateways_never_write_one_log(tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS, audit={"file": "audit.jsonl"})
    with Served(tmp_path) as first:
        assert first.url
        second = subprocess.run(
            [*PROGRAM, "serve", "--port", "0"],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert second.returncode == 1
    assert "another gateway writes it" in second.stderr
    assert verify(files_of(tmp_path / "audit.jsonl")).is_valid


def test_a_log_that_can_not_be_opened_stops_the_start_and_says_what_to_do(tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS, audit={"file": "nowhere/audit.jsonl"})
    done = subprocess.run(
        [*PROGRAM, "serve", "--port", "0"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert "Check the folder" in done.stderr


async def test_every_way_a_call_can_end_leaves_one_record_that_says_so(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    settings: dict[str, Any] = {
        "audit": AuditSection(file=str(log), arguments="values"),
        "secrets": ("s3cr3t-canary",),
        "limits": Limits(max_string_length=20),
        "rate_limits": RateLimits(enabled=True, tools={"files.pid": ToolRate(rpm=1, burst=1)}),
        "categories": {"files.echo": "query", "files.pid": "query"},
        "cache": Cache(tools={"files.echo": CacheRule(ttl_ms=60_000)}),
    }
    async with open_gateway(scripted(), **settings) as inside:
        for _ in range(2):
            await inside.call("files.echo", {"text": "s3cr3t-canary"})
            await inside.call("pid")
        await inside.call("nothing")
        await inside.call("echo", {"text": "x" * 30})
        await inside.call("refuse", {"code": -32000})
        await inside.call("slow", {"ms": 10_000}, _meta={"dev.pactgate/timeoutMs": 20})
        await inside.ask("tools/call", params={"name": 5})
        given_up = asyncio.create_task(inside.call("slow", {"ms": 10_000}))
        await asyncio.wait({given_up}, timeout=0.05)
        given_up.cancel()
        await asyncio.wait({given_up})
        stories = {row["requestId"]: row["outcome"] for row in inside.gateway.observers.stories.latest(50)}
    lines = [value(line) for _, line in lines_of(log)]
    calls = [line for line in lines if line["kind"] == "call"]
    assert [(line["outcome"], line["verdict"], line["gate"]) for line in calls] == [
        ("ok", "ran", "add_envelope"),
        ("ok", "ran", "add_envelope"),
        ("ok", "did_not_run", "add_envelope"),
        ("rate_limited", "did_not_run", "rate_limit"),
        ("unknown_tool", "did_not_run", "resolve_tool"),
        ("limit_exceeded", "did_not_run", "check_limits"),
        ("upstream_error", "may_have_run", "dispatch"),
        ("timeout", "may_have_run", "dispatch"),
        ("invalid_params", "did_not_run", "parse_params"),
        ("cancelled", "may_have_run", "dispatch"),
    ]
    assert [line.get("cached", False) for line in calls][:4] == [False, False, True, False]
    assert calls[2]["requested" if "requested" in calls[2] else "tool"] == "files.echo"
    assert (calls[0]["arguments"], calls[8]["arguments"]) == ({"text": "***"}, {})
    assert "s3cr3t-canary" not in log.read_text()
    assert stories == {line["requestId"]: line["outcome"] for line in calls}
    assert verify([log]).is_valid


async def test_the_log_of_a_running_gateway_stays_what_it_was_when_the_configuration_changes(tmp_path: Path) -> None:
    before = AuditSection(file=str(tmp_path / "audit.jsonl"))
    async with open_gateway(audit=before) as inside:
        await inside.gateway.reload(Config(audit=AuditSection(file=str(tmp_path / "other.jsonl"))))
        await inside.call("nothing")
        (told,) = [event for event in inside.events if isinstance(event, ConfigurationReloaded)]
        assert told.needs_restart == ("audit",)
    assert len(recorded(tmp_path / "audit.jsonl")) == 1
    assert not (tmp_path / "other.jsonl").exists()


async def test_every_changed_setting_is_in_the_chain_and_a_refused_change_is_a_refused_call_only(
    tmp_path: Path,
) -> None:
    log, ops = tmp_path / "audit.jsonl", caller(key="ops", roles=ADMINISTRATOR)
    secret = "s3cr3t-canary"
    async with open_gateway(scripted(), audit=AuditSection(file=str(log)), secrets=(secret,)) as inside:
        changes: list[tuple[str, Any]] = [
            ("limits.maxArraySize", 7),
            ("limits.maxArraySize", "many"),
            ("rateLimits.tools", {f"files.{secret}": {"rpm": 1, "burst": 1}}),
        ]
        for path, new in changes:
            await inside.call("pactgate.config_set", {"path": path, "value": new}, who=ops)
        await inside.call("pactgate.server_disable", {"serverId": "files"}, who=ops)
        revision = value((await inside.call("pactgate.config_show", {}, who=ops)).result or b"")
    lines = [value(line) for _, line in lines_of(log)]
    assert [line["kind"] for line in lines if line["kind"] in ("call", "change")] == [
        *("change", "call"),
        "call",
        *("change", "call"),
        *("change", "call"),
        "call",
    ]
    first, second, third = [line for line in lines if line["kind"] == "change"]
    assert (first["subject"], first["path"], first["old"], first["new"]) == ("ops", "limits.maxArraySize", "100", "7")
    assert "files.***" in second["new"]
    assert (third["path"], third["old"], third["new"]) == ("mcpServers.files.enabled", "true", "false")
    assert third["revision"] == revision["structuredContent"]["revision"]
    assert not third["persisted"]
    assert secret not in log.read_text()
    assert verify([log]).is_valid


async def test_a_call_through_tool_invoke_is_recorded_as_one_of_the_tool_also_when_it_is_known_again(
    tmp_path: Path,
) -> None:
    log, ops = tmp_path / "audit.jsonl", caller(key="ops", roles=ADMINISTRATOR)
    kept = Cache(tools={"files.echo": CacheRule(ttl_ms=60_000)})
    async with open_gateway(scripted(), audit=AuditSection(file=str(log), arguments="values"), cache=kept) as inside:
        for _ in range(3):
            wish = {"name": "files.echo", "arguments": {"text": "a"}}
            await inside.call("pactgate.tool_invoke", wish, who=ops)
        await inside.call("files.echo", {"text": "a"}, who=ops)
        vias = [inside.gateway.observers.stories.get(known)["via"] for known in recorded(log)]  # type: ignore[index]
    calls = [said for _, line in lines_of(log) if (said := value(line))["kind"] == "call"]
    assert [(call["tool"], call["arguments"], call["subject"]) for call in calls] == [
        ("files.echo", {"text": "a"}, "ops")
    ] * 4
    assert [call.get("cached", False) for call in calls] == [False, True, True, True]
    assert vias == [call.get("via") for call in calls] == [*["pactgate.tool_invoke"] * 3, None]


def test_a_caller_on_stdio_is_recorded_too(tmp_path: Path) -> None:
    write_config(tmp_path, SERVERS, audit={"file": "audit.jsonl"})
    call = {"name": "files__echo", "arguments": {"text": "hello"}, "_meta": META}
    done = subprocess.run(
        [*PROGRAM, "serve", "--stdio"],
        cwd=tmp_path,
        env=environment(tmp_path),
        input=encode_json(message("tools/call", call)) + b"\n",
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert recorded(tmp_path / "audit.jsonl") == [request_id_of(value(done.stdout))]
    assert verify([tmp_path / "audit.jsonl"]).is_valid
