"""A small MCP server over stdio whose manners are set by the JSON in its first argument; run as a child process by tests.

Options: era (legacy, modern, dual), version (what initialize answers), tools (extra names), pages (tools per page),
definitions (raw tool definitions to list as they are), definitions_file (a file of them,
read for each list), loop_cursor, hang (handshake, list), exit_on_probe,
instructions_file (a file of its instructions), starts_after_s (seconds before it reads anything),
tells_at_start (a file whose text it writes to stderr),
fat {method: {member, pages, entries, bytes, zeros}} (lists that are too large),
starts_while, lists_while (files: it exits with code 9, or refuses its lists, while they are missing),
extra_after (a file: once it exists, a start offers the tool `extra`),
hints (members beside what is read),
prompts, resources, templates (names and URIs it offers), shuffles (another order for each list),
broken_lists (methods whose list is refused),
broken_words (the message of that refusal),
log (a file that gets one line per received message), fail_first {file, times} (exit at once for the first starts).
Tools: echo, wire (the raw line of the request), pid, slow {ms}, crash {last},
mutter {last} (to stderr; listed with `tools`), progress {n}, raw {text}, refuse {code},
change {name, times} (adds a tool and says so).

Hundreds of tests start it, so it imports little: a thread for each call that waits costs less than asyncio costs every start.
"""

from __future__ import annotations

import json
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PV = "io.modelcontextprotocol/protocolVersion"
SI = "io.modelcontextprotocol/serverInfo"
INFO = {"name": "scripted", "version": "1"}
OWN = ("echo", "wire", "slow", "crash", "progress", "raw", "refuse", "change", "pid", "endless")


