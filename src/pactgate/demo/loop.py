"""The stdio side of the demo servers: one JSON message a line in, one a line out, until standard input ends.

Quick requests are answered where they are read. What takes time gets a thread, at most `MAX_WAITING` of them,
so that nothing waits for it. A cancelled request is never answered. Must not: know what any method means.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Protocol

from pactgate.demo import rpc
from pactgate.demo.tools import Json

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
MAX_WAITING: Final = 16


class Service(Protocol):
    """The protocol half of a server."""

    def handle(self, method: str, params: Json, exchange: OpenRequest) -> Json:
        """The result, or rpc.RpcError."""

    def takes_time(self, method: str, params: Json) -> bool: ...

    def reads_batches(self) -> bool: ...


class OpenRequest:
    """One request on its way, as `tools.Exchange` describes it."""

    def __init__(self, loop: Loop, token: str | int | None) -> None:
        self._loop = loop
        self._token = token
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    def wait(self, seconds: float) -> bool:
        return self._cancelled.wait(seconds)

    def progress(self, done: int, total: int, message: str) -> None:
        if self._token is not None and not self.is_cancelled:
            params = {"progressToken": self._token, "progress": done, "total": total, "message": message}
            self._loop.write({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


class Loop:
    def __init__(self, service: Service, source: BinaryIO, sink_fd: int) -> None:
        self._service = service
        self._source = source
        self._sink_fd = sink_fd
        self._writing = threading.Lock()
        self._open: dict[str | int, OpenRequest] = {}

    def run(self) -> None:
        for line in _lines(self._source):
            if line is None:
                self.write(_refusal(rpc.INVALID_REQUEST, f"A message may have at most {MAX_LINE_BYTES} bytes."))
            elif line.strip():
                self._take(line)

    def write(self, message: Json | list[Json]) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
        with self._writing:
            while text:
                text = text[os.write(self._sink_fd, text) :]

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode(), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self.write(_refusal(rpc.PARSE_ERROR, "The line is not JSON."))
            return
        if isinstance(message, list) and message and self._service.reads_batches():
            answers = [answer for answer in map(self._answer, message) if answer is not None]
            if answers:
                self.write(answers)
            return
        if isinstance(message, dict) and self._needs_a_thread(message):
            self._start_thread(message)
            return
        answer = self._answer(message)
        if answer is not None:
            self.write(answer)

    def _needs_a_thread(self, message: Json) -> bool:
        params = message.get("params")
        return (
            "id" in message
            and isinstance(params, dict)
            and self._service.takes_time(str(message.get("method")), params)
        )

    def _start_thread(self, message: Json) -> None:
        if len(self._open) >= MAX_WAITING:
            self.write(
                _refusal(rpc.INTERNAL_ERROR, f"{MAX_WAITING} slow calls are running already.", message.get("id"))
            )
            return
        # Registered here and not in the thread: the cancellation may be the very next line.
        request = self._register(message)
        threading.Thread(target=self._run_in_thread, args=(message, request), daemon=True).start()

    def _run_in_thread(self, message: Json, request: OpenRequest) -> None:
        answer = self._answer(message, request)
        if answer is not None:
            try:
                self.write(answer)
            except BrokenPipeError:
                return  # the reader is gone; the main thread sees it too and ends

    def _register(self, message: Json) -> OpenRequest:
        meta = message["params"].get("_meta") if isinstance(message.get("params"), dict) else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        request = OpenRequest(self, token if _is_id(token) else None)
        if _is_id(message.get("id")):
            self._open[message["id"]] = request
        return request

    def _answer(self, message: Any, request: OpenRequest | None = None) -> Json | None:
        """The answer to a request; None for what has none: notifications, answers, cancelled requests."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _refusal(rpc.INVALID_REQUEST, "Send one JSON-RPC 2.0 object a line.")
        method, params = message.get("method"), message.get("params", {})
        if not isinstance(method, str):
            return (
                None
                if "result" in message or "error" in message
                else _refusal(rpc.INVALID_REQUEST, "A request needs a method.")
            )
        if "id" not in message:
            self._notice(method, params)
            return None
        identity = message["id"]
        if not _is_id(identity):
            return _refusal(rpc.INVALID_REQUEST, "An id is a string or a whole number.")
        if not isinstance(params, dict):
            return _refusal(rpc.INVALID_PARAMS, "The params must be an object.", identity)
        request = request or self._register(message)
        try:
            result = self._service.handle(method, params, request)
        except rpc.RpcError as refusal:
            return {"jsonrpc": "2.0", "id": identity, "error": refusal.body}
        finally:
            self._open.pop(identity, None)
        return None if request.is_cancelled else {"jsonrpc": "2.0", "id": identity, "result": result}

    def _notice(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict) and _is_id(params.get("requestId")):
            request = self._open.get(params["requestId"])
            if request is not None:
                request.cancel()


def serve(service: Service, name: str) -> None:
    """Serve standard input and output until the client hangs up."""
    if sys.stdin.isatty():
        print(
            f"{name}: an MCP server on standard input and output. It waits for JSON-RPC lines; Ctrl-D ends it.",
            file=sys.stderr,
        )
    try:
        Loop(service, sys.stdin.buffer, sys.stdout.fileno()).run()
    except (KeyboardInterrupt, BrokenPipeError):
        return


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Each line, or None for one that is too long (which is skipped, never held)."""
    while line := source.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = source.readline(MAX_LINE_BYTES)
        yield None


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _refusal(code: int, message: str, identity: Any = None) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}
