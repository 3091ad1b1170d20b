"""`pactgate serve --workers N`: the owner's side of it, from a good configuration to the end of the last worker.

A first SIGINT or SIGTERM has every worker finish what it does, a second one ends all at once. Must not: serve anybody itself.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.announce import Announcer
from pactgate.cli.log import make_telemetry
from pactgate.cli.reload import Reloader
from pactgate.config.model import Config
from pactgate.core import events
from pactgate.core.display import Mask
from pactgate.core.events import Event, GatewayStarted, GatewayStopped
from pactgate.core.failures import GatewayFailure
from pactgate.workers import listening
from pactgate.workers.homes import MAX_WORKERS, unshareable
from pactgate.workers.owner import Owner

_MOST_SEEN: Final = 1000
COMMAND: Final = (sys.executable, "-P", "-m", "pactgate.cli.worker")
"""Without the working directory on the path of modules: what lies about there is not to be imported."""


def why_not(config: Config, count: int, *, is_stdio: bool) -> tuple[str, str] | None:
    """What is wrong with so many workers here, and what to do; None where nothing is."""
    if not 1 <= count <= MAX_WORKERS:
        return f"--workers takes a number from 1 to {MAX_WORKERS}.", "One for each core is a good start."
    if count == 1:
        return None
    if is_stdio:
        return "--workers does not go with --stdio.", "There is one client then, and one worker serves one client."
    if not listening.can_share():
        return "--workers needs Linux.", "Leave it out: one process serves on every system."
    problem = unshareable(config, count)
    return None if problem is None else (f"--workers {count}: {problem}.", "Every worker needs a part of that bound.")


class Owning:
    """One run of the owner, from its first line to its last."""

    def __init__(self, config: Config, path: Path | None, flags: dict[str, Any], *, count: int, is_demo: bool) -> None:
        self._config = config
        self._path = path
        self._flags = flags
        self._count = count
        self._is_demo = is_demo
        self._stop = asyncio.Event()
        self._errors: dict[str, str | None] = {}
        self._announcer = Announcer(sys.stdout, self._errors.get, Mask(config.secrets))
        self._telemetry = make_telemetry(config, is_announced=True)
        self._owner: Owner | None = None
        self._failure: str | None = None
        self._seen: list[Event] | None = []
        """What happened before there was anything to announce it under."""

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        listen = self._config.listen
        try:
            sockets = listening.bind(listen.host, listen.port)
        except GatewayFailure as failure:
            terminal.problem(f"Can't listen: {failure.message}.", "`pactgate status` asks a gateway that runs already.")
            return 1
        token = secrets.token_urlsafe(32) if self._config.needs_token else None
        address = listening.url_of(sockets[0])
        self._owner = Owner(
            self._config,
            sockets,
            self._count,
            command=COMMAND,
            token=token,
            emit=self._emit,
            on_told=self._on_told,
        )
        try:
            self._owner.start()
        except OSError as problem:
            terminal.problem(f"The workers can't be started: {problem.strerror}.")
            await self._owner.stop()
            return 1
        watching = self._watch_file(loop, self._owner)
        try:
            return await self._serve(self._owner, address, token)
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait({watching})
            await self._owner.stop()
            self._emit(GatewayStopped("asked to"))

    async def _serve(self, owner: Owner, address: str, token: str | None) -> int:
        ready = asyncio.create_task(owner.ready())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({ready, stop}, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            self._announcer.welcome(
                address,
                is_demo=self._is_demo,
                file=self._config.file,
                token=token,
                needs_token=not self._config.allows_anonymous,
            )
            self._emit(GatewayStarted(address, len(self._config.servers)))
            seen, self._seen = self._seen or [], None
            for event in seen:
                self._announcer.emit(event)
            await stop
        ready.cancel()
        stop.cancel()
        await asyncio.wait({ready, stop})
        if self._failure is not None:
            terminal.problem(self._failure)
            return 1
        return 0

    def _watch_file(self, loop: asyncio.AbstractEventLoop, owner: Owner) -> asyncio.Task[None] | None:
        if self._path is None:
            return None
        reloader = Reloader(owner, self._path, self._flags, self._emit)
        loop.add_signal_handler(signal.SIGHUP, reloader.ask)
        return asyncio.create_task(reloader.run(), name="watching the configuration")

    def _on_told(self, name: str, worker: int, body: Any) -> None:
        """A worker that could not start at all says why; what the first one sees of the servers is announced."""
        if name == "failed":
            if self._failure is None:
                self._failure = body
            self._stop.set()
            return
        kind, facts, error = body
        self._errors[facts.get("server", "")] = error
        event: Event = getattr(events, kind)(**facts)
        if self._seen is None:
            self._announcer.emit(event)
        elif len(self._seen) < _MOST_SEEN:
            self._seen.append(event)

    def _emit(self, event: Event) -> None:
        self._telemetry.emit(event)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            if self._owner is not None:
                self._owner.kill()
            os._exit(128 + number)  # asked twice: at once, and the children's guardian ends them
        self._stop.set()
        self._announcer.say("\nStopping: calls under way may finish. Once more to end at once.")
