"""A legacy-only upstream on the 1.x line of the official SDK: `python sdk1.py ID stdio|http|sse [PORT]`.

Runs in an environment of its own (.tools/mcp1); the project's has the 2.x line.
"""

from __future__ import annotations

import sys

from mcp.server.fastmcp import FastMCP


def main() -> None:
    name, transport, *port = sys.argv[1:]
    server = FastMCP(name, log_level="ERROR", port=int(port[0]) if port else 8000)

    @server.tool()
    def greet(who: str) -> str:
        """Says hello."""
        return f"hello {who}, this is {name}"

    server.run({"stdio": "stdio", "http": "streamable-http", "sse": "sse"}[transport])


if __name__ == "__main__":
    main()
