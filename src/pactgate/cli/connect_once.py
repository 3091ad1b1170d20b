"""One visit to every enabled server: connect once, list what it offers, leave. Shows a sign of life on a terminal.

The gateway's own way of connecting is used, so that what is seen here is what `serve` would meet. An attempt and the listing
after it are both bounded by `connectionTimeoutMs`. Everything that was started has ended when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pactgate.app import build
from pactgate.catalog.conflicts import Conflict, find_conflicts
from pactgate.config.model import Config
from pactgate.config.sections.audit import Audit
from pactgate.config.server_settings import ServerConfig
from pactgate.core import events
from pactgate.core.events import Event

Tell = Callable[[str], None]
_ANSWERS: Final = (events.ServerDiscovered, events.ServerFailed, events.DiscoveryFailed)
_NAMED: Final = 3


class Visit(NamedTuple):
    """The state of each server as `/api/servers` would show it, and what they do to each other."""

    rows: list[dict[str, Any]]
    hazards: tuple[Conflict, ...]


async def visit(config: Config, tell: Tell | None = None) -> Visit:
    news = _News((server.id for server in config.servers.values() if server.enabled), tell)
    brief = {id_: _once(server) for id_, server in config.servers.items()}
    gateway = build(replace(config, servers=brief, audit=Audit()), news)  # the log belongs to the gateway that serves
    await gateway.start()
    try:
        report = await gateway.discover()
        errors = {result.server_id: result.error for result in report.server_results if result.status == "error"}
        rows = [
            {**row, "lastError": row["lastError"] or errors.get(row["serverId"])} for row in gateway.connections.rows()
        ]
        return Visit(rows, find_conflicts(gateway.connections.catalog))
    finally:
        if tell is not None:
            tell("leaving the servers")
        await gateway.stop()


def _once(server: ServerConfig) -> ServerConfig:
    limit_ms = min(server.request_timeout_ms, server.connection_timeout_ms)
    return replace(server, max_retries=0, request_timeout_ms=limit_ms)


class _News:
    """Who has not answered yet, told to whoever waits."""

    def __init__(self, servers: Iterable[str], tell: Tell | None) -> None:
        self._waiting = dict.fromkeys(servers)
        self._count = len(self._waiting)
        self._tell = tell
        self._say()

    def __call__(self, event: Event) -> None:
        if isinstance(event, _ANSWERS) and event.server in self._waiting:
            del self._waiting[event.server]
            self._say()

    def _say(self) -> None:
        if self._tell is None or not self._waiting:
            return
        names = ", ".join(list(self._waiting)[:_NAMED]) + (", …" if len(self._waiting) > _NAMED else "")
        self._tell(f"{self._count - len(self._waiting)} of {self._count} servers answered, waiting for {names}")
