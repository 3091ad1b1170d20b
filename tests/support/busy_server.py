"""A small MCP server over stdio that does what a server does: run with a JSON object of what to touch.

`look` says that it only reads: it reads `file`, connects to `port`, sends a datagram and starts a program. `change` writes a file
beside `file`; nobody may call it unasked. Needs nothing but the standard library.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

PLAN = json.loads(sys.argv[1])
SCHEMA: dict[str, Any] = {"type": "object"}
TOOLS = [
    {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
    {"name": "change", "inputSchema": SCHEMA},
]


def look() -> str:
    text = Path(PLAN["file"]).read_text()
    with socket.create_connection(("127.0.0.1", PLAN["port"]), 5):
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", PLAN["port"]))
    subprocess.run(["/bin/echo", "hello"], check=True, stdout=subprocess.DEVNULL)
    return text


def change() -> str:
    Path(PLAN["file"]).with_name("made.txt").write_text("x")
    return "changed"


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "busy", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": {"look": look, "change": change}[params["name"]]()}]}
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = result_of(message["method"], message.get("params") or {})
            outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
