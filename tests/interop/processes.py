"""Programs the interop tests start: upstreams, the gateway, client drivers. Each is ended by whoever started it."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.interop.raw import RawCaller

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
HERE = Path(__file__).resolve().parent
PYTHON = sys.executable
GATEWAY = [PYTHON, "-c", "from pactgate.cli.main import main; main()"]
MCP1_PYTHON = TOOLS / "mcp1" / "bin" / "python"
CLIENTS_FOLDER = TOOLS / "clients"
NODE_FOLDER = TOOLS / "node"
NODE = NODE_FOLDER / "node"
SERVERS_FOLDER = TOOLS / "servers"

START_S = 25.0
STOP_S = 5.0
_POLL_S = 0.03


class Program:
    """A child process with its output in a file, for the moment something goes wrong."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait, bounded, until the condition holds; a program that ended or never got there fails with what it said."""
        ticks = threading.Event()
        for _ in range(int(START_S / _POLL_S)):
            if condition():
                return
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode} before {what}:\n{self.said()}")
            ticks.wait(_POLL_S)
        raise AssertionError(f"not within {START_S:.0f} s: {what}:\n{self.said()}")

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_S)


class Fleet:
    """Upstreams side by side and one gateway in front of them; all ended together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: list[Program] = []
        self._ports: dict[int, Program] = {}
        self._servers: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.stop()

    def add(self, name: str, command: Sequence[str | Path], path: str | None, **settings: str) -> None:
        """One upstream: started here when it has a path to listen on (its port is the last argument), else by the gateway."""
        words = [str(word) for word in command]
        if path is None:
            self._servers[name] = {"command": words[0], "args": words[1:], "cwd": str(ROOT), **settings}
            return
        port = free_port()
        self._ports[port] = Program([*words, str(port)], self._folder / f"{name}.log")
        self._programs.append(self._ports[port])
        self._servers[name] = {"url": f"http://127.0.0.1:{port}{path}", **settings}

    def add_again(self, name: str, like: str, **settings: str) -> None:
        """The same running upstream under another name and other settings."""
        url = self._servers[like]["url"]
        self._servers[name] = {"url": url, **settings}

    def started(self) -> dict[str, dict[str, Any]]:
        """The settings of all upstreams, as soon as those that have to listen do."""
        for port, program in self._ports.items():
            program.wait_until(lambda port=port: listens(port), "it listens")  # type: ignore[misc]
        return self._servers

    def start_gateway(
        self, tool: str | Mapping[str, str], settings: Mapping[str, object] | None = None
    ) -> tuple[Program, str]:
        """The gateway and its address without a path, as soon as it lists this tool (of each its own) of every upstream."""
        servers = self.started()
        port, config = free_port(), self._folder / "pactgate.json"
        defaults = {"rateLimits": {"enabled": False}}
        config.write_text(json.dumps({"mcpServers": servers, **defaults, **(settings or {})}))
        command = [*GATEWAY, "serve", "--config", str(config), "--port", str(port)]
        gateway, address = Program(command, self._folder / "gateway.log"), f"http://127.0.0.1:{port}"
        self._programs.append(gateway)
        tools = dict.fromkeys(self._servers, tool) if isinstance(tool, str) else tool
        wanted = {f"{server}__{tools[server]}" for server in self._servers}
        gateway.wait_until(lambda: listens(port) and wanted <= _listed(address), "the gateway lists every server")
        return gateway, address


def _listed(address: str) -> set[str]:
    caller = RawCaller(f"{address}/mcp", "modern")
    try:
        return {tool["name"] for tool in json.loads(caller.request("tools/list"))["tools"]}
    finally:
        caller.close()


def free_port() -> int:
    """Below the range from which outgoing connections take theirs, so that none of them gets it before its server does."""
    for _ in range(200):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port on 127.0.0.1")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
