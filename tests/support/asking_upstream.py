"""A stdio server whose tools ask their caller, run as a child process by tests: the JSON in its first argument sets its manners.

Options: era (legacy, modern), log (a file that gets one line per received message), extra (one more tool
for clients that declare a capability). Tools: ask {method, params, times, together}
says what it was answered (also a prompt and a resource); caps says which capabilities it was told; hold {ms} takes its time after
asking; later asks after it has answered; retry answers with a state alone three times; strange asks what nobody offered; forever
asks without end; refuse {code, data}.

As `stdio_upstream.py`, it imports little; a legacy call, which may wait, has a thread of its own.
"""

from __future__ import annotations

import json
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODERN = "2026-07-28"
CC = "io.modelcontextprotocol/clientCapabilities"
PV = "io.modelcontextprotocol/protocolVersion"
TOOLS = ("ask", "caps", "hold", "later", "retry", "strange", "forever", "refuse")
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class Server:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.is_modern = options.get("era") == "modern"
        self.declared: dict[str, Any] = {}
        self.answers: dict[str, Any] = {}
        self.cancelled: set[Any] = set()
        self.asked = 0
        self.heard = threading.Condition()

    def tools(self) -> tuple[str, ...]:
        return (*TOOLS, "extra") if self.options.get("extra") and self.declared else TOOLS

    def send(self, **message: Any) -> None:
        with self.heard:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def take(self, line: str) -> None:
        message = json.loads(line)
        if "log" in self.options:
            with open(self.options["log"], "a") as file:
                file.write(line)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            with self.heard:
                self.answers[id_] = message.get("result", message.get("error"))
                self.heard.notify_all()
        elif method == "notifications/cancelled":
            with self.heard:
                self.cancelled.add(params["requestId"])
                self.heard.notify_all()
        elif id_ is not None:
            self.serve(method, id_, params)

    def serve(self, method: str, id_: Any, params: dict[str, Any]) -> None:
        about: dict[str, Any] = {"capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
        info = {"name": "asking", "version": "1"}
        listed: dict[str, dict[str, Any]] = {
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools()]},
            "prompts/list": {"prompts": [{"name": "ask"}]},
            "resources/list": {"resources": [{"uri": "ask:ask", "name": "ask"}]},
            "resources/templates/list": {"resourceTemplates": []},
        }
        if method == "server/discover" and self.is_modern:
            self.send(id=id_, result={"resultType": "complete", "supportedVersions": [MODERN], **about})
        elif method == "initialize" and not self.is_modern:
            self.declared = params["capabilities"]
            self.send(id=id_, result={"protocolVersion": params["protocolVersion"], "serverInfo": info, **about})
        elif method in listed:
            self.send(id=id_, result={**listed[method], **({"resultType": "complete"} if self.is_modern else {})})
        elif method in ("tools/call", "prompts/get", "resources/read"):
            if self.is_modern:
                self.run(method, id_, params)
            else:
                threading.Thread(target=self.run, args=(method, id_, params), daemon=True).start()
        else:
            self.send(id=id_, error={"code": -32601, "message": "Method not found"})

    def run(self, method: str, id_: Any, params: dict[str, Any]) -> None:
        name = params.get("name") or "ask"
        arguments = params.get("arguments") or {}
        if name == "refuse":
            error = {"code": arguments["code"], "message": "refused", "data": arguments.get("data")}
            self.send(id=id_, error=error)
            return
        if self.is_modern:
            told = params["_meta"].get(CC)
            result = self.round(name, arguments, params) or self.say(method, self.outcome(name, params, told))
            self.send(id=id_, result=result)
            return
        said = self.declared if name == "caps" else self.put(id_, name, arguments)
        self.send(id=id_, result=self.say(method, said))
        if name == "later":
            self.question("elicitation/create", FORM)

    def outcome(self, name: str, params: dict[str, Any], told: Any) -> Any:
        return told if name == "caps" else list((params.get("inputResponses") or {}).values())

    def round(self, name: str, arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any] | None:
        state, answers = params.get("requestState"), params.get("inputResponses") or {}
        if name == "retry":
            number = int(state or 0)
            return None if number == 3 else {"resultType": "input_required", "requestState": str(number + 1)}
        if name == "caps" or (answers and name != "forever"):
            if name != "caps" and state != "precious":
                raise SystemExit(f"the state came back as {state!r}")
            return None
        method = "sampling/createMessage" if name == "strange" else arguments.get("method", "elicitation/create")
        asked = {"method": method, "params": arguments.get("params", FORM)}
        return {"resultType": "input_required", "inputRequests": {"q": asked}, "requestState": "precious"}

    def put(self, id_: Any, name: str, arguments: dict[str, Any]) -> Any:
        if name == "later":
            return "soon"
        method, params = arguments.get("method", "elicitation/create"), arguments.get("params", FORM)
        times = arguments.get("times", 1)
        if arguments.get("together"):
            said = self.answered(id_, [self.question(method, params) for _ in range(times)])
        else:
            said = [self.answered(id_, [self.question(method, params)])[0] for _ in range(times)]
        self.wait(id_, [""], arguments.get("ms", 0) / 1000)
        return said

    def question(self, method: str, params: Any) -> str:
        with self.heard:
            self.asked += 1
            asked = f"q{self.asked}"
            self.send(id=asked, method=method, params=params)
        return asked

    def answered(self, id_: Any, questions: list[str]) -> list[Any]:
        self.wait(id_, questions)
        return [self.answers.pop(question) for question in questions]

    def wait(self, id_: Any, questions: list[str], timeout_s: float | None = None) -> None:
        """Until all of these are answered; the thread of a cancelled call ends."""
        with self.heard:
            self.heard.wait_for(lambda: id_ in self.cancelled or self.answers.keys() >= set(questions), timeout_s)
        if id_ in self.cancelled:
            sys.exit()

    def say(self, method: str, what: Any) -> dict[str, Any]:
        text = json.dumps(what)
        block = {"type": "text", "text": text}
        shaped: dict[str, Any] = {"content": [block]}
        if method == "prompts/get":
            shaped = {"messages": [{"role": "user", "content": block}]}
        elif method == "resources/read":
            shaped = {"contents": [{"uri": "ask:ask", "text": text}]}
        return {**shaped, **({"resultType": "complete"} if self.is_modern else {})}


server = Server(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
for received in sys.stdin.buffer:
    server.take(received.decode())
