"""An MCP server over stdio whose definitions are in a JSON file, read again at every list; run as a child process by tests.

Arguments: the era (legacy or modern), and the file: tools, prompts, resources, resourceTemplates, instructions, name, and extra, which
are members beside a list.
The tool `say_changed` sends `list_changed`; every other call is answered with the name of the tool and written to `FILE.calls`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(state: dict[str, Any], method: str, params: dict[str, Any], era: str, calls: Path) -> dict[str, Any] | None:
    about = {
        "capabilities": {"tools": {"listChanged": era == "legacy"}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": state.get("name", "lockable"), "version": "1"},
        "instructions": state.get("instructions", "Be brief."),
    }
    if method == "initialize" and era == "legacy":
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "server/discover" and era == "modern":
        return {"supportedVersions": [MODERN], **about, "ttlMs": 0, "cacheScope": "private"}
    if method in LISTS:
        return {LISTS[method]: state.get(LISTS[method], []), **(state.get("extra", {}))}
    if method == "tools/call":
        with calls.open("a") as file:
            file.write(params["name"] + "\n")
        if params["name"] == "say_changed":
            send(method="notifications/tools/list_changed")
        return {"content": [{"type": "text", "text": params["name"]}], "structuredContent": {}}
    if method == "prompts/get":
        said = {"type": "text", "text": f"Hello {(params.get('arguments') or {}).get('who')}"}
        return {"messages": [{"role": "user", "content": said}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "held"}]}
    return {} if method == "ping" else None


def main() -> None:
    era, file = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        state = json.loads(file.read_text())
        params = message.get("params") or {}
        result = answer(state, message["method"], params, era, file.with_suffix(".calls"))
        if result is None:
            send(id=message["id"], error={"code": -32601, "message": "no such method"})
        else:
            send(id=message["id"], result={**({"resultType": "complete"} if era == "modern" else {}), **result})


if __name__ == "__main__":
    main()
