"""Servers of the official SDK over HTTP, one of each kind, as a program: importing the SDK takes longer than most tests.

Prints their ports as JSON: `streamable`, `json` (no streams) and `sse` (the older transport).
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context


async def add(a: int, b: int, ctx: Context) -> int:
    """Add two numbers, and say so on the way."""
    await ctx.report_progress(1, 2, "half way")
    return a + b


async def serve() -> None:
    listening, serving = {}, []
    for kind in ("streamable", "json", "sse"):
        server = MCPServer("official", log_level="ERROR")
        server.tool()(add)
        app = server.sse_app() if kind == "sse" else server.streamable_http_app(json_response=kind == "json")
        listening[kind] = socket.create_server(("127.0.0.1", 0))
        serving.append(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([listening[kind]]))
    print(json.dumps({kind: one.getsockname()[1] for kind, one in listening.items()}), flush=True)
    await asyncio.gather(*serving)


if __name__ == "__main__":
    logging.disable()  # the SDK prints every failed request as a page, which takes it longer than all else
    asyncio.run(serve())
