"""FastMCP as a gateway: `python fastmcp_proxy.py PORT UPSTREAM_URL default|shared`, run by FastMCP's own environment.

`default` is the documented way: a proxy made from the URL, which opens a client for each request. `shared` is the fastest
setting known to us: one connected client for all requests, no sessions, JSON responses. FastMCP's documentation warns that all
clients then share one session with the server.
"""

from __future__ import annotations

import asyncio
import sys

from fastmcp import Client
from fastmcp.server import create_proxy


async def serve(port: int, upstream: str, setting: str) -> None:
    place = {"transport": "http", "host": "127.0.0.1", "port": port, "path": "/mcp"}
    quiet = {"show_banner": False, "log_level": "WARNING"}
    if setting == "default":
        await create_proxy(upstream).run_http_async(**place, **quiet)
        return
    async with Client(upstream) as client:
        await create_proxy(client).run_http_async(**place, **quiet, stateless_http=True, json_response=True)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
