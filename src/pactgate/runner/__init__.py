"""The runner of Python tools: `python -m pactgate.runner notes.py` serves the tools of one file as an MCP server on stdin and stdout.

A process of its own, so that what a tool does wrong, it does alone: it can be killed, put into a sandbox and loaded anew. Knows the
contract and the protocol, and nothing of the gateway.
"""
