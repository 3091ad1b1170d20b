"""Drives the MCP clients of five frameworks. Runs in .tools/clients, and in .tools/mcp1 for those that need mcp 1.x."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.interop.clients.jobs import Play, play_all, text_of


def fastmcp() -> Play:
    from fastmcp import Client

    async def play(job: dict[str, Any]) -> dict[str, Any]:
        async with Client(job["url"]) as client:
            listed = [tool.name for tool in await client.list_tools()]
            return {"listed": listed, "text": text_of((await client.call_tool(job["tool"], job["arguments"])).content)}

    return play


def openai_agents() -> Play:
    from agents.mcp import MCPServerStreamableHttp

    async def play(job: dict[str, Any]) -> dict[str, Any]:
        async with MCPServerStreamableHttp(
            params={"url": job["url"]}, client_session_timeout_seconds=job["seconds"]
        ) as server:
            listed = [tool.name for tool in await server.list_tools()]
            return {"listed": listed, "text": text_of((await server.call_tool(job["tool"], job["arguments"])).content)}

    return play


def pydantic_ai() -> Play:
    """An agent whose model is a function that calls the tool once."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def play(job: dict[str, Any]) -> dict[str, Any]:
        listed: list[str] = []

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            listed[:] = [tool.name for tool in info.function_tools]
            if len(messages) == 1:
                return ModelResponse(parts=[ToolCallPart(job["tool"], job["arguments"])])
            return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])

        ran = await Agent(FunctionModel(model), toolsets=[MCPToolset(job["url"])]).run("go")
        return {"listed": listed, "text": ran.output}

    return play


def langchain() -> Play:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    async def play(job: dict[str, Any]) -> dict[str, Any]:
        client = MultiServerMCPClient({"gateway": {"transport": "streamable_http", "url": job["url"]}})
        tools = {tool.name: tool for tool in await client.get_tools()}
        blocks = await tools[job["tool"]].ainvoke(job["arguments"])
        return {"listed": [*tools], "text": "".join(block["text"] for block in blocks)}

    return play


def mcp_use() -> Play:
    from mcp_use import MCPClient

    async def play(job: dict[str, Any]) -> dict[str, Any]:
        client = MCPClient.from_dict({"mcpServers": {"gateway": {"url": job["url"]}}})
        session = await client.create_session("gateway")
        try:
            listed = [tool.name for tool in await session.list_tools()]
            return {"listed": listed, "text": text_of((await session.call_tool(job["tool"], job["arguments"])).content)}
        finally:
            await client.close_all_sessions()

    return play


os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"
CLIENTS: dict[str, Callable[[], Play]] = {
    "fastmcp": fastmcp,
    "langchain": langchain,
    "mcp-use": mcp_use,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
}


@cache
def loaded(client: str) -> Play:
    """Importing a framework takes seconds, which are no part of a job."""
    return CLIENTS[client]()


if __name__ == "__main__":
    play_all(lambda job: loaded(job["client"])(job))
