"""`pactgate learn SERVER`: run a server under strace, use it, and propose the `effects` that allow what it did.

The gateway connects, lists the tools, and calls every read-only tool that needs no arguments. With `--for` it also serves the server at
an address of its own for some time. Must not: change the configuration.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.cli import terminal
from pactgate.cli.completions import server_ids
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.interruption import until_interrupted
from pactgate.cli.shared_options import config_option, json_option
from pactgate.config.model import Config
from pactgate.config.sections.effects import Effects
from pactgate.config.sections.listen import ListenSection
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

_CALL_MS: Final = 10_000
_MAX_CALLS: Final = 50
_CONNECT_MS: Final = 60_000
_CHUNK_BYTES: Final = 65_536


@click.command(epilog="Example: pactgate learn files --for 60")
@click.argument("server", shell_complete=server_ids)
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(0, 3600),
    default=0,
    metavar="SECONDS",
    help="Also serve it alone for this time, to be used by a client.",
)
@config_option
@json_option
def learn(*, server: str, for_s: float, config: str | None, as_json: bool) -> int:
    """Run a server under observation (strace) and propose the effects for its entry in the configuration.

    SERVER is the id of a server that the gateway starts with a command.
    """
    found = _find_server(server, config)
    strace = shutil.which("strace")
    if strace is None:
        raise CommandError("strace is not installed.", "Install the package strace.", exit_code=1)
    report = asyncio.run(_ObservedRun(found, strace, for_s).run())
    if as_json:
        terminal.say_json(report)
        return 0
    for line in (*report["session"], *report["notes"]):
        print(flat(line, 500), file=sys.stderr)
    terminal.say_json({"mcpServers": {server: {"effects": report["effects"]}}})
    return 0


def _find_server(server_id: str, config: str | None) -> ServerConfig:
    servers = load_config(find_config(config)).servers
    server = servers.get(server_id)
    if server is None:
        raise CommandError(
            f"There is no server {server_id!r} in the configuration.", f"Servers: {', '.join(servers) or 'none'}."
        )
    if server.command is None:
        raise CommandError(f"{server_id} has no command.", "Only a program that the gateway starts can be observed.")
    return server


class _ObservedRun:
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
            # Both ends stay open here, so that the trace does not end when the server exits or starts late.
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
        config = Config(servers={server.id: watched}, listen=ListenSection(port=0))
        async with Gateway.open(config) as gateway:
            report = await gateway.discover()
            for row in report.server_results:
                if row.error:
                    raise CommandError(f"{server.id} failed under observation: {row.error}", exit_code=1)
            await self._call_read_only_tools(gateway)
            if self._for_s:
                await self._serve(gateway)

    async def _call_read_only_tools(self, gateway: Gateway) -> None:
        tools = list(gateway.connections.unfiltered.tools.entries())
        harmless = [tool for tool in tools if tool.traits.is_read_only and not _needs_arguments(tool.definition)]
        for tool in harmless[:_MAX_CALLS]:
            envelope = await gateway.invoke(tool.full_name, {}, timeout_ms=_CALL_MS)
            outcome = "answered" if envelope["success"] else envelope["error"]["code"]
            self._session.append(f"called {tool.full_name}: {outcome}")
        left = len(tools) - len(harmless[:_MAX_CALLS])
        if left:
            self._session.append(
                f"skipped {left} of {len(tools)} tools, which may change something or need arguments; use --for"
            )

    async def _serve(self, gateway: Gateway) -> None:
        address = await gateway.serve_http()
        print(f"Use it at {address}/mcp for {self._for_s:.0f} s, or until Ctrl-C.", file=sys.stderr, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(until_interrupted(), self._for_s)

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
            raise CommandError(f"{server.command} was not found.", exit_code=1)
        uses_network = bool(seen.connect or seen.bind or seen.sockets)
        always = rules_of(Effects(sockets=uses_network), program)
        effects = propose_effects(
            seen,
            always_read=always.read,
            always_write=SYSTEM_WRITE,
            always_list=always.lists,
            exists=os.path.exists,
        )
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
