"""A demo server as a real child process, spoken to line by line. Reads are bounded: nothing here waits for ever."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from types import TracebackType
from typing import Any

WAIT_S = 5
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}


class Child:
    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", f"pactgate.demo.{name}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self._stdin, self._stdout, self._stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self._last_id = 0
        self._unread = b""

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stdin.close()
        try:
            code = self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            problems = self._stderr.read()
            self._stdout.close()
            self._stderr.close()
        if error is None:
            assert (code, problems) == (0, b"")

    def write(self, text: bytes) -> None:
        self._stdin.write(text + b"\n")
        self._stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode())

    def read(self) -> Any:
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._stdout], [], [], WAIT_S)
            assert ready, "the server says nothing"
            chunk = os.read(self._stdout.fileno(), 65536)
            assert chunk, "the server has hung up"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def start(self, method: str, params: dict[str, Any]) -> int:
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, whole."""
        identity = self.start(method, params)
        answer: dict[str, Any] = self.read()
        assert answer["id"] == identity
        return answer


def legacy() -> Child:
    """The almanac, after the handshake."""
    child = Child("almanac")
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    assert child.ask("initialize", client)["result"]["protocolVersion"] == "2025-11-25"
    child.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return child


def modern(**params: Any) -> dict[str, Any]:
    """Params in the modern envelope."""
    return {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
