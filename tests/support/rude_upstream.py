"""A legacy MCP server over stdio that serves everything, also what it should refuse; run as a child process by tests."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {
    "name": "tell.all",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "anyOf": [{}], "properties": {"what": {"type": "string"}}},
}
TOOLS = [TOOL, {**TOOL, "name": "tell"}]


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            id_ = message["id"] if isinstance(message["id"], int) else 0
            print(json.dumps({"jsonrpc": "2.0", "id": id_, **answer(message)}), flush=True)


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        if params["protocolVersion"] < "2024":
            return {"error": {"code": -32603, "message": "too old"}}
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "rude", "version": "1"}}
        return {"result": {"protocolVersion": params["protocolVersion"], **about}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "as you like"}]}}
    return {"error": {"code": -32603, "message": "what?"}}


if __name__ == "__main__":
    main()
