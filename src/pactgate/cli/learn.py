"""`pactgate learn SERVER`: runs a server under strace, exercises it, and proposes the `effects` that would have allowed what it did.

The session is the gateway's own: connect, list, call every tool that says it only reads and needs no arguments; with `--for` the server is
also served at an address of its own for a while, for a person to use. Nothing of the configuration is changed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.cli import terminal
from pactgate.cli.check import show_problems
from pactgate.config.load import find, load
from pactgate.config.model import Config, Listen
from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.effects import Effects
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import flat
from pactgate.protocol import messages
from pactgate.upstreams.process.child import child_environment
from pactgate.upstreams.process.executable import resolve_executable
from pactgate.upstreams.process.sandbox import SYSTEM_WRITE, rules_of
from pactgate.upstreams.process.strace import (
    MAX_LINE_CHARS,
    STRACE,
    ObservedEffects,
    StraceParser,
    notes_on,
    propose_effects,
)

_WRONG: Final = 2
_CALL_MS: Final = 10_000
_MAX_CALLS: Final = 50
_CONNECT_MS: Final = 60_000
_CHUNK_BYTES: Final = 65_536


class _Refused(Exception):  # noqa: N818 - nothing went wrong
    """Why nothing can be learned, and what to do."""

    def __init__(self, message: str, hint: str, code: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


def learn(server_id: str, *, config_file: str | None, for_s: float, as_json: bool) -> int:
    try:
        server = _server(server_id, config_file)
        strace = shutil.which("strace")
        if strace is None:
            raise _Refused("strace is not installed, and it is what watches.", "Install the package strace.", 1)
        report = asyncio.run(_Lesson(server, strace, for_s).run())
    except ConfigurationError as error:
        show_problems(error)
        return _WRONG
    except _Refused as refused:
        terminal.problem(str(refused), refused.hint)
        return refused.code
    if as_json:
        terminal.say_json(report)
        return 0
    for line in (*report["session"], *report["notes"]):
        print(flat(line, 500), file=sys.stderr)
    terminal.say_json({"mcpServers": {server_id: {"effects": report["effects"]}}})
    return 0


def _server(server_id: str, config_file: str | None) -> ServerConfig:
    path = Path(config_file) if config_file is not None else find(Path.cwd(), os.environ)
    servers = load(path, environ=os.environ).servers if path is not None else {}
    server = servers.get(server_id)
    if server is None:
        known = ", ".join(servers) or "none"
        raise _Refused(f"There is no server {server_id!r} in the configuration.", f"There are: {known}.", _WRONG)
    if server.command is None:
        raise _Refused(f"{server_id} is not a program the gateway starts.", "Only those can be watched.", _WRONG)
    return server


class _Lesson:
    """One run of one server under observation."""

    def __init__(self, server: ServerConfig, strace: str, for_s: float) -> None:
        self._server = server
        self._strace = strace
        self._for_s = for_s
        self._environment = child_environment(server.command or "", server.env, os.environ)
        self._cwd = os.path.abspath(server.cwd or ".")
        self._trace = StraceParser(self._cwd)
        self._rest = b""
        self._session: list[str] = []

    async def run(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="pactgate-learn-") as folder:
            pipe = os.path.join(folder, "trace")
            os.mkfifo(pipe, 0o600)
            # Both ends are ours, so that neither a server that ends nor one that is slow to start is the end of the trace.
            descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            loop = asyncio.get_running_loop()
            loop.add_reader(descriptor, self._read, descriptor)
            try:
                await self._exercise(pipe)
                self._read(descriptor)
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        return self._report(self._trace.seen)

    async def _exercise(self, pipe: str) -> None:
        server = self._server
        assert server.command is not None
        watched = replace(
            server,
            command=self._strace,
            args=(*STRACE, "-o", pipe, "--", server.command, *server.args),
            env=self._environment,
            effects=None,
            enabled=True,
            max_retries=0,
            connection_timeout_ms=_CONNECT_MS,
        )
        config = Config(servers={server.id: watched}, listen=Listen(port=0))
        async with Gateway.open(config) as gateway:
            report = await gateway.discover()
            for row in report.server_results:
                if row.error:
                    raise _Refused(f"{server.id} could not be used under observation: {row.error}", "", 1)
            await self._call_what_only_reads(gateway)
            if self._for_s:
                await self._serve(gateway)

    async def _call_what_only_reads(self, gateway: Gateway) -> None:
        tools = list(gateway.connections.catalog.tools.entries())
        harmless = [tool for tool in tools if tool.traits.is_read_only and not _needs_arguments(tool.definition)]
        for tool in harmless[:_MAX_CALLS]:
            envelope = await gateway.invoke(tool.full_name, {}, timeout_ms=_CALL_MS)
            outcome = "answered" if envelope["success"] else envelope["error"]["code"]
            self._session.append(f"called {tool.full_name}: {outcome}")
        left = len(tools) - len(harmless[:_MAX_CALLS])
        if left:
            self._session.append(
                f"not called, because they may change something or need arguments: {left} of {len(tools)} tools; use --for"
            )

    async def _serve(self, gateway: Gateway) -> None:
        address = await gateway.serve_http()
        print(f"Use it at {address}/mcp for {self._for_s:.0f} s, or until Ctrl-C.", file=sys.stderr, flush=True)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, stop.set)
        try:
            await asyncio.wait_for(stop.wait(), self._for_s)
        except TimeoutError:
            return
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _read(self, descriptor: int) -> None:
        while True:
            try:
                data = os.read(descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[: 4 * MAX_LINE_CHARS]
            for line in lines:
                self._trace.feed(line.decode("ascii", "replace"))

    def _report(self, seen: ObservedEffects) -> dict[str, Any]:
        server = self._server
        assert server.command is not None
        program = resolve_executable((server.command, *server.args), server.cwd, self._environment)
        if program is None:
            raise _Refused(f"{server.command} was not found.", "", 1)
        uses_network = bool(seen.connect or seen.bind or seen.sockets)
        always = rules_of(Effects(sockets=uses_network), program)
        effects = propose_effects(seen, always_read=always.read, always_write=SYSTEM_WRITE, exists=os.path.exists)
        msgspec.convert(effects, Effects)
        return {
            "server": server.id,
            "effects": effects,
            "session": self._session,
            "notes": notes_on(seen, effects),
        }


def _needs_arguments(definition: bytes) -> bool:
    schema: Any = messages.value(definition).get("inputSchema")
    return not isinstance(schema, Mapping) or bool(schema.get("required"))
