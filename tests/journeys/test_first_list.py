"""Most clients list once, right after they have connected: the first list has the tools of servers that start slowly."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from pactgate.config.model import Discovery
from pactgate.config.sections.listen import ListenSection
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.servers import UPSTREAM, scripted

SLOW_S = 2.0
SOON_S = 1.5
OFFER = {"starts_after_s": SLOW_S, "prompts": ["greet"], "resources": ["file:///a"], "templates": ["file:///{name}"]}
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def test_the_first_list_over_stdio_has_a_server_that_needs_three_seconds(tmp_path: Path) -> None:
    slow = {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({**OFFER, "starts_after_s": 3.0})]}
    config = tmp_path / "pactgate.json"
    config.write_text(json.dumps({"mcpServers": {"slow": slow}}))
    words = ["-c", "from pactgate.cli.main import main; main()", "serve", "--stdio", "--config", str(config)]
    async with asyncio.timeout(30), Client(StdioServerParameters(command=sys.executable, args=words)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
    assert "slow__echo" in tools


async def test_the_first_list_over_http_has_a_server_that_starts_slowly() -> None:
    async with open_gateway(scripted("quick"), scripted("slow", options=OFFER), listen=ListenSection(port=0)) as inside:
        address = await inside.gateway.serve_http()
        started = time.monotonic()
        async with asyncio.timeout(30), Client(f"{address}/mcp") as client:
            connected_s = time.monotonic() - started
            tools = {tool.name for tool in (await client.list_tools()).tools}
    assert connected_s < SOON_S
    assert {"quick__echo", "slow__echo"} <= tools


async def test_initialize_is_answered_at_once_and_every_list_is_whole() -> None:
    async with open_gateway(scripted("slow", options=OFFER)) as inside:
        started = time.monotonic()
        about = result_of(await inside.ask("initialize", params={}))
        assert time.monotonic() - started < SOON_S
        assert inside.gateway.snapshot()["lists"] == "waiting"
        for method, member in LISTS.items():
            assert result_of(await inside.ask(method))[member], method
        assert inside.gateway.snapshot()["lists"] == "whole"
    assert {"completions", "logging"} <= set(about["capabilities"])
    assert "Not available" not in about["instructions"]


async def test_a_list_waits_for_a_hung_server_as_long_as_its_own_time_to_connect() -> None:
    hung = scripted("hung", options={"hang": "handshake"}, era="legacy", connection_timeout_ms=1000)
    async with open_gateway(hung, scripted("good")) as inside:
        started = time.monotonic()
        listed = result_of(await inside.ask("tools/list"))
        assert time.monotonic() - started < 3
    assert {tool["name"].partition("__")[0] for tool in listed["tools"]} == {"good"}


@pytest.mark.parametrize("scope", [None, "good"])
async def test_who_does_not_want_to_wait_gets_the_connected_servers(scope: str | None) -> None:
    """By the setting; at the endpoint of a server, other servers never matter."""
    slow = scripted("slow", options=OFFER)
    settings: dict[str, Any] = {"discovery": Discovery(first_list_wait_ms=0)} if scope is None else {}
    async with open_gateway(slow, scripted("good"), **settings) as inside:
        started = time.monotonic()
        await inside.ask("tools/list", who=caller(scope=scope))
        assert time.monotonic() - started < SOON_S


def result_of(reply: Any) -> dict[str, Any]:
    assert reply.result is not None, reply
    found: dict[str, Any] = json.loads(reply.result)
    return found
