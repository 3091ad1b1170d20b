"""Lists tools once, with the client that is the first argument: fastmcp, langchain or openai-agents.

Prints a line when it is imported and ready, reads `{"url": ...}` or `{"command": ..., "args": [...]}` from stdin, and prints the names.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_S = 60
"""As long as the SDK waits by default; OpenAI Agents waits 5 s, which a busy machine needs for its servers alone."""
Lister = Callable[[dict[str, Any]], Awaitable[list[str]]]


def fastmcp() -> Lister:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    async def names(target: dict[str, Any]) -> list[str]:
        async with Client(target["url"] if "url" in target else StdioTransport(**target)) as client:
            return [tool.name for tool in await client.list_tools()]

    return names


def langchain() -> Lister:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    async def names(target: dict[str, Any]) -> list[str]:
        kind = "streamable_http" if "url" in target else "stdio"
        return [
            tool.name for tool in await MultiServerMCPClient({"gateway": {"transport": kind, **target}}).get_tools()
        ]

    return names


def openai_agents() -> Lister:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    async def names(target: dict[str, Any]) -> list[str]:
        kind: Any = MCPServerStreamableHttp if "url" in target else MCPServerStdio
        async with kind(params=target, client_session_timeout_seconds=PATIENCE_S) as server:
            return [tool.name for tool in await server.list_tools()]

    return names


CLIENTS: dict[str, Callable[[], Lister]] = {"fastmcp": fastmcp, "langchain": langchain, "openai-agents": openai_agents}


async def main() -> None:
    names = CLIENTS[sys.argv[1]]()
    print("ready", flush=True)
    listed = await names(json.loads(await asyncio.to_thread(sys.stdin.readline)))
    print(json.dumps(listed), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