class Server:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.era = options.get("era", "legacy")
        self.names = [*OWN, *options.get("tools", [])]
        if "extra_after" in options and os.path.exists(options["extra_after"]):
            self.names.append("extra")
        self.capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        if options.get("prompts"):
            self.capabilities |= {"prompts": {}, "completions": {}}
        if options.get("resources") or options.get("templates"):
            self.capabilities["resources"] = {}
        for method in options.get("fat", {}):
            self.capabilities.setdefault(method.split("/")[0], {})
        self.calls: dict[Any, threading.Event] = {}
        self.writing = threading.Lock()
        self.deaf: set[Any] = set()

    def log(self, text: str) -> None:
        if "log" in self.options:
            with open(self.options["log"], "a") as file:
                file.write(text + "\n")

    def write(self, text: str) -> None:
        with self.writing:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def die(self) -> None:
        os._exit(7)

    def instructions(self) -> str:
        file = self.options.get("instructions_file")
        return "Be kind." if file is None else read(file)

    def mutter(self, text: str, *, dies: bool) -> None:
        sys.stderr.write(text + "\n" * bool(text))
        sys.stderr.flush()
        if dies:
            self.die()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def refuse(self, id_: Any, code: int, message: str, data: Any = None) -> None:
        self.send(id=id_, error={"code": code, "message": message, **({"data": data} if data else {})})

    def take(self, line: str) -> None:
        message = json.loads(line)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        self.log(json.dumps({"method": method, "id": id_, "params": params}))
        if method == "notifications/cancelled":
            ended = self.calls.get(params["requestId"])
            if ended is not None and params["requestId"] not in self.deaf:
                ended.set()
        if id_ is None or method is None:
            return
        is_modern = PV in (params.get("_meta") or {})
        if not self.open(method, id_, params, is_modern):
            self.serve(method, id_, params, line, is_modern)

    def open(self, method: str, id_: Any, params: dict[str, Any], is_modern: bool) -> bool:
        hangs = self.options.get("hang") == "handshake"
        if method == "server/discover":
            if self.options.get("exit_on_probe"):
                sys.exit(3)
            if self.era == "legacy":
                self.refuse(id_, -32601, "Method not found")
            elif not hangs:
                about = {"supportedVersions": [MODERN], "capabilities": self.capabilities}
                self.send(
                    id=id_,
                    result={
                        "resultType": "complete",
                        "ttlMs": 0,
                        "cacheScope": "private",
                        **about,
                        "_meta": {SI: INFO},
                    },
                )
            return True
        if method == "initialize":
            if self.era == "modern":
                self.refuse(
                    id_,
                    -32022,
                    "Unsupported protocol version",
                    {"supported": [MODERN], "requested": params.get("protocolVersion")},
                )
            elif not hangs:
                version = self.options.get("version") or params["protocolVersion"]
                about = {
                    "capabilities": self.capabilities,
                    "serverInfo": INFO,
                    "instructions": self.instructions(),
                }
                self.send(id=id_, result={"protocolVersion": version, **about})
            return True
        if is_modern and self.era == "legacy":
            self.refuse(id_, -32600, "an envelope on a legacy connection")
            return True
        return False

    def is_broken(self, method: str) -> bool:
        is_listed = os.path.exists(self.options.get("lists_while", __file__))
        return method in self.options.get("broken_lists", []) or (method.endswith("/list") and not is_listed)

    def serve(self, method: str, id_: Any, params: dict[str, Any], line: str, is_modern: bool) -> None:
        fat = self.options.get("fat", {}).get(method)
        if fat is not None:
            self.send(id=id_, result=self.fat_page(fat, params.get("cursor")))
        elif self.is_broken(method):
            self.refuse(id_, -32603, self.options.get("broken_words", "this list is broken"))
        elif is_invalid(method, params):
            self.refuse(id_, -32602, "Invalid params")
        elif method == "tools/list":
            if self.options.get("hang") != "list":
                self.send(id=id_, result=self.page(params.get("cursor"), is_modern))
        elif method == "tools/call":
            self.go(id_, self.call(id_, params, line))
        else:
            self.offer(method, id_, params)

    def fat_page(self, fat: dict[str, Any], cursor: str | None) -> dict[str, Any]:
        """A page of a list that is too large: `entries` per page, each with a description of `bytes`, then `zeros`."""
        number = int(cursor or 0)
        names = [f"{fat.get('key', 'x')}{number}-{place}" for place in range(fat["entries"])]
        rest = {"inputSchema": {"type": "object"}, "description": "d" * fat["bytes"]}
        result: dict[str, Any] = {
            fat["member"]: [{"name": name, "uri": f"x:{name}", "uriTemplate": f"x:{name}", **rest} for name in names]
        }
        result[fat["member"]] += [0] * fat.get("zeros", 0)
        return result if number + 1 >= fat["pages"] else {**result, "nextCursor": str(number + 1)}

    def offer(self, method: str, id_: Any, params: dict[str, Any]) -> None:
        listed = {name: self.options.get(name, []) for name in ("prompts", "resources", "templates")}
        if self.options.get("shuffles"):
            import random

            listed = {name: random.sample(entries, len(entries)) for name, entries in listed.items()}
        if method == "prompts/list":
            self.send(id=id_, result={"prompts": [{"name": name} for name in listed["prompts"]]})
        elif method == "resources/list":
            self.send(id=id_, result={"resources": [{"uri": uri, "name": uri} for uri in listed["resources"]]})
        elif method == "resources/templates/list":
            templates = [{"uriTemplate": uri, "name": uri} for uri in listed["templates"]]
            self.send(id=id_, result={"resourceTemplates": templates})
        elif method == "prompts/get":
            said = {"role": "user", "content": {"type": "text", "text": json.dumps(params)}}
            self.send(id=id_, result={"messages": [said]})
        elif method == "completion/complete":
            self.send(id=id_, result={"completion": {"values": [json.dumps(params["ref"])]}})
        elif method == "resources/read" and params["uri"] in listed["resources"]:
            held = {"uri": params["uri"], "text": "of " + params["uri"], "odd": None}
            self.send(id=id_, result={"contents": [held], **self.options.get("hints", {})})
        elif method == "resources/read":
            self.refuse(id_, -32002, "Resource not found", {"uri": params["uri"]})
        else:
            self.refuse(id_, -32601, "Method not found")

    def page(self, cursor: str | None, is_modern: bool) -> dict[str, Any]:
        if "definitions_file" in self.options:
            return {"tools": json.loads(read(self.options["definitions_file"]))}
        if self.options.get("shuffles") and cursor is None:
            import random

            random.shuffle(self.names)
        definitions = self.options.get("definitions") or [
            {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}} for name in self.names
        ]
        size, start = self.options.get("pages") or len(definitions), int(cursor or 0)
        result: dict[str, Any] = {"tools": definitions[start : start + size]}
        if self.options.get("loop_cursor"):
            result["nextCursor"] = "0"
        elif start + size < len(definitions):
            result["nextCursor"] = str(start + size)
        return {**result, **({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if is_modern else {})}

    def go(self, id_: Any, steps: Iterator[float]) -> None:
        """Take the steps of a call; with the first wait the next message is read."""
        pause_s = next(steps, None)
        if pause_s is not None:
            self.calls[id_] = ended = threading.Event()
            threading.Thread(target=self.go_on, args=(id_, steps, pause_s, ended), daemon=True).start()

    def go_on(self, id_: Any, steps: Iterator[float], pause_s: float | None, ended: threading.Event) -> None:
        while pause_s is not None and not ended.wait(pause_s):
            pause_s = next(steps, None)
        self.calls.pop(id_, None)

    def call(self, id_: Any, params: dict[str, Any], line: str) -> Iterator[float]:
        """Each step waits for so many seconds."""
        name, arguments = params["name"], params.get("arguments") or {}
        if arguments.get("deaf"):
            self.deaf.add(id_)
        if name == "endless":
            yield from self.tell_for_ever(id_, params)
        elif name.startswith("slow"):
            self.tell_progress((params.get("_meta") or {}).get("progressToken"), arguments.get("progress", 0))
            yield arguments["ms"] / 1000
        elif name in ("crash", "mutter"):
            self.mutter(arguments.get("last", ""), dies=name == "crash")
        elif name == "progress":
            self.tell_progress(params["_meta"]["progressToken"], arguments["n"])
        elif name == "change":
            self.names.append(arguments.get("name", "added"))
            for _ in range(arguments.get("times", 1)):
                self.send(method="notifications/tools/list_changed")
        if name == "refuse":
            self.refuse(id_, arguments["code"], arguments.get("message", "refused"), {"why": "asked to"})
        elif name.startswith("raw"):
            self.write(f'{{"jsonrpc":"2.0","id":{id_},"result":{arguments["text"]}{arguments.get("more", "")}}}')
        else:
            said = {"echo": arguments.get("text", ""), "wire": line, "pid": str(os.getpid())}
            done = {"resultType": "complete"} if PV in (params.get("_meta") or {}) else {}
            self.send(id=id_, result={"content": [{"type": "text", "text": said.get(name, name)}], **done})

    def tell_for_ever(self, id_: Any, params: dict[str, Any]) -> Iterator[float]:
        """Progress and log messages without end; a caller that wants none still gets the messages' weight on the wire."""
        token = (params.get("_meta") or {}).get("progressToken", id_)
        for done in range(10**9):
            self.tell_progress(token, 1)
            self.send(method="notifications/message", params={"level": "info", "data": done})
            yield 0.001

    def tell_progress(self, token: Any, count: int) -> None:
        for done in range(count):
            told = {"progressToken": token, "progress": done + 1, "message": "on"}
            self.send(method="notifications/progress", params=told)


def is_invalid(method: str, params: dict[str, Any]) -> bool:
    """What a probe sends on purpose: a cursor that was not given out, members of a wrong type, a tool that does not exist."""
    if method.endswith("/list"):
        cursor = params.get("cursor", "0")
        return not isinstance(cursor, str) or not cursor.isdigit()
    named = params.get("uri" if method == "resources/read" else "name", "")
    is_unknown = method == "tools/call" and str(named).startswith("pactgate-probe")
    return not isinstance(named, str) or is_unknown


def read(file: str) -> str:
    with open(file) as opened:
        return opened.read()


def starts(counter: str) -> int:
    with open(counter, "a") as file:
        file.write("x")
    return os.path.getsize(counter)


def begin(options: dict[str, Any]) -> None:
    if "fail_first" in options and starts(options["fail_first"]["file"]) <= options["fail_first"]["times"]:
        sys.exit(9)
    if "tells_at_start" in options and os.path.exists(options["tells_at_start"]):
        sys.stderr.write(read(options["tells_at_start"]))
    if not os.path.exists(options.get("starts_while", __file__)):
        sys.exit(9)
    threading.Event().wait(options.get("starts_after_s", 0))


def main() -> None:
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    begin(options)
    server = Server(options)
    for line in sys.stdin.buffer:
        server.take(line.decode())
    sys.stderr.flush()
    os._exit(0)  # calls that still wait are not waited for


if __name__ == "__main__":
    main()
