"""A small legacy MCP server whose answers are hostile: run with `python -I -S`. Needs nothing but the standard library.

It repeats the secrets of its environment in errors, answers with megabytes, and with keys that stand twice. `hold` is answered together
with the next `number`, in one write, after it; until then whoever reads the named pipe `MARK` learns that it has come.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MEGABYTES_7 = 7_000_000
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = ("ok", "number", "hold", "repeat", "large_error", "large_message", "large_misfit", "twice", "twice_inside")
held: list[bytes] = []


def write(*lines: bytes) -> None:
    data = b"".join(line + b"\n" for line in lines)
    while data:
        data = data[os.write(1, data) :]


def result(id_: Any, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": members}, separators=(",", ":")).encode()


def error(id_: Any, message: str, data: Any) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": id_, "error": {"code": -32000, "message": message, "data": data}}
    ).encode()


def secrets_of(environment: Any) -> dict[str, Any]:
    return {"n": int(environment["ACCOUNT_ID"]), "given": environment["PW"], environment["PW"]: [environment["PW"]]}


def call(id_: Any, name: str) -> None:
    number, password = int(os.environ["ACCOUNT_ID"]), os.environ["PW"]
    if name == "ok":
        write(result(id_, content=[{"type": "text", "text": "fine"}], structuredContent={"n": 1}))
    elif name == "hold":
        held.append(result(id_, content=[{"type": "text", "text": "held"}], structuredContent={"n": 1}))
        os.close(os.open(os.environ["MARK"], os.O_WRONLY))
    elif name == "number":
        write(error(id_, "boom", {"n": number}), *held)
        held.clear()
    elif name == "repeat":
        write(error(id_, f"bad {password}", secrets_of(os.environ)))
    elif name == "large_error":
        write(error(id_, "large", [1] * (MEGABYTES_7 // 3)))
    elif name == "large_message":
        write(error(id_, "x" * MEGABYTES_7, None))
    elif name == "large_misfit":
        write(result(id_, content=[], structuredContent={"x": ["ab"] * (MEGABYTES_7 // 5)}))
    elif name == "twice":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"isError":true,"isError":false}}' % id_)
    else:
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"n":1,"n":2}}}' % id_)


def answer(message: dict[str, Any]) -> None:
    method, id_, params = message["method"], message.get("id"), message.get("params") or {}
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}
        about = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "hostile", "version": "1"}}
        write(result(id_, capabilities=capabilities, **about))
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": OUTPUT} for name in TOOLS]
        write(result(id_, tools=tools))
    elif method == "prompts/list":
        write(result(id_, prompts=[{"name": "greet"}]))
    elif method == "resources/list":
        write(result(id_, resources=[{"uri": "memo://one", "name": "one"}]))
    elif method == "tools/call":
        call(id_, params["name"])
    elif id_ is not None:
        write(error(id_, f"bad {os.environ['PW']}", secrets_of(os.environ)))


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        answer(json.loads(line))
