"""An MCP server over stdio that changes while it runs, in the era its first argument names; run as a child process by tests.

Tools: `add {name}` (a new tool, and the notice of it), `add_quietly {name}`, `touch {uri}` (the resource was updated),
`say {level, text}` (a log message), `steps` (progress), `heard` (what it was sent so far), `end_listens`, `crash`, `later` (a task).
Prompts, resources and completions say and step too, where `_meta` asks.
Second argument, JSON: hints (members beside what is listed and read), discover (the same of discovery), deaf (no listChanged, no
subscribe), no_ack (URIs it does not tell of), mute (URIs it never answers a subscription to), capabilities (more of them), methods
(which it answers with their params).
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}


MUTE: dict[str, Any] = {"never": "sent"}


class Server:
    def __init__(self, era: str, options: dict[str, Any]) -> None:
        self.is_modern = era == "modern"
        self.options = options
        self.hints = options.get("hints", {})
        names = ("add", "add_quietly", "touch", "say", "steps", "heard", "end_listens", "crash", "later")
        self.tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        self.heard: list[dict[str, Any]] = []
        self.watched: set[str] = set()
        self.listens: dict[Any, dict[str, Any]] = {}
        self.level = 9

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def capabilities(self) -> dict[str, Any]:
        able = not self.options.get("deaf")
        changes = {"listChanged": True} if able else {}
        return {
            "tools": changes,
            "prompts": changes,
            "resources": {**changes, **({"subscribe": True} if able else {})},
            "completions": {},
            "logging": {},
            **self.options.get("capabilities", {}),
        }

    def take(self, line: str) -> None:
        message = json.loads(line)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method not in LISTS:
            self.heard.append({"method": method, "params": params})
        if method == "notifications/cancelled":
            self.listens.pop(params["requestId"], None)
        if id_ is None or method is None:
            return
        is_enveloped = f"{PREFIX}protocolVersion" in (params.get("_meta") or {})
        if is_enveloped != self.is_modern:
            self.send(
                id=id_,
                error={
                    "code": -32022 if self.is_modern else -32600,
                    "message": "another era",
                    "data": {"supported": [MODERN]},
                },
            )
            return
        result = self.answer(method, id_, params)
        if result is None:
            self.send(id=id_, error={"code": -32601, "message": f"no method {method}"})
        elif method != "subscriptions/listen" and result is not MUTE:
            self.send(id=id_, result={**({"resultType": "complete"} if self.is_modern else {}), **result})

    def answer(self, method: str, id_: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "server/discover":
            hints = self.options.get("discover", {"ttlMs": 0, "cacheScope": "private"})
            return {"supportedVersions": [MODERN], "capabilities": self.capabilities(), **hints}
        if method == "initialize":
            about = {"capabilities": self.capabilities(), "serverInfo": {"name": "changing", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **about}
        if method == "subscriptions/listen":
            self.listen(id_, params["notifications"])
            return {}
        if method in ("resources/subscribe", "resources/unsubscribe"):
            if params["uri"] in self.options.get("mute", []):
                return MUTE
            (self.watched.add if method.endswith("/subscribe") else self.watched.discard)(params["uri"])
            return {}
        if method == "logging/setLevel":
            self.level = LEVELS.index(params["level"])
            return {}
        return self.offer(method, id_, params)

    def offer(self, method: str, id_: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        listed: dict[str, Any] = {
            "tools/list": {"tools": self.tools},
            "prompts/list": {"prompts": [{"name": "poem"}]},
            "resources/list": {"resources": [{"uri": uri, "name": uri} for uri in ("data://a", "data://b")]},
            "resources/templates/list": {"resourceTemplates": []},
        }
        if method in self.options.get("methods", []):
            return {"echoed": params}
        if method in listed:
            return {**listed[method], **self.hints}
        if method == "tools/call":
            return self.call(params["name"], params.get("arguments") or {}, params)
        self.on_the_way(params)
        if method == "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": "a poem"}}]}
        if method == "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "held"}], **self.hints}
        return {"completion": {"values": ["one"]}} if method == "completion/complete" else None

    def listen(self, id_: Any, wanted: dict[str, Any]) -> None:
        honoured = dict(wanted)
        uris = [uri for uri in wanted.get("resourceSubscriptions", []) if uri not in self.options.get("no_ack", [])]
        if "resourceSubscriptions" in wanted:
            honoured["resourceSubscriptions"] = uris
        self.listens[id_] = honoured
        self.tagged(id_, "notifications/subscriptions/acknowledged", {"notifications": honoured})

    def tagged(self, id_: Any, method: str, params: dict[str, Any]) -> None:
        self.send(method=method, params={**params, "_meta": {f"{PREFIX}subscriptionId": id_}})

    def on_the_way(self, params: dict[str, Any]) -> None:
        """Progress where a token asks for it, and one log message of each level."""
        token = (params.get("_meta") or {}).get("progressToken")
        for done in (1, 2):
            if token is not None:
                self.send(method="notifications/progress", params={"progressToken": token, "progress": done})
        self.say("debug", "fine print", params)
        self.say("warning", "careful", params)

    def say(self, level: str, text: str, params: dict[str, Any]) -> None:
        asked = (params.get("_meta") or {}).get(f"{PREFIX}logLevel")
        lowest = (LEVELS.index(asked) if asked else 9) if self.is_modern else self.level
        if LEVELS.index(level) >= lowest or (not self.is_modern and self.level == 9):
            self.send(method="notifications/message", params={"level": level, "data": text})

    def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        if name == "crash":
            os._exit(7)
        if name in ("add", "add_quietly"):
            self.tools.append({"name": arguments["name"], "inputSchema": {"type": "object"}})
        if name == "add":
            self.changed("tools")
        elif name == "touch":
            self.touched(arguments["uri"])
        elif name == "say":
            self.say(arguments["level"], arguments["text"], params)
        elif name == "steps":
            self.on_the_way(params)
        elif name == "end_listens":
            for id_ in tuple(self.listens):
                self.send(id=id_, result={"resultType": "complete", "_meta": {f"{PREFIX}subscriptionId": id_}})
            self.listens.clear()
        if name == "later":
            handle = {"taskId": "t1", "status": "working"}
            self.send(method="notifications/tasks/status", params=handle)
            return {**handle, "resultType": "task"} if self.is_modern else {"task": handle}
        said = json.dumps(self.heard) if name == "heard" else name
        return {"content": [{"type": "text", "text": said}]}

    def changed(self, kind: str) -> None:
        method = f"notifications/{kind}/list_changed"
        if not self.is_modern:
            self.send(method=method)
        for id_, wanted in self.listens.items():
            if wanted.get(f"{kind}ListChanged"):
                self.tagged(id_, method, {})

    def touched(self, uri: str) -> None:
        if not self.is_modern and any(uri.startswith(watched) for watched in self.watched):
            self.send(method="notifications/resources/updated", params={"uri": uri})
        for id_, wanted in self.listens.items():
            if any(uri.startswith(watched) for watched in wanted.get("resourceSubscriptions", [])):
                self.tagged(id_, "notifications/resources/updated", {"uri": uri})


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def main() -> None:
    server = Server(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    for line in sys.stdin:
        server.take(line)


if __name__ == "__main__":
    main()
