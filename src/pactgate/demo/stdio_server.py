"""The base of the demo's MCP servers: JSON-RPC lines on standard input and output, and tools made from typed functions.

A tool takes a struct and returns a struct; msgspec makes the JSON schemas from both and validates the arguments. Slow tools run in
threads, so other requests do not wait for them. A cancelled request gets no answer. Must not: decide what a protocol era requires.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
MAX_SLOW_CALLS: Final = 16
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
Json = dict[str, Any]


class RpcError(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message, **({} if data is None else {"data": data})}


class RpcMessage(Struct):
    """A JSON-RPC message, as far as the servers read it. A response has no method, a notification no id."""

    jsonrpc: Literal["2.0"]
    id: str | int | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Json = {}


class OpenCall(NamedTuple):
    """A request in progress: a tool reports its progress here, and sees here that the client has cancelled."""

    send: Callable[[Json], None]
    progress_token: Any
    cancelled: threading.Event

    def report(self, progress: int, total: int) -> None:
        """Send a progress notification, if the client asked for them."""
        if self.progress_token is not None and not self.cancelled.is_set():
            params = {"progressToken": self.progress_token, "progress": progress, "total": total}
            self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


class McpTool(NamedTuple):
    """A function as a tool. Its parameter `given` and its result are structs; a slow one takes a `OpenCall` as well."""

    title: str
    run: Callable[..., Struct]
    writes: bool = False
    is_slow: bool = False

    def definition(self) -> Json:
        hints = get_type_hints(self.run)
        return {
            "name": self.run.__name__,
            "title": self.title,
            "description": self.run.__doc__,
            "inputSchema": _schema(hints["given"]),
            "outputSchema": _schema(hints["return"]),
            "annotations": {"readOnlyHint": not self.writes, "destructiveHint": False, "openWorldHint": False},
        }

    def call(self, arguments: Any, call: OpenCall) -> Json:
        """The result of `tools/call`. Invalid arguments (ValueError) are a result too, so that a model can correct its call."""
        try:
            given = msgspec.convert(arguments, get_type_hints(self.run)["given"])
            result = msgspec.to_builtins(self.run(given, call) if self.is_slow else self.run(given))
        except (msgspec.ValidationError, ValueError) as problem:
            return {"content": [{"type": "text", "text": f"{problem}."}], "isError": True}
        text = msgspec.json.encode(result).decode()
        return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": False}


class StdioServer:
    """Reads messages and writes answers. A subclass adds to `answer` what its protocol era requires."""

    def __init__(self, *tools: McpTool) -> None:
        self._tools = {tool.run.__name__: tool for tool in tools}
        self._slow_calls: dict[str | int, OpenCall] = {}
        self._decoder = msgspec.json.Decoder(RpcMessage)
        self._writing = threading.Lock()

    def answer(self, method: str, params: Json, call: OpenCall) -> Json:
        """The result of a request. Raises RpcError."""
        if method == "tools/list":
            if params.get("cursor") is not None:
                raise RpcError(INVALID_PARAMS, "Unknown cursor; the list has one page.")
            return {"tools": [tool.definition() for tool in self._tools.values()]}
        if method != "tools/call":
            raise RpcError(METHOD_NOT_FOUND, f"Unknown method {method[:64]!r}.")
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool; the tools are: {', '.join(self._tools)}.")
        return tool.call(params.get("arguments", {}), call)

    def serve(self) -> None:
        """Answer line by line until standard input ends, or a line is too long to be held."""
        with suppress(KeyboardInterrupt):
            while line := sys.stdin.buffer.readline(MAX_LINE_BYTES):
                if len(line) == MAX_LINE_BYTES:
                    self._write(None, RpcError(INVALID_REQUEST, "The message is too long."))
                    return
                if line.strip():
                    self._receive(line)

    def _receive(self, line: bytes) -> None:
        try:
            message = self._decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as problem:
            code = INVALID_REQUEST if isinstance(problem, msgspec.ValidationError) else PARSE_ERROR
            self._write(None, RpcError(code, f"Not a JSON-RPC 2.0 message: {problem}."))
            return
        if message.method == "notifications/cancelled":
            for id_, call in tuple(self._slow_calls.items()):
                if id_ == message.params.get("requestId"):
                    call.cancelled.set()
        elif message.method is not UNSET and message.id is not UNSET:
            self._begin(message.id, message.method, message.params)

    def _begin(self, id_: str | int, method: str, params: Json) -> None:
        meta = params.get("_meta")
        call = OpenCall(self._send, meta.get("progressToken") if isinstance(meta, dict) else None, threading.Event())
        tool = self._tools.get(str(params.get("name"))) if method == "tools/call" else None
        if tool is None or not tool.is_slow:
            self._answer(id_, method, params, call)
        elif len(self._slow_calls) >= MAX_SLOW_CALLS:
            self._write(id_, RpcError(INTERNAL_ERROR, f"{MAX_SLOW_CALLS} slow calls are running already."))
        else:
            self._slow_calls[id_] = call  # here and not in the thread: the next line may cancel it
            threading.Thread(target=self._answer, args=(id_, method, params, call), daemon=True).start()

    def _answer(self, id_: str | int, method: str, params: Json, call: OpenCall) -> None:
        try:
            reply: Json | RpcError = self.answer(method, params, call)
        except RpcError as error:
            reply = error
        self._slow_calls.pop(id_, None)
        if not call.cancelled.is_set():
            self._write(id_, reply)

    def _write(self, id_: str | int | None, reply: Json | RpcError) -> None:
        outcome = {"error": reply.body} if isinstance(reply, RpcError) else {"result": reply}
        self._send({"jsonrpc": "2.0", "id": id_, **outcome})

    def _send(self, message: Json) -> None:
        data = msgspec.json.encode(message) + b"\n"
        with self._writing, suppress(BrokenPipeError):  # the client has gone: standard input ends as well
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]


def _schema(kind: type[Struct]) -> Any:
    """The JSON Schema of a struct without nested structs. At its top MCP requires `"type": "object"` and not a reference."""
    return msgspec.json.schema(kind)["$defs"][kind.__name__]
