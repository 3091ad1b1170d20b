"""Drives the MCP clients of five frameworks. Runs in .tools/clients, and in .tools/mcp1 for those that need mcp 1.x."""

from __future__ import annotations

import os
from typing import Any

from tests.interop.clients.jobs import Play, play_all, text_of


async def fastmcp(job: dict[str, Any]) -> dict[str, Any]:
    from fastmcp import Client

    async with Client(job["url"]) as client:
        listed = [tool.name for tool in await client.list_tools()]
        return {"listed": listed, "text": text_of((await client.call_tool(job["tool"], job["arguments"])).content)}


async def openai_agents(job: dict[str, Any]) -> dict[str, Any]:
    from agents.mcp import MCPServerStreamableHttp

    async with MCPServerStreamableHttp(
        params={"url": job["url"]}, client_session_timeout_seconds=job["seconds"]
    ) as server:
        listed = [tool.name for tool in await server.list_tools()]
        return {"listed": listed, "text": text_of((await server.call_tool(job["tool"], job["arguments"])).content)}


async def pydantic_ai(job: dict[str, Any]) -> dict[str, Any]:
    """An agent whose model is a function that calls the tool once."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    listed: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        listed[:] = [tool.name for tool in info.function_tools]
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(job["tool"], job["arguments"])])
        return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])

    ran = await Agent(FunctionModel(model), toolsets=[MCPToolset(job["url"])]).run("go")
    return {"listed": listed, "text": ran.output}


async def langchain(job: dict[str, Any]) -> dict[str, Any]:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": job["url"]}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    blocks = await tools[job["tool"]].ainvoke(job["arguments"])
    return {"listed": [*tools], "text": "".join(block["text"] for block in blocks)}


async def mcp_use(job: dict[str, Any]) -> dict[str, Any]:
    from mcp_use import MCPClient

    client = MCPClient.from_dict({"mcpServers": {"gateway": {"url": job["url"]}}})
    session = await client.create_session("gateway")
    try:
        listed = [tool.name for tool in await session.list_tools()]
        return {"listed": listed, "text": text_of((await session.call_tool(job["tool"], job["arguments"])).content)}
    finally:
        await client.close_all_sessions()


os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"
CLIENTS: dict[str, Play] = {
    "fastmcp": fastmcp,
    "langchain": langchain,
    "mcp-use": mcp_use,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
}

if __name__ == "__main__":
    play_all(lambda job: CLIENTS[job["client"]](job))
