"""`pactgate serve`: run the gateway until it is told to stop.

The first SIGINT or SIGTERM stops gracefully, the second one at once. Nothing is bound or started before the configuration is known to be
valid. Must not: import an HTTP client or anything else that a serving process does not need.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pactgate.app import Gateway, build
from pactgate.cli.allocator import keep_large_buffers, search_garbage_rarely
from pactgate.cli.announce import Announcer, announces_on, near_address, write_token
from pactgate.cli.config_file import find_config, load_config, show_warnings
from pactgate.cli.errors import CommandError
from pactgate.cli.log import install_log, loop_factory, set_level
from pactgate.cli.reload import Reloader
from pactgate.cli.run_folder import run_folder
from pactgate.cli.running_gateways import RunningGateway, announced, runtime_folder, temporary_folder
from pactgate.cli.shared_options import config_option
from pactgate.config.model import Config
from pactgate.config.sections.state import KEY_VARIABLE
from pactgate.core.events import (
    ConfigurationChanged,
    ConfigurationReloaded,
    ConsoleOpened,
    Event,
    InternalFailure,
)
from pactgate.core.failures import GatewayFailure
from pactgate.core.masking import Mask
from pactgate.inbound.console_sessions import OPERATOR
from pactgate.policy.access import ADMINISTRATOR

MAX_REPLICAS: Final = 64


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@config_option
@click.option("--stdio", is_flag=True, help="Serve one client on stdin and stdout instead of HTTP.")
@click.option("--host", metavar="HOST", help="Address to listen on. Default 127.0.0.1.")
@click.option("--port", type=int, metavar="PORT", help="Port to listen on. Default 7411; 0 takes a free one.")
@click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error. Default info.")
@click.option("--view", metavar="NAME", help="With --stdio: serve this view of the configuration.")
@click.option(
    "--replicas",
    type=click.IntRange(1, MAX_REPLICAS),
    metavar="N",
    help="Run N gateways on one port, for a quick try of several. They share what `state` says.",
)
@click.option("--is-replica", type=click.Choice(["auto", "text"]), hidden=True)
@click.option(
    "--admin", is_flag=True, help="With --stdio: let the client, and the model behind it, manage the gateway."
)
def serve(
    *,
    file: str | None,
    config: str | None,
    stdio: bool,
    host: str | None,
    port: int | None,
    log_level: str | None,
    replicas: int | None,
    is_replica: str | None,
    view: str | None,
    admin: bool,
) -> int:
    """Run the gateway. Without a configuration it serves a demo.

    FILE is a Python file of tools; it is served alone, without a configuration.
    """
    if file is not None:
        from pactgate.cli.tools_file import require_python_file, tools_server  # only a file of tools needs it

        require_python_file(file)
        if config is not None:
            raise CommandError("Give a file of tools or --config, not both.", "A configuration has `tools` for this.")
    _require_fitting(stdio=stdio, admin=admin, view=view, replicas=replicas)
    path = find_config(config) if file is None else None
    flags: dict[str, Any] = {"listen.host": host, "listen.port": port, "log.level": log_level}
    if is_replica is not None:
        shared = {"listen.reusePort": True, "state.key": f"${{{KEY_VARIABLE}}}", "console.enabled": False}
        flags |= shared if is_replica == "auto" else {**shared, "log.format": is_replica}
    settings = load_config(path, flags)
    if replicas is not None:
        from pactgate.cli.serve_replicas import serve_replicas  # only the process that starts them needs it

        return serve_replicas(replicas, _words(file, path, host, log_level), settings)
    scope = None
    if file is not None:
        alone = tools_server(file)
        scope, settings = alone.id, msgspec.structs.replace(settings, servers={alone.id: alone})
    if view is not None and view not in settings.views:
        raise CommandError(f"There is no view {view!r}.", f"Views: {', '.join(settings.views) or 'none'}.")
    if is_replica is None:
        show_warnings(settings)
    keep_large_buffers()
    search_garbage_rarely()
    with ExitStack() as stack:
        if path is None and scope is None:
            from pactgate.cli.demo import demo  # only the demo needs it

            recorded = stack.enter_context(run_folder(temporary_folder()))
            capture = msgspec.structs.replace(settings.capture, dir=str(recorded))
            settings = msgspec.structs.replace(settings, servers=stack.enter_context(demo()), capture=capture)
        runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
        serving = _Serving(
            settings,
            path,
            flags,
            scope=scope,
            view=view,
            is_stdio=stdio,
            is_admin=admin,
            is_replica=is_replica is not None,
        )
        return runner.run(serving.run())


def _require_fitting(*, stdio: bool, admin: bool, view: str | None, replicas: int | None) -> None:
    """Raise where options contradict each other."""
    if admin and not stdio:
        raise CommandError("--admin needs --stdio.", "Over HTTP, give a token the role admin in the configuration.")
    if view is not None and not stdio:
        raise CommandError("--view needs --stdio.", "Over HTTP, the view has a path: /mcp/v/NAME.")
    if replicas is not None and stdio:
        raise CommandError("--replicas is for HTTP; --stdio serves one client.")


def _words(file: str | None, path: Path | None, host: str | None, log_level: str | None) -> list[str]:
    """The arguments of each replica, without the port."""
    options = {"--config": path, "--host": host, "--log-level": log_level}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return words if file is None else [*words, file]


def _write_token(token: str, folder: Callable[[], Path]) -> str:
    try:
        return write_token(token, folder())
    except OSError as error:
        message = f"Clients need a token, and the one for this run can't be written to a file: {error.strerror}."
        hint = "Configure one under auth.tokens, or start the gateway on a terminal, which shows it."
        raise CommandError(message, hint, exit_code=1) from None


class _Serving:
    """One run of the gateway, from the first line of output to the last."""

    def __init__(
        self,
        config: Config,
        path: Path | None,
        flags: dict[str, Any],
        *,
        scope: str | None,
        view: str | None,
        is_stdio: bool,
        is_admin: bool,
        is_replica: bool = False,
    ) -> None:
        self._is_replica = is_replica
        self._config = config
        self._path = path
        self._flags = flags
        self._is_stdio = is_stdio
        self._scope = scope
        self._view = view
        self._roles = ADMINISTRATOR if is_admin else frozenset[str]()
        self._is_demo = path is None and scope is None
        self._stop = asyncio.Event()
        self._why_stopped = "asked to"
        stream = sys.stderr if is_stdio else sys.stdout
        self._announcer: Announcer | None = None
        self._token_file: str | None = None
        self._link_file: str | None = None
        self._secrets = ExitStack()
        self._secrets_folder = cache(lambda: self._secrets.enter_context(run_folder(runtime_folder())))
        if announces_on(stream, is_stdio=is_stdio) and not is_replica:
            self._announcer = Announcer(stream, self._last_error, Mask(config.secrets))
        install_log(config, is_announced=self._announcer is not None)
        self._gateway: Gateway = build(config, emit=self._emit, owns_process=True)
        if scope is not None:  # who writes tools sees what they print
            self._gateway.observers.server_logs.shown_always = (scope,)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_fault)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        if self._is_replica:
            loop.add_reader(sys.stdin.fileno(), self._on_parent_gone)
        try:
            await self._gateway.open_audit()
            if not self._is_stdio:
                self._gateway.http.open_keys()
        except GatewayFailure as failure:
            raise CommandError(failure.message, exit_code=1) from None
        watching = self._watch_file(loop)
        try:
            return await (self._serve_stdio() if self._is_stdio else self._serve_http())
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait({watching})
            with self._secrets:
                await self._gateway.stop(reason=self._why_stopped)

    def _watch_file(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
        if self._path is None:
            return None
        reloader = Reloader(self._gateway, self._path, self._flags, self._gateway.report)
        loop.add_signal_handler(signal.SIGHUP, reloader.ask)
        self._gateway.on_look_again = reloader.ask
        return asyncio.create_task(reloader.run(), name="watching the configuration")

    async def _serve_http(self) -> int:
        try:
            address = await self._gateway.serve_http()
        except GatewayFailure as failure:
            hint = "If a gateway is running already, `pactgate status` shows it."
            self._why_stopped = f"can't listen: {failure.message}"
            raise CommandError(f"Can't listen: {failure.message}.", hint, exit_code=1) from None
        if self._gateway.http.generated_token is not None and not sys.stdout.isatty():
            self._token_file = _write_token(self._gateway.http.generated_token, self._secrets_folder)
        self._write_link()
        config = None if self._path is None else str(self._path.resolve())
        listen = self._config.listen
        gateway = RunningGateway(
            url=near_address(address),
            pid=os.getpid(),
            config=config,
            certificate=None if listen.tls is None else listen.tls.certificate,
            socket=listen.socket,
        )
        with announced(gateway):
            self._welcome(address)  # whoever reads the address may use commands at once
            await self._gateway.start()
            await self._stop.wait()
            await asyncio.sleep(self._gateway.drain())
        return 0

    async def _serve_stdio(self) -> int:
        if sys.stdin.isatty():
            print(
                "Waiting for MCP messages on stdin, as a client sends them. Ctrl-D ends it.",
                file=sys.stderr,
                flush=True,
            )
        await self._gateway.start(connects=False)
        frontend = asyncio.create_task(self._gateway.serve_stdio(self._scope, view=self._view, roles=self._roles))
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({frontend, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (frontend, stop):
            task.cancel()
        await asyncio.wait({frontend, stop})
        if not frontend.cancelled():
            frontend.result()
        return 0

    def _welcome(self, address: str) -> None:
        if self._announcer is not None:
            self._announcer.welcome(
                address,
                is_demo=self._is_demo,
                file=self._config.file,
                token=self._gateway.http.generated_token,
                token_file=self._token_file,
                needs_token=not self._config.allows_anonymous,
                socket=self._config.listen.socket,
                console=self._gateway.http.console_link,
                console_file=self._link_file,
            )

    def _write_link(self) -> None:
        """Like a token, the link is shown on a terminal only; other output ends in logs."""
        link = self._gateway.http.console_link
        if link is None or sys.stdout.isatty():
            return
        with suppress(OSError):  # the console still takes tokens
            if self._link_file is None:
                self._link_file = write_token(near_address(link), self._secrets_folder())
            else:
                Path(self._link_file).write_text(f"{near_address(link)}\n", encoding="ascii")

    def _offer_console(self) -> None:
        link = self._gateway.http.console_link
        self._write_link()
        if self._announcer is not None and link is not None:
            self._announcer.say("Somebody has signed in to the console with the link.")
            self._announcer.offer_console(link, self._link_file)

    def _emit(self, event: Event) -> None:
        if isinstance(event, ConfigurationChanged | ConfigurationReloaded):
            set_level(self._gateway.config)
        if isinstance(event, ConsoleOpened) and event.subject == OPERATOR.key:
            self._offer_console()
        if self._announcer is not None:
            self._announcer.emit(event)

    def _last_error(self, server: str) -> str | None:
        supervisor = self._gateway.connections.servers.get(server)
        return supervisor.last_error_detail if supervisor is not None else None

    def _on_loop_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception that nobody has caught like any other fault, instead of as raw lines on standard error."""
        fault = context.get("exception")
        error = str(context.get("message", "")) if fault is None else repr(fault)
        trace = "" if fault is None else "".join(traceback.format_exception(fault))
        self._gateway.report(InternalFailure("", "event loop", error, trace))

    def _on_parent_gone(self) -> None:
        """Nothing is ever written there: what can be read is the end."""
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        self._stop.set()

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            os._exit(128 + number)  # the second signal: end now; the child reaper ends the children
        self._stop.set()
        if self._announcer is not None:
            self._announcer.say("\nStopping when the running calls have finished. Press Ctrl-C again to stop now.")
