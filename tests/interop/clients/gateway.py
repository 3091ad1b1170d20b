"""The gateway as the client the conformance suite judges: `python gateway.py SOCKET`; `errand.py` brings it one scenario at a time.

For each a gateway is opened in front of the suite's server and driven by the official client until everything it lists has been
called; what reaches the suite's server is what the gateway sends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from typing import Any

import mcp.types as mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.sections.listen import ListenSection
from pactgate.config.server_settings import ServerConfig

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


def calls(tools: dict[str, Any], context: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the suite asks for, and every other tool once."""
    wanted = [(call["name"], call.get("arguments") or {}) for call in context.get("toolCalls", [])]
    named = {name for name, _ in wanted}
    for name, tool in tools.items():
        if name not in named:
            wanted.append((name, arguments(name, tool, tools)))
    return [(name, given) for name, given in wanted if name in tools]


def arguments(name: str, tool: Any, tools: dict[str, Any]) -> dict[str, Any]:
    if name == "json_schema_echo" and "json_schema_2020_12_tool" in tools:
        return {"schema": tools["json_schema_2020_12_tool"].input_schema}
    fields = tool.input_schema.get("properties", {})
    return {
        key: PLAIN.get(str((fields.get(key) or {}).get("type")), "x") for key in tool.input_schema.get("required", [])
    }


async def drive(url: str, version: str, context: dict[str, Any]) -> list[str]:
    """What each call came to, one line each."""
    mode = "legacy" if version < "2026" else "auto"
    answers: dict[str, Any] = {
        "elicitation_callback": answer_form,
        "sampling_callback": answer_sampling,
        "list_roots_callback": answer_roots,
    }
    said: list[str] = []
    async with Client(url, mode=mode, **answers) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, given in calls(tools, context):
            try:
                said.append(f"{name}: {str(await client.call_tool(name, given))[:300]}")
            except MCPError as refusal:
                said.append(f"{name} was refused: {refusal!r:.300}")
    return said


async def play(scenario: dict[str, Any]) -> list[str]:
    upstream = ServerConfig(id="suite", url=scenario["url"])
    config = Config(servers={"suite": upstream}, listen=ListenSection(port=0))
    version = scenario.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(scenario.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    async with Gateway.open(config) as gateway, asyncio.timeout(WHOLE_S):
        address = await gateway.serve_http()
        await gateway.discover()
        return await drive(f"{address}/mcp/suite", version, context)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        said = await play(json.loads(await reader.readline()))
    except Exception as problem:  # noqa: BLE001 - a scenario that failed must not end the driver of the others
        said = [f"failed: {problem!r}"]
    writer.write("\n".join(said).encode())
    writer.close()


async def main() -> None:
    warnings.simplefilter("ignore")
    server = await asyncio.start_unix_server(answer, sys.argv[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
