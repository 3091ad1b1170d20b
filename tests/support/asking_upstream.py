"""A stdio server whose tools ask their caller, run as a child process by tests: the JSON in its first argument sets its manners.

Options: era (legacy, modern), log (a file that gets one line per received message), extra (one more tool
for clients that declare a capability). Tools: ask {method, params, times, together}
says what it was answered (also a prompt and a resource); caps says which capabilities it was told; hold {ms} takes its time after
asking; later asks after it has answered; retry answers with a state alone three times; strange asks what nobody offered; forever
asks without end; refuse {code, data}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
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
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self.calls: dict[Any, asyncio.Task[None]] = {}
        self.asked = 0

    def tools(self) -> tuple[str, ...]:
        return (*TOOLS, "extra") if self.options.get("extra") and self.declared else TOOLS

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def take(self, line: str) -> None:
        message = json.loads(line)
        if "log" in self.options:
            with Path(self.options["log"]).open("a") as file:
                file.write(line)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            answer = self.answers.pop(id_, None)
            if answer is not None and not answer.done():
                answer.set_result(message.get("result", message.get("error")))
        elif method == "notifications/cancelled" and params["requestId"] in self.calls:
            self.calls.pop(params["requestId"]).cancel()
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
            self.calls[id_] = asyncio.get_running_loop().create_task(self.run(method, id_, params))
        else:
            self.send(id=id_, error={"code": -32601, "message": "Method not found"})

    async def run(self, method: str, id_: Any, params: dict[str, Any]) -> None:
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
        said = self.declared if name == "caps" else await self.put(name, arguments)
        self.calls.pop(id_, None)
        self.send(id=id_, result=self.say(method, said))
        if name == "later":
            await self.question("elicitation/create", FORM)

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

    async def put(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "later":
            return "soon"
        method, params = arguments.get("method", "elicitation/create"), arguments.get("params", FORM)
        times = arguments.get("times", 1)
        if arguments.get("together"):
            said: Any = await asyncio.gather(*(self.question(method, params) for _ in range(times)))
        else:
            said = [await self.question(method, params) for _ in range(times)]
        await asyncio.sleep(arguments.get("ms", 0) / 1000)
        return said

    async def question(self, method: str, params: Any) -> Any:
        self.asked += 1
        id_ = f"q{self.asked}"
        self.answers[id_] = asyncio.get_running_loop().create_future()
        self.send(id=id_, method=method, params=params)
        return await self.answers[id_]

    def say(self, method: str, what: Any) -> dict[str, Any]:
        text = json.dumps(what)
        block = {"type": "text", "text": text}
        shaped: dict[str, Any] = {"content": [block]}
        if method == "prompts/get":
            shaped = {"messages": [{"role": "user", "content": block}]}
        elif method == "resources/read":
            shaped = {"contents": [{"uri": "ask:ask", "text": text}]}
        return {**shaped, **({"resultType": "complete"} if self.is_modern else {})}


async def main() -> None:
    server = Server(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    reader = asyncio.StreamReader(limit=2**26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        server.take(line.decode())


asyncio.run(main())
