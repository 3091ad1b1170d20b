"""Commands about one server without a gateway: `pactgate tools -- CMD`, `pactgate call NAME -- CMD`.

The server is put behind a gateway of its own, in a thread of this process and for this command alone, so that what is shown is what every
gateway shows. Only this process reaches it, by a token of its own. The server inherits the environment of this process, as any program
that is started from a shell. Must not: read a configuration.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from pactgate.app import Gateway, build
from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.live_target import label, target_of
from pactgate.cli.terminal import without_name
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import legal_id
from pactgate.policy.access import ADMINISTRATOR, shown_row

_TOKEN_BYTES: Final = 24
_LIMIT_MS: Final = 60_000
"""Package runners fetch what they start."""


class _DirectClient(GatewayClient):
    """Shows one server alone, under its own names."""

    def __init__(self, address: str, token: str, server: str) -> None:
        super().__init__(address, token)
        self._server = server

    def rows(self, name: str, *, wanted: str = "") -> list[dict[str, Any]]:
        rows = [row for row in super().rows(name, wanted=wanted) if row.get("serverId") == self._server]
        return [{**row, "exposedName": row["toolName"]} if "toolName" in row else row for row in rows]

    def ask(self, method: str, params: Any, **more: Any) -> dict[str, Any]:
        return super().ask(method, params, **{**more, "server": self._server})


@contextmanager
def direct_client(words: Sequence[str]) -> Iterator[GatewayClient]:
    """The client of a gateway with nothing but this server, which is connected. Raises CommandError with the reason where it can't be."""
    target = target_of(words, ())
    name = label(target)
    server = ServerConfig(id=legal_id(name.rpartition("/")[2]), max_retries=0, connection_timeout_ms=_LIMIT_MS)
    if target.url is None:
        command, *args = target.command
        server = replace(server, command=command, args=tuple(args), env=dict(os.environ), cwd=os.getcwd())
    else:
        server = replace(server, url=target.url)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    config = Config(
        servers={server.id: server},
        listen=ListenSection(port=0),
        auth=Auth(tokens={"cli": Token(token=token, roles=("admin",))}),
        rate_limits=RateLimits(enabled=False),
    )
    run = _Run(config)
    try:
        with terminal.spinner(f"connecting to {name}"):
            trouble = run.wait()
        if trouble is not None:
            raise CommandError(f"{name} can't be used: {without_name(server.id, trouble)}", exit_code=1)
        yield _DirectClient(run.address, token, server.id)
    finally:
        run.stop()


class _Run:
    """A gateway in a thread of its own."""

    def __init__(self, config: Config) -> None:
        self.address = ""
        self._config = config
        self._settled = threading.Event()
        self._trouble: str | None = "the gateway did not start"
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._thread.start()

    def wait(self) -> str | None:
        """Why the server can't be used, once that is known; None where it can."""
        self._settled.wait()
        return self._trouble

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(build(self._config, lambda event: None)))

    async def _serve(self, gateway: Gateway) -> None:
        try:
            self.address = await gateway.serve_http()
            await gateway.start()
            (result,) = (await gateway.discover()).server_results
            row = shown_row(gateway.connections.rows()[0], ADMINISTRATOR)
            self._trouble = None if result.status == "success" else str(row["lastError"] or result.error)
            self._settled.set()
            await self._stop.wait()
        finally:
            await gateway.stop(grace_s=0)
            self._settled.set()
