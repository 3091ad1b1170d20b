"""Tools that a real server registers only for clients with elicitation, roots or sampling arrive through the gateway.

The official SDK asks `everything` directly, and through the gateway: over stdio, and over HTTP with `isolation: session`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from tests.interop.pairings import PREPARE
from tests.interop.processes import GATEWAY, NODE, NODE_FOLDER, Fleet

EVERYTHING = NODE_FOLDER / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
PLAIN, CAPABLE = 13, 17
MODES = ("legacy", "2026-07-28")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not EVERYTHING.is_file(), reason=f"NOT RUN: `everything` is not installed: {PREPARE}"),
]


async def elicit(context: object, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="decline")


async def sample(context: object, params: CreateMessageRequestParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="none", content=TextContent(type="text", text="sampled words"))


async def roots(context: object) -> ListRootsResult:
    return ListRootsResult(roots=[Root(uri="file:///somewhere")])  # type: ignore[arg-type]


def capable(target: str | StdioServerParameters, mode: str = "legacy") -> Client:
    return Client(target, mode=mode, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots)


async def names(client: Client) -> list[str]:
    return sorted(tool.name.removeprefix("everything__") for tool in (await client.list_tools()).tools)


async def sampled(client: Client, tool: str) -> str:
    result = await client.call_tool(tool, {"prompt": "hello", "maxTokens": 10})
    assert not result.is_error, result.content
    return str(result.content)


@pytest.fixture
async def direct() -> list[str]:
    async with capable(StdioServerParameters(command=str(NODE), args=[str(EVERYTHING), "stdio"])) as client:
        found = await names(client)
    assert len(found) == CAPABLE
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [{}, {"isolation": "session"}], ids=["shared", "session"])
async def test_over_stdio_the_only_client_gets_the_tools_for_what_it_offers(
    direct: list[str], settings: dict[str, str], mode: str, tmp_path: Path
) -> None:
    config = tmp_path / "pactgate.json"
    everything = {"command": str(NODE), "args": [str(EVERYTHING), "stdio"], **settings}
    config.write_text(json.dumps({"mcpServers": {"everything": everything}}))
    words = [*GATEWAY[1:], "serve", "--stdio", "--config", str(config)]
    async with capable(StdioServerParameters(command=GATEWAY[0], args=words), mode) as client:
        assert await names(client) == direct
        assert "sampled words" in await sampled(client, "everything__trigger-sampling-request")
    async with Client(StdioServerParameters(command=GATEWAY[0], args=words), mode=mode) as client:
        assert len(await names(client)) == PLAIN


@pytest.mark.parametrize("mode", MODES)
async def test_over_http_a_session_of_its_own_has_the_tools_for_what_each_client_offers(
    direct: list[str], mode: str, tmp_path: Path
) -> None:
    with Fleet(tmp_path) as fleet:
        fleet.add("everything", [NODE, EVERYTHING, "stdio"], None, isolation="session")
        url = fleet.start_gateway("echo")[1]
        for path in ("/mcp", "/mcp/everything"):
            async with capable(url + path, mode) as client, Client(url + path, mode=mode) as plain:
                assert await names(client) == direct
                assert len(await names(plain)) == PLAIN
                own = "" if path == "/mcp/everything" else "everything__"
                assert "sampled words" in await sampled(client, f"{own}trigger-sampling-request")


async def test_without_a_session_of_its_own_the_gateway_says_what_may_be_hidden(tmp_path: Path) -> None:
    with Fleet(tmp_path) as fleet:
        fleet.add("everything", [NODE, EVERYTHING, "stdio"], None)
        url = fleet.start_gateway("echo")[1]
        async with capable(f"{url}/mcp") as client:
            assert len(await names(client)) == PLAIN
            status = str(await client.read_resource("pactgate://status"))
        assert "isolation" in status
        assert "sampling may be missing" in status


async def test_a_long_running_tool_succeeds_with_its_defaults_and_with_twelve_seconds(tmp_path: Path) -> None:
    config = tmp_path / "pactgate.json"
    config.write_text(
        json.dumps({"mcpServers": {"everything": {"command": str(NODE), "args": [str(EVERYTHING), "stdio"]}}})
    )
    words = [*GATEWAY[1:], "serve", "--stdio", "--config", str(config)]
    tool = "everything__trigger-long-running-operation"
    async with capable(StdioServerParameters(command=GATEWAY[0], args=words)) as client:
        await names(client)
        calls = [client.call_tool(tool, arguments) for arguments in ({}, {"duration": 12, "steps": 12})]
        for result in await asyncio.gather(*calls):
            assert not result.is_error, result.content
            assert "completed" in str(result.content)
