"""`pactgate serve`: from options to a gateway that runs until it is asked to stop.

A first SIGINT or SIGTERM stops gracefully, a second one ends at once. Nothing is bound or started before the configuration is known to be
good. Must not: import typer, rich or a client; a gateway pays for them in start time and memory.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from pactgate.app import Gateway, build
from pactgate.cli import terminal
from pactgate.cli.allocator import keep_large_buffers, search_garbage_rarely
from pactgate.cli.announce import Announcer, announces_on
from pactgate.cli.check import show_problems, show_warnings
from pactgate.cli.log import loop_factory, make_telemetry
from pactgate.cli.options import ServeOptions
from pactgate.cli.reload import Reloader
from pactgate.cli.tools_file import tools_server, unfit_file
from pactgate.config.load import find, load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigurationError
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import Mask
from pactgate.core.events import ConfigurationReloaded, Event
from pactgate.core.failures import GatewayFailure
from pactgate.policy.access import ADMINISTRATOR


def run(options: ServeOptions) -> int:
    if options.file is not None and (wrong := unfit_file(options)):
        terminal.problem(wrong)
        return 2
    if options.admin and not options.stdio:
        terminal.problem(
            "--admin goes with --stdio.", "Over HTTP a token with the role admin says who may manage the gateway."
        )
        return 2
    try:
        path = Path(options.config) if options.config is not None else _usual_file(options)
        flags = {"listen.host": options.host, "listen.port": options.port, "log.level": options.log_level}
        config = load(path, environ=os.environ, overrides=flags)
    except ConfigurationError as error:
        show_problems(error)
        return 2
    scope = None
    if options.file is not None:
        alone = tools_server(options.file)
        scope, config = alone.id, msgspec.structs.replace(config, servers={alone.id: alone})
    show_warnings(config)
    keep_large_buffers()
    search_garbage_rarely()
    with ExitStack() as stack:
        if path is None and scope is None:
            config = msgspec.structs.replace(config, servers=_demo(stack))
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        serving = _Serving(config, path, flags, scope=scope, is_stdio=options.stdio, is_admin=options.admin)
        return runner.run(serving.run())


def _usual_file(options: ServeOptions) -> Path | None:
    """Who names a file of tools wants that, whatever lies in the folder."""
    return None if options.file is not None else find(Path.cwd(), os.environ)


def _demo(stack: ExitStack) -> dict[str, ServerConfig]:
    # Imported here: a gateway with a configuration has servers of its own.
    from pactgate.cli.demo import API, DemoApi, demo_servers

    api = DemoApi()
    stack.callback(api.close)
    return {**demo_servers(), API: api.server()}


class _Serving:
    """One run of the gateway, from its first line to its last."""

    def __init__(
        self,
        config: Config,
        path: Path | None,
        flags: dict[str, Any],
        *,
        scope: str | None,
        is_stdio: bool,
        is_admin: bool,
    ) -> None:
        self._config = config
        self._path = path
        self._flags = flags
        self._is_stdio = is_stdio
        self._scope = scope
        self._roles = ADMINISTRATOR if is_admin else frozenset[str]()
        self._is_demo = path is None and scope is None
        self._stop = asyncio.Event()
        stream = sys.stderr if is_stdio else sys.stdout
        self._announcer: Announcer | None = None
        if announces_on(stream, is_stdio=is_stdio):
            self._announcer = Announcer(stream, self._last_error, Mask(config.secrets))
        self._telemetry = make_telemetry(config, is_announced=self._announcer is not None)
        self._gateway: Gateway = build(config, emit=self._emit)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await self._gateway.open_audit()
        except GatewayFailure as failure:
            terminal.problem(failure.message)
            return 1
        watching = self._watch_file(loop)
        try:
            return await (self._serve_stdio() if self._is_stdio else self._serve_http())
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait({watching})
            await self._gateway.stop()

    def _watch_file(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
        if self._path is None:
            return None
        reloader = Reloader(self._gateway, self._path, self._flags, self._emit)
        loop.add_signal_handler(signal.SIGHUP, reloader.ask)
        return asyncio.create_task(reloader.run(), name="watching the configuration")

    async def _serve_http(self) -> int:
        try:
            address = await self._gateway.serve_http()
        except GatewayFailure as failure:
            terminal.problem(f"Can't listen: {failure.message}.", "`pactgate status` asks a gateway that runs already.")
            return 1
        self._welcome(address)
        await self._gateway.start()
        await self._stop.wait()
        return 0

    async def _serve_stdio(self) -> int:
        await self._gateway.start()
        face = asyncio.create_task(self._gateway.serve_stdio(self._scope, roles=self._roles))
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({face, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (face, stop):
            task.cancel()
        await asyncio.wait({face, stop})
        if not face.cancelled():
            face.result()
        return 0

    def _welcome(self, address: str) -> None:
        if self._announcer is not None:
            self._announcer.welcome(
                address,
                is_demo=self._is_demo,
                file=self._config.file,
                token=self._gateway.generated_token,
                needs_token=not self._config.allows_anonymous,
            )

    def _emit(self, event: Event) -> None:
        if isinstance(event, ConfigurationReloaded):
            self._telemetry.hide((*self._config.secrets, *self._gateway.config.secrets))
        self._telemetry.emit(event)
        if self._announcer is not None:
            self._announcer.emit(event)

    def _last_error(self, server: str) -> str | None:
        supervisor = self._gateway.connections.servers.get(server)
        return supervisor.last_error if supervisor is not None else None

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            os._exit(128 + number)  # asked twice: at once, and the child reaper ends the children
        self._stop.set()
        if self._announcer is not None:
            self._announcer.say("\nStopping: calls under way may finish. Once more to end at once.")
