"""A call leaves once, under the server's own name, with the caller's bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.limits import Timeouts
from pactgate.config.server_settings import ServerConfig
from pactgate.core.values import Caller
from pactgate.pipeline.kernel import AwaitedReply
from pactgate.protocol import messages
from pactgate.protocol.messages import Request
from pactgate.protocol.versions import LATEST_MODERN, Era
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.asking import asker
from tests.support.callers import call, caller, context
from tests.support.eventually import eventually
from tests.support.scripted_http import Peer, ScriptedHttp, answer, result
from tests.support.servers import logged, methods, scripted

PV = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
@pytest.mark.parametrize("era", list(Era))
async def test_arguments_unknown_members_and_foreign_meta_arrive_as_they_were_sent(upstream: str, era: Era) -> None:
    envelope = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},'
    params = (
        b'{"name":"files.wire","arguments":{"a":18446744073709551616,"b":0.30000000000000004,"c":null,"d":"\\u00e9"},'
        b'"unknown":[1,{}],"_meta":{' + (envelope if era is Era.MODERN else b"") + b'"com.example/key":{"x":null}}}'
    )
    async with open_gateway(scripted(options={"era": upstream})) as inside:
        raw = text_of(await inside.ask("tools/call", who=caller(era), params=params))
    assert '{"a":18446744073709551616,"b":0.30000000000000004,"c":null,"d":"\\u00e9"}' in raw
    sent = json.loads(raw)["params"]
    assert sent["name"] == "wire"
    assert sent["unknown"] == [1, {}]
    assert sent["_meta"]["com.example/key"] == {"x": None}
    assert sent["_meta"].get(PV) == (LATEST_MODERN if upstream == "modern" else None)
    if upstream == "modern":
        assert sent["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}


async def test_line_breaks_between_the_callers_tokens_do_not_break_the_servers_lines() -> None:
    async with open_gateway(scripted()) as inside:
        params = b'{\n  "name": "echo",\r\n  "arguments": {\n    "text": "a\\nb"\n  }\n}'
        assert text_of(await inside.ask("tools/call", params=params)) == "a\nb"


@pytest.mark.requirement("S4/NONGOALS")
@pytest.mark.parametrize(
    ("tool", "arguments"), [("crash", None), ("refuse", {"code": -1}), ("slow", {"ms": 60000}), ("raw", {"text": "7"})]
)
async def test_a_failed_call_was_sent_exactly_once(
    tool: str, arguments: dict[str, object] | None, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)}), timeouts=Timeouts(default_timeout_ms=1000)) as inside:
        reply = await inside.call(f"files.{tool}", arguments)
        failed = reply.error is not None or json.loads(reply.result or b"{}")["isError"]
        assert failed
    assert methods(log).count("tools/call") == 1


@pytest.mark.requirement("S4/F3")
@pytest.mark.requirement("S0/ECO-301")
async def test_a_server_that_dies_in_the_middle_of_a_call_is_a_result_with_is_error() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.crash")
        result = json.loads(reply.result or b"{}")
        assert result["isError"] is True
        failure = result["_meta"]["dev.pactgate/envelope"]["failure"]
        assert (failure["failure_mode"], failure["verdict"]) == ("connection_lost", "may_have_run")
        assert failure["ecosystemCode"] == "MCP_ECO_INVOCATION_FAILED"
        assert text_of(await inside.call("files.echo", {"text": "back"})) == "back"


@pytest.mark.requirement("S4/F2")
@pytest.mark.requirement("S0/ECO-301")
async def test_an_upstreams_error_keeps_its_code_message_and_data() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.call("files.refuse", {"code": -32050})
    failure = json.loads(reply.result or b"{}")["_meta"]["dev.pactgate/envelope"]["failure"]
    assert failure["upstream"] == {"code": -32050, "message": "refused", "data": {"why": "asked to"}}
    assert failure["category"] == "upstream_failure"


@pytest.mark.requirement("S4/F3")
@pytest.mark.requirement("S0/ECO-100")
@pytest.mark.requirement("S0/ECO-301")
async def test_a_slow_tool_ends_at_the_limit_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)}, request_timeout_ms=1000)) as inside:
        reply = await inside.call("files.slow", {"ms": 60000})
        assert text_of(await inside.call("files.echo", {"text": "next"})) == "next"
    assert reply.error is not None
    assert reply.error.code == -32603
    assert reply.error.data["failure_mode"] == "timeout"
    assert reply.error.data["timeout_seconds"] == 1
    assert reply.error.data["tool"] == "files.slow"
    entries = logged(log)
    sent = next(entry for entry in entries if entry["params"].get("name") == "slow")
    told = next(entry for entry in entries if entry["method"] == "notifications/cancelled")
    assert told["params"]["requestId"] == sent["id"]


async def test_a_callers_cancellation_reaches_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        await inside.call("files.echo", {"text": "warm"})
        task = asyncio.create_task(inside.gateway.kernel.handle(context(), call("files.slow", {"ms": 60000})))
        await eventually(lambda: methods(log).count("tools/call") >= 2)
        task.cancel()
        await asyncio.wait({task})
        await eventually(lambda: "notifications/cancelled" in methods(log))
    assert task.cancelled()


async def test_a_call_that_waited_for_its_server_in_vain_names_the_server() -> None:
    hung = scripted(options={"hang": "handshake"}, era="legacy")
    async with open_gateway(hung, timeouts=Timeouts(default_timeout_ms=200)) as inside:
        reply = await inside.call("files.echo")
    assert reply.error is not None
    assert reply.error.data["server"] == "files"
    assert (reply.error.data["phase"], reply.error.data["verdict"]) == ("connect", "did_not_run")
    assert "files" in reply.error.message


@pytest.mark.parametrize("who", [caller, asker], ids=["plain", "can be asked"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_that_waits_for_nothing_but_its_server_needs_no_task(
    transport: str, who: Callable[[Era], Caller]
) -> None:
    async with AsyncExitStack() as stack:
        server = scripted(isolation="shared")
        if transport == "http":
            playing = await stack.enter_async_context(ScriptedHttp(modern_echo))
            server = ServerConfig(id="files", url=playing.url, era="modern")
        inside = await stack.enter_async_context(open_gateway(server))
        calling = who(Era.LEGACY if transport == "stdio" else Era.MODERN)
        await inside.call("files.echo", {"text": "first"}, who=calling)
        before, told = asyncio.all_tasks(), AwaitedReply()
        request = messages.decode(messages.encode_request(b"7", "tools/call", call("files.echo", {"text": "x"}).params))
        assert isinstance(request, Request)
        work = inside.gateway.kernel.start(context("tools/call", calling), request, told)
        assert asyncio.all_tasks() == before
        async with asyncio.timeout(5):
            reply = await told.reply
            assert reply is not None
        assert asyncio.all_tasks() == before
        assert text_of(reply) == "x"
        work.cancel()  # nothing is left to cancel, and nothing is told twice


async def modern_echo(peer: Peer) -> None:
    """A modern server with one tool, as little as one can be."""
    while True:
        received = (await peer.request()).message
        method, params = received["method"], received.get("params", {})
        if method == "server/discover":
            found: dict[str, Any] = {"supportedVersions": [LATEST_MODERN], "capabilities": {"tools": {}}}
        elif method == "tools/list":
            found = {
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
                "ttlMs": 0,
                "cacheScope": "private",
            }
        else:
            found = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        await peer.send(answer(result(received["id"], resultType="complete", **found)))
