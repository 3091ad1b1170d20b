"""An upstream on the 2.x line of the official SDK, which serves both eras: `python sdk2.py ID stdio|http [PORT]`."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer


def main() -> None:
    name, transport, *port = sys.argv[1:]
    server = MCPServer(name, log_level="ERROR")

    @server.tool()
    def greet(who: str) -> str:
        """Says hello."""
        return f"hello {who}, this is {name}"

    if transport == "stdio":
        server.run()
    else:
        server.run("streamable-http", port=int(port[0]))


if __name__ == "__main__":
    main()
