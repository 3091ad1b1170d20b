"""An MCP server for the tests of the console: it asks a question, lists thousands of tools, and puts markup into everything it says."""

from __future__ import annotations

import json
import sys
from typing import Any

MARKUP = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg/onload=window.pwned=1>'
    "<a href=\"javascript:window.pwned=1\">link</a> \u202etxt.exe {{constructor.constructor('window.pwned=1')()}}"
)
MANY = 5000
LONG = "x" * 5_000_000
SCHEMA = {"type": "object", "properties": {}}
QUESTION = {
    "message": f"Which colour? {MARKUP}",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "description": MARKUP},
            "nothing": None,
            "either": {"anyOf": [None, {"type": "string"}]},
            "one": {"oneOf": [True]},
        },
        "required": ["colour"],
    },
}
INFO = {"name": MARKUP, "title": MARKUP, "version": "1"}


def main() -> None:
    waiting: dict[str, Any] = {}
    print(f"{MARKUP} \x1b[2J", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            colour = message.get("result", {}).get("content", {}).get("colour")
            reply(waiting.pop(message["id"]), said(f"You chose {colour}."))
        elif "id" in message:
            answer(message, method, waiting)


def answer(message: dict[str, Any], method: str, waiting: dict[str, Any]) -> None:
    id_ = message["id"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        reply(id_, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO})
    elif method == "tools/list":
        reply(id_, {"tools": tools()})
    elif method != "tools/call":
        send({"id": id_, "error": {"code": -32601, "message": f"There is no {method} here."}})
    elif message["params"]["name"] == "long":
        reply(id_, said(LONG))
    elif message["params"]["name"] == "nothing":
        reply(id_, said(""))
    elif message["params"]["name"] == "ask":
        waiting["question"] = id_
        send({"id": "question", "method": "elicitation/create", "params": QUESTION})
    else:
        reply(id_, {**said(MARKUP + LONG), "structuredContent": {MARKUP: MARKUP, "link": "javascript:window.pwned=1"}})


def tools() -> list[dict[str, Any]]:
    endless = {"type": "object", "properties": {f"part_{number}": {"$ref": "#/$defs/part"} for number in range(30)}}
    properties = {"a": {"type": "string", "description": MARKUP}, "b": {"$ref": "#/$defs/part"}}
    hostile = {"type": "object", "title": MARKUP, "properties": properties, "$defs": {"part": endless}}
    named = [
        {"name": "ask", "title": "Ask", "inputSchema": SCHEMA},
        {"name": "long", "inputSchema": SCHEMA},
        {"name": "nothing", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"name": "hostile", "title": MARKUP, "description": MARKUP, "inputSchema": hostile},
    ]
    return [*named, *({"name": f"tool_{number}", "inputSchema": SCHEMA} for number in range(MANY))]


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def reply(id_: Any, result: dict[str, Any]) -> None:
    send({"id": id_, "result": result})


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
