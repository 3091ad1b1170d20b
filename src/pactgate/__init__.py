"""Pactgate: an MCP gateway that keeps its promises."""

__version__ = "0.1.0"
