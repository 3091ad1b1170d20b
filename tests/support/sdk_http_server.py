"""A server of the official SDK over HTTP, as a program: `python sdk_http_server.py streamable|json|sse`. Prints its port."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("official", log_level="ERROR")


@server.tool()
async def add(a: int, b: int, ctx: Context) -> int:
    """Add two numbers, and say so on the way."""
    await ctx.report_progress(1, 2, "half way")
    return a + b


async def serve(kind: str) -> None:
    app = server.sse_app() if kind == "sse" else server.streamable_http_app(json_response=kind == "json")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([listening])


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
