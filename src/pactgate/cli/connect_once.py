"""Connect to every enabled server once, list what it offers, disconnect.

A gateway connects as it does in `serve`, so the results are the same. Connecting and listing are each bounded by
`connectionTimeoutMs`. Every process that was started has ended when the function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pactgate.app import build
from pactgate.catalog.conflicts import Conflict, find_conflicts
from pactgate.config.model import Config
from pactgate.config.sections.audit import AuditSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core import events
from pactgate.core.events import Event

Tell = Callable[[str], None]
_FINAL_EVENTS: Final = (events.ServerDiscovered, events.ServerFailed, events.DiscoveryFailed)
_NAMED: Final = 3


class ConnectReport(NamedTuple):
    """The state of each server as `/api/servers` shows it, and the conflicts between them."""

    rows: list[dict[str, Any]]
    conflicts: tuple[Conflict, ...]


async def connect_once(config: Config, tell: Tell | None = None) -> ConnectReport:
    progress = _Progress((server.id for server in config.servers.values() if server.enabled), tell)
    servers = {id_: _single_attempt(server) for id_, server in config.servers.items()}
    gateway = build(
        replace(config, servers=servers, audit=AuditSection()), progress
    )  # must not write the audit log of `serve`
    await gateway.start()
    try:
        report = await gateway.discover()
        errors = {result.server_id: result.error for result in report.server_results if result.status == "error"}
        rows = [
            {**row, "lastError": row["lastError"] or errors.get(row["serverId"])} for row in gateway.connections.rows()
        ]
        return ConnectReport(rows, find_conflicts(gateway.connections.catalog))
    finally:
        if tell is not None:
            tell("disconnecting")
        await gateway.stop()


def _single_attempt(server: ServerConfig) -> ServerConfig:
    limit_ms = min(server.request_timeout_ms, server.connection_timeout_ms)
    return replace(server, max_retries=0, request_timeout_ms=limit_ms)


class _Progress:
    """Tells the spinner which servers have not answered yet."""

    def __init__(self, servers: Iterable[str], tell: Tell | None) -> None:
        self._waiting = dict.fromkeys(servers)
        self._count = len(self._waiting)
        self._tell = tell
        self._say()

    def __call__(self, event: Event) -> None:
        if isinstance(event, _FINAL_EVENTS) and event.server in self._waiting:
            del self._waiting[event.server]
            self._say()

    def _say(self) -> None:
        if self._tell is None or not self._waiting:
            return
        names = ", ".join(list(self._waiting)[:_NAMED]) + (", …" if len(self._waiting) > _NAMED else "")
        self._tell(f"{self._count - len(self._waiting)} of {self._count} servers answered, waiting for {names}")
