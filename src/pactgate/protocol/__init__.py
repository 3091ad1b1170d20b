"""MCP without I/O: messages, revisions, admission, headers, framing, correlation.

Imports nothing of ours and nothing that waits.
"""
