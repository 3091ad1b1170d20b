"""Rate limits through the whole gateway, as shipped: what passes, what is refused, and what the refused are told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway, build
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.rate_limits import ExecutionRate, RateLimits
from pactgate.core.principal import Principal
from pactgate.protocol.versions import LATEST_LEGACY
from tests.pipeline.conftest import open_gateway, text_of
from tests.pipeline.test_management import admin, failure, manage
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.facing import initialize, message, modern, notification
from tests.support.raw_http import Answer, RawClient, post
from tests.support.servers import methods, scripted

ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
OPTIONS = {"definitions": [ECHO, {**ECHO, "name": "pid"}]}
EXECUTION = {"files.*": "execution"}
SLOW = RateLimits(execution=ExecutionRate(rpm=5, burst=5))
"""Nothing comes back while a test runs, however busy the machine."""
OPS, DEV = "0123456789-ops-token", "0123456789-dev-token"


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize(("category", "burst"), [("execution", 5), ("mutation", 20), ("query", 50), ("scan", 50)])
async def test_as_shipped_a_category_has_its_burst_at_once_and_one_more_is_refused_unsent(
    tmp_path: Path, category: str, burst: int
) -> None:
    log, rpm = tmp_path / "log", {"execution": 30, "mutation": 100}.get(category, 200)
    server = scripted(options={**OPTIONS, "log": str(log)})
    async with open_gateway(server, categories={"files.*": category}) as inside:
        await inside.ask("tools/list")
        for who in (replace(caller(), principal=Principal(f"caller {number}")) for number in range(20)):
            began, sent = time.monotonic(), methods(log).count("tools/call")
            replies = await asyncio.gather(
                *(inside.call("files.echo", {"text": "a"}, who=who) for _ in range(burst + 1))
            )
            again = await inside.call("files.echo", {"text": "a"}, who=who)
            if time.monotonic() - began < 60 / rpm:  # else the machine was so busy that a token came back meanwhile
                break
        beside = await inside.call("files.pid", who=who)
        stranger = await inside.call("files.echo", {"text": "a"}, who=replace(who, principal=Principal("another")))
    refused = [reply for reply in replies if json.loads(reply.result or b"").get("isError")]
    assert len(refused) == 1
    for reply in (*refused, again):
        told = failure(reply)
        assert (told["code"], told["verdict"], told["remaining"]) == ("RATE_LIMITED", "did_not_run", 0)
        assert isinstance(told["retryAfter"], int)
        assert told["retryAfter"] >= 1
        assert told["resetIn"] >= 1
        assert told["limit"] == rpm
        assert "pactgate config set rateLimits." in json.loads(reply.result or b"")["content"][0]["text"]
    assert text_of(stranger) == "a"
    assert text_of(beside)
    assert methods(log).count("tools/call") == sent + burst + 2


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.requirement("S2/MCP-007")
async def test_waiting_as_long_as_told_suffices_and_refused_calls_cost_nothing() -> None:
    rates = RateLimits(execution=ExecutionRate(rpm=10_000, burst=2))
    async with open_gateway(scripted(options=OPTIONS), categories=EXECUTION, rate_limits=rates) as inside:
        await inside.ask("tools/list")
        loop, waits = asyncio.get_running_loop(), 0
        for _ in range(12):
            reply = await inside.call("files.echo", {"text": "a"})
            while json.loads(reply.result or b"").get("isError"):
                told = failure(reply)
                refused = await inside.call("files.echo", {"text": "a"})  # asking again at once costs nothing
                if not json.loads(refused.result or b"").get("isError"):
                    break
                until = loop.time() + told["retryAfterMs"] / 1000
                await eventually(partial(_is_past, loop, until))
                reply, waits = await inside.call("files.echo", {"text": "a"}), waits + 1
                assert not json.loads(reply.result or b"").get("isError")
    assert waits >= 1


@pytest.mark.requirement("S2/MCP-006")
async def test_a_limit_is_changed_for_the_next_call_and_what_was_used_stays_used() -> None:
    async with open_gateway(scripted(options=OPTIONS), categories=EXECUTION) as inside:
        for _ in range(4):
            assert text_of(await inside.call("files.echo", {"text": "a"})) == "a"
        await manage(inside, "config_set", path="rateLimits.execution", value={"rpm": 3, "burst": 3})
        told = failure(await inside.call("files.echo", {"text": "a"}))
        status = await inside.ask("resources/read", params={"uri": "pactgate://status"})
        row = next(row for row in inside.gateway.snapshot()["tools"] if row["fullName"] == "files.echo")
    assert (told["code"], told["limit"], told["burst"]) == ("RATE_LIMITED", 3, 3)
    shown = json.loads(json.loads(status.result or b"")["contents"][0]["text"])
    assert shown["rateLimits"]["execution"] == {"rpm": 3, "burst": 3}
    assert shown["limits"]["maxArraySize"] == 100
    assert row["rateLimit"] == {"rpm": 3, "burst": 3, "setting": "rateLimits.execution"}


def _is_past(loop: asyncio.AbstractEventLoop, end: float) -> bool:
    return loop.time() >= end


@asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[tuple[Gateway, int]]:
    config = Config(
        servers={"files": scripted(options=OPTIONS)},
        listen=ListenSection(port=0),
        auth=Auth(anonymous=True, tokens={"ops": Token(token=OPS, roles=("admin",)), "dev": Token(token=DEV)}),
        **settings,
    )
    gateway = build(config, lambda event: None)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.connections.session("files")
    await gateway.connections.settle()
    try:
        yield gateway, int(address.rpartition(":")[2])
    finally:
        await gateway.stop(grace_s=1)


async def ask(port: int, wire: bytes) -> Answer:
    async with RawClient(port) as client:
        return await client.ask(wire)


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


async def open_session(port: int, path: str = "/mcp", **headers: str) -> tuple[int, dict[str, str]]:
    answer = await ask(port, post(initialize(LATEST_LEGACY), path, **headers))
    session = answer.header("mcp-session-id")
    if session is None:
        return answer.status, {}
    named = {**headers, "mcp_session_id": session, "mcp_protocol_version": LATEST_LEGACY}
    await ask(port, post(notification("notifications/initialized"), path, **named))
    return answer.status, named


@pytest.mark.requirement("S2/MCP-007")
async def test_over_http_a_refused_call_carries_retry_after_in_both_eras() -> None:
    async with served(categories=EXECUTION, rate_limits=SLOW) as (_, port):
        wire = modern("tools/call", name="files.echo", arguments={"text": "a"})
        answers = [await ask(port, wire) for _ in range(6)]
        _, session = await open_session(port)
        old = await ask(port, post(message("tools/call", {"name": "files.echo", "arguments": {}}), **session))
    assert [answer.header("retry-after") for answer in answers[:5]] == [None] * 5
    for refused in (answers[5], old):
        assert refused.status == 200
        told = refused.json["result"]["_meta"]["dev.pactgate/envelope"]["failure"]
        assert refused.header("retry-after") == str(told["retryAfter"])
        assert int(refused.header("retry-after") or 0) >= 1


@pytest.mark.requirement("S2/MCP-006")
async def test_every_token_has_buckets_of_its_own_and_the_anonymous_share_theirs() -> None:
    async with served(categories=EXECUTION, rate_limits=SLOW) as (_, port):
        passed = {}
        for token in (OPS, DEV, None):
            wire = modern("tools/call", name="files.echo", arguments={"text": "a"}, **bearer(token))
            answers = [await ask(port, wire) for _ in range(6)]
            passed[token] = sum(not answer.json["result"].get("isError", False) for answer in answers)
    assert passed == {OPS: 5, DEV: 5, None: 5}


@pytest.mark.parametrize("token", [DEV, None])
async def test_the_gateways_own_endpoint_exists_for_administrators_only_in_both_eras(token: str | None) -> None:
    async with served() as (_, port):
        theirs = await ask(port, modern("tools/list", path="/mcp/pactgate", **bearer(token)))
        nonsense = await ask(port, modern("tools/list", path="/mcp/nothing", **bearer(token)))
        status, _ = await open_session(port, "/mcp/pactgate", **bearer(token))
        ours = await ask(port, modern("tools/list", path="/mcp/pactgate", **bearer(OPS)))
        opened, session = await open_session(port, "/mcp/pactgate", **bearer(OPS))
        old = await ask(
            port,
            post(
                message("tools/call", {"name": "config_get", "arguments": {"path": "limits.maxArraySize"}}),
                "/mcp/pactgate",
                **session,
            ),
        )
        stolen = await ask(port, post(message("tools/list"), "/mcp/pactgate", **{**session, **_as(token)}))
    assert (theirs.status, theirs.body) == (nonsense.status, nonsense.body)
    assert (theirs.status, status) == (404, 404)
    assert len(ours.json["result"]["tools"]) == 10
    assert opened == 200
    assert old.json["result"]["structuredContent"]["value"] == 100
    assert stolen.status == 404


def _as(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {"authorization": "-"}


async def test_an_administrator_manages_over_http() -> None:
    async with served() as (gateway, port):
        arguments = {"path": "limits.maxArraySize", "value": 3}
        wire = modern("tools/call", name="pactgate__config_set", arguments=arguments, **bearer(OPS))
        answer = await ask(port, wire)
        refused = await ask(port, modern("tools/call", name="pactgate__config_set", arguments=arguments, **bearer(DEV)))
        assert gateway.config.limits.max_array_size == 3
    assert answer.json["result"]["structuredContent"]["newValue"] == 3
    assert (refused.status, refused.json["error"]["data"]["failure_mode"]) == (400, "unknown_tool")


@pytest.mark.requirement("S2/MCP-004")
@pytest.mark.parametrize(("hint", "retryable"), [(False, False), (True, True), (None, True)])
async def test_no_failure_of_a_tool_that_must_not_be_repeated_is_worth_a_retry(
    hint: bool | None, retryable: bool
) -> None:
    """Every way the gateway itself has of saying a transient code, met by the same tool."""
    hints = {} if hint is None else {"idempotentHint": hint}
    names = ("echo", "slow")
    tools = [{**ECHO, "name": name, "annotations": {"readOnlyHint": False, **hints}} for name in names]
    slow = Timeouts(tool_overrides={"files.slow": 30})
    limits = Limits(max_in_flight_per_server=1, max_queued_per_server=0)
    server = scripted(options={"definitions": tools}, max_retries=0)
    async with open_gateway(server, categories=EXECUTION, timeouts=slow, limits=limits) as inside:
        await inside.ask("tools/list")
        timed_out = await inside.call("files.slow", {"ms": 60000})
        pair = await asyncio.gather(*(inside.call("files.slow", {"ms": 60000}) for _ in range(2)))
        for _ in range(5):
            await inside.call("files.echo", {"text": "a"})
        limited = await inside.call("files.echo", {"text": "a"})
        told = [failure(reply) for reply in (timed_out, *pair, limited)]
    assert {fact["code"] for fact in told} == {"TOOL_TIMEOUT", "SERVICE_UNAVAILABLE", "RATE_LIMITED"}
    assert all(fact["transient"] is True for fact in told)
    assert [fact["retryable"] for fact in told] == [retryable] * 4


async def test_admins_and_others_each_have_one_set_of_encoded_lists() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.ask("tools/list", who=admin())
        connections = inside.gateway.connections
        for who in (caller(), admin()):
            catalog = connections.catalog_for(who)
            assert catalog is connections.catalog_for(who)
            first = catalog.listing("tools/list", None, LATEST_LEGACY)
            assert catalog.listing("tools/list", None, LATEST_LEGACY) is first
