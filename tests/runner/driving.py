"""A runner as a real child process, spoken to line by line. Reads are bounded: nothing here waits for ever."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

WAIT_S = 10
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
HEAD = """
from __future__ import annotations
import asyncio, os, subprocess, sys, threading
from msgspec import Struct
from pactgate import Call, Retryable, ToolError, tool
query = dict(category="query", idempotent=True, effects=[])
"""

PROGRAM = """
from pactgate.runner import __main__, process
process.LOOK_EVERY_S = 0.1
raise SystemExit(__main__.main())
"""
"""The runner, which looks at its files ten times a second."""


def write_tools(folder: Path, body: str, name: str = "kit.py") -> Path:
    """A file of tools with the usual imports; `query` holds the words of a tool that does nothing."""
    new = folder / f"{name}.new"
    new.write_text(HEAD + body, encoding="utf-8")
    return new.replace(folder / name)  # at one blow: a runner may look at it at any moment


class Driven:
    """One runner. `told` are the notifications that came meanwhile."""

    def __init__(self, file: Path, *options: str, is_legacy: bool = True) -> None:
        command = [sys.executable, "-P", "-c", PROGRAM, *options, str(file)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self._stdin, self._stdout, self._stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self._last_id = 0
        self._unread = b""
        self.told: list[dict[str, Any]] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.code: int | None = None
        self.stderr = ""
        if is_legacy:
            client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            assert "result" in self.ask("initialize", client)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Driven:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.code is not None:
            return
        self._stdin.close()
        try:
            self.code = self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.stderr = self._stderr.read().decode()
            self._stdout.close()
            self._stderr.close()

    def send(self, message: Any) -> None:
        self._stdin.write(json.dumps(message).encode() + b"\n")
        self._stdin.flush()

    def read(self) -> dict[str, Any]:
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._stdout], [], [], WAIT_S)
            assert ready, "the runner says nothing"
            chunk = os.read(self._stdout.fileno(), 65536)
            assert chunk, "the runner has hung up"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.told.append(message)
        else:
            self.answers[message["id"]] = message
        return message

    def start(self, method: str, params: dict[str, Any]) -> int:
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def answer(self, identity: int) -> dict[str, Any]:
        while identity not in self.answers:
            self.read()
        return self.answers[identity]

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.start(method, params or {}))

    def begin(self, tool: str, **arguments: Any) -> int:
        return self.start("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.answer(self.begin(tool, **arguments))["result"]
        return result

    def cancel(self, identity: int) -> None:
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})

    def hear(self, method: str) -> dict[str, Any]:
        """The first notification of this kind, waited for if need be."""
        while True:
            for message in self.told:
                if message["method"] == method:
                    self.told.remove(message)
                    return message
            self.read()


def operations(result: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result["_meta"]["dev.pactgate/operations"]
    return found


def error(result: dict[str, Any]) -> dict[str, Any]:
    assert result["isError"]
    found: dict[str, Any] = result["_meta"]["dev.pactgate/error"]
    return found


def modern(**params: Any) -> dict[str, Any]:
    return {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
