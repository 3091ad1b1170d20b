"""MCP clients: where each keeps its servers, and how it writes them."""
