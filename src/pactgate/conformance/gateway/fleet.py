"""The scripted servers of a run: their scripts, the processes of those that listen, and the entries of a gateway's configuration.

`close` ends what was started; a server whose runner dies sees its standard input end, and ends. Must not: know the gateway.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from pactgate.conformance.gateway.script import Scenario, ScriptedPrompt, ScriptedResource, ScriptedTool, ServerScript
from pactgate.conformance.gateway.server_log import ScriptedLogs

_START_S: Final = 20.0
_STOP_S: Final = 3.0
READY: Final = "gwpready_@"
"""The tool of every server by which a run sees that the gateway has connected it."""


class ServerKind(Struct, frozen=True):
    """One scripted server. Its id is what the configuration calls it."""

    id: str
    era: str
    transport: str
    page_size: int = 0


SERVERS: Final[Mapping[str, ServerKind]] = {
    "lh": ServerKind("legacyhttp", "legacy", "http"),
    "mh": ServerKind("modernhttp", "modern", "http"),
    "dh": ServerKind("dualhttp", "both", "http"),
    "ls": ServerKind("legacystdio", "legacy", "stdio"),
    "ms": ServerKind("modernstdio", "modern", "stdio"),
    "pg": ServerKind("pagedhttp", "both", "http", page_size=3),
}
"""By the tag that ends the names of their tools."""


class FleetError(Exception):
    """A scripted server did not start."""


class Fleet:
    """The servers with these tags, offering what these checks bring."""

    def __init__(self, folder: Path, checks: Collection[type[Scenario]], tags: Iterable[str]) -> None:
        self.folder = folder
        self.tags = tuple(tags)
        self.logs = ScriptedLogs(folder)
        self.urls: dict[str, str] = {}
        self._processes: list[asyncio.subprocess.Process] = []
        for tag in self.tags:
            script = msgspec.to_builtins(script_of(tag, checks, str(folder / f"record.{tag}")))
            self._script(tag).write_text(json.dumps(script), encoding="ascii")

    async def start(self) -> None:
        """Start the servers that listen."""
        listening = [tag for tag in self.tags if SERVERS[tag].transport == "http"]
        for tag in listening:
            self._processes.append(
                await asyncio.create_subprocess_exec(
                    *self._command(tag, "http", "0"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
            )
        for tag, process in zip(listening, self._processes, strict=True):
            assert process.stdout is not None
            try:
                port = (await asyncio.wait_for(process.stdout.readline(), _START_S)).strip()
            except TimeoutError:
                port = b""
            if not port:
                raise FleetError(f"The scripted server {SERVERS[tag].id} did not start.")
            self.urls[tag] = f"http://127.0.0.1:{port.decode()}/mcp"

    async def close(self) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except TimeoutError:
                process.kill()
                await process.wait()

    def entries(self) -> dict[str, dict[str, Any]]:
        """The servers in the common form of configurations."""
        return {SERVERS[tag].id: self._entry(tag) for tag in self.tags}

    def _entry(self, tag: str) -> dict[str, Any]:
        if SERVERS[tag].transport == "http":
            return {"url": self.urls[tag]}
        command, *arguments = self._command(tag, "stdio")
        return {"command": command, "args": arguments}

    def _command(self, tag: str, *transport: str) -> list[str]:
        return [sys.executable, "-I", "-m", "pactgate.conformance.gateway.server", str(self._script(tag)), *transport]

    def _script(self, tag: str) -> Path:
        return self.folder / f"script.{tag}.json"


def script_of(tag: str, checks: Collection[type[Scenario]], record: str) -> ServerScript:
    """What one server offers: the tool by which it is seen, and what the checks bring for it."""
    return ServerScript(
        tag=tag,
        era=SERVERS[tag].era,
        page_size=SERVERS[tag].page_size,
        record=record,
        tools=(ScriptedTool(READY), *(entry for check in checks for entry in check.tools if _is_on(tag, check, entry))),
        prompts=tuple(entry for check in checks for entry in check.prompts if _is_on(tag, check, entry)),
        resources=tuple(entry for check in checks for entry in check.resources if _is_on(tag, check, entry)),
    )


def _is_on(tag: str, check: type[Scenario], entry: ScriptedTool | ScriptedPrompt | ScriptedResource) -> bool:
    return tag in (entry.servers or check.servers)
