"""A lax MCP server over stdio with tasks and a login, in the era its first argument names; run as a child process by tests.

Tools: `echo` (a task if one is asked for), `login {tenant}` and `whoami {wait}` (what this process was told), `pay {amount}` (at most 10,
says its schema). Methods are read without regard to case and white space, as some servers do. `x/...` is answered with its params, `x/slow`
after 0.3 s. Everything carries members of `_meta` that claim to be the gateway's.
"""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from typing import Any

MODERN = "2026-07-28"
FORGED = {"dev.pactgate/page": {"page": 1}, "dev.pactgate/operations": [], "com.example/own": 1}
OPEN: dict[str, Any] = {"type": "object"}
PAID = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}, "required": ["amount"]}
TOOLS = [
    {
        "name": name,
        "inputSchema": PAID if name == "pay" else OPEN,
        "_meta": FORGED,
        "annotations": {"readOnlyHint": True},
    }
    for name in ("echo", "login", "whoami", "pay", "fail")
]
PAGE = 2


class Server:
    def __init__(self, era: str) -> None:
        self.is_modern = era == "modern"
        self.tenant: str | None = None
        self.tasks: dict[str, dict[str, Any]] = {}

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def take(self, line: str) -> None:
        message = json.loads(line)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if id_ is None or method is None:
            return
        is_enveloped = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        if is_enveloped != self.is_modern:
            self.send(id=id_, error={"code": -32600, "message": "another era"})
            return
        result = self.answer(unicodedata.normalize("NFKC", method).casefold().strip(), params)
        if result is None:
            self.send(id=id_, error={"code": -32602, "message": f"upstream knows no {method}", "data": FORGED})
        else:
            self.send(id=id_, result={**({"resultType": "complete"} if self.is_modern else {}), **result})

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        offered: dict[str, Any] = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}}
        offered |= {"tasks": {"list": {}, "cancel": {}}, "extensions": {"x": {}}, "experimental": {"x": {}}}
        known: dict[str, Any] = {
            "server/discover": {"supportedVersions": [MODERN], "capabilities": offered},
            "tools/list": {"tools": TOOLS},
            "resources/list": {"resources": [{"uri": "data://a", "name": "a", "_meta": FORGED}]},
            "resources/read": {"contents": [{"uri": "data://a", "text": str(self.tenant), "_meta": FORGED}]},
            "resources/templates/list": {"resourceTemplates": []},
            "prompts/list": {"prompts": [{"name": "poem", "_meta": FORGED}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "a", "_meta": FORGED}}]},
            "completion/complete": {"completion": {"values": ["one"]}},
        }
        if method == "initialize":
            about = {"capabilities": offered, "serverInfo": {"name": "tasks", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **about}
        if method in known:
            hints = {"ttlMs": 60_000, "cacheScope": "public"} if method == "resources/read" else {}
            return {**known[method], "_meta": FORGED, **hints}
        if method == "tools/call":
            return self.call(params)
        if method in ("resources/subscribe", "resources/unsubscribe"):
            return {}
        if method.startswith("tasks/"):
            return self.on_task(method.removeprefix("tasks/"), params)
        if method == "x/slow":
            time.sleep(0.3)
        return {"echoed": params, "_meta": FORGED} if method.startswith("x/") else None

    def call(self, params: dict[str, Any]) -> dict[str, Any] | None:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "fail":
            return None
        if name == "login":
            self.tenant = arguments["tenant"]
        time.sleep(arguments.get("wait", 0))
        said = {"login": "in", "whoami": str(self.tenant), "pay": "paid"}.get(name, json.dumps(arguments))
        result = {"content": [{"type": "text", "text": said, "_meta": FORGED}], "_meta": FORGED}
        if "task" not in params and not (self.is_modern and name == "echo"):
            return result
        handle = {"taskId": f"task-{len(self.tasks) + 1}", "status": "completed"}
        self.tasks[handle["taskId"]] = {**handle, "result": result}
        self.send(method="notifications/tasks/status", params=handle)
        return {**handle, "resultType": "task"} if self.is_modern else {"task": handle}

    def on_task(self, what: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if what == "list":
            begin = int(params.get("cursor", "0"))
            listed = list(self.tasks.values())
            more = {"nextCursor": str(begin + PAGE)} if begin + PAGE < len(listed) else {}
            return {"tasks": [_handle(task) for task in listed[begin : begin + PAGE]], **more}
        task = self.tasks.get(params.get("taskId", ""))
        if task is None:
            return None
        if what == "cancel":
            task["status"] = "cancelled"
        return dict(task["result"]) if what == "result" else _handle(task)


def _handle(task: dict[str, Any]) -> dict[str, Any]:
    return {"taskId": task["taskId"], "status": task["status"]}


def main() -> None:
    server = Server(sys.argv[1])
    for line in sys.stdin:
        server.take(line)


if __name__ == "__main__":
    main()
