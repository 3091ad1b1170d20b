"""Servers we call: channels over child processes and HTTP, and the MCP client session on top of them."""
