"""The gateway as the client the conformance suite judges: `python gateway.py URL`, where URL is the suite's server.

A gateway is opened in front of the URL and driven by the official client until everything it lists has been called; what
reaches the suite's server is what the gateway sends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from typing import Any

import mcp.types as mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from pactgate.app import Gateway
from pactgate.config.model import Config, Listen, ServerConfig

VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
PLAIN = {"integer": 5, "number": 3, "boolean": True, "array": [], "object": {}}
WHOLE_S = 15


async def answer_form(ctx: Any, params: Any) -> mcp_types.ElicitResult:
    """What a person would leave as it is."""
    fields = (getattr(params, "requested_schema", None) or {}).get("properties", {})
    kept = {name: field["default"] for name, field in fields.items() if "default" in field}
    return mcp_types.ElicitResult(action="accept", content=kept or dict.fromkeys(fields, True))


async def answer_sampling(ctx: Any, params: Any) -> mcp_types.CreateMessageResult:
    said = mcp_types.TextContent(type="text", text="yes")
    return mcp_types.CreateMessageResult(role="assistant", model="none", content=said)


async def answer_roots(ctx: Any) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult(roots=[])


def calls(tools: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the suite asks for, and every other tool once."""
    wanted = [(call["name"], call.get("arguments") or {}) for call in CONTEXT.get("toolCalls", [])]
    named = {name for name, _ in wanted}
    for name, tool in tools.items():
        if name not in named:
            wanted.append((name, arguments(name, tool, tools)))
    return [(name, given) for name, given in wanted if name in tools]


def arguments(name: str, tool: Any, tools: dict[str, Any]) -> dict[str, Any]:
    if name == "json_schema_echo" and "json_schema_2020_12_tool" in tools:
        return {"schema": tools["json_schema_2020_12_tool"].input_schema}
    fields = tool.input_schema.get("properties", {})
    return {key: PLAIN.get((fields.get(key) or {}).get("type"), "x") for key in tool.input_schema.get("required", [])}


async def drive(url: str) -> None:
    mode = "legacy" if VERSION < "2026" else "auto"
    answers: dict[str, Any] = {
        "elicitation_callback": answer_form,
        "sampling_callback": answer_sampling,
        "list_roots_callback": answer_roots,
    }
    async with Client(url, mode=mode, **answers) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, given in calls(tools):
            try:
                print(name, str(await client.call_tool(name, given))[:300], flush=True)
            except MCPError as refusal:
                print(name, "was refused:", repr(refusal)[:300], flush=True)


async def main() -> None:
    warnings.simplefilter("ignore")
    upstream = ServerConfig(id="suite", url=sys.argv[-1])
    config = Config(servers={"suite": upstream}, listen=Listen(port=0))
    async with Gateway.open(config) as gateway, asyncio.timeout(WHOLE_S):
        address = await gateway.serve_http()
        await gateway.discover()
        await drive(f"{address}/mcp/suite")


if __name__ == "__main__":
    asyncio.run(main())
