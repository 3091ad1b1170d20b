"""Connect to every enabled server once, list what it offers, disconnect.

A gateway connects as it does in `serve`, so the results are the same. Connecting and listing are each bounded by
`connectionTimeoutMs`. Every process that was started has ended when the function returns.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pactgate.app import build
from pactgate.catalog.conflicts import Conflict, find_conflicts
from pactgate.catalog.discovery import DiscoveredLists
from pactgate.cli.terminal import Tell
from pactgate.config.model import Config
from pactgate.config.sections.audit import AuditSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core import events
from pactgate.core.events import Emit, Event
from pactgate.policy.access import ADMINISTRATOR, shown_row
from pactgate.upstreams.negotiate import Identity

_FINAL_EVENTS: Final = (events.ServerDiscovered, events.ServerFailed, events.DiscoveryFailed)
_NAMED: Final = 3


class Offer(NamedTuple):
    """What a server that answered says of itself, and its lists."""

    config: ServerConfig
    identity: Identity
    lists: DiscoveredLists


class ConnectReport(NamedTuple):
    """The state of each server as `/api/servers` shows it, the tools as `/api/tools` does, and the conflicts between them."""

    rows: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    conflicts: tuple[Conflict, ...]
    offers: dict[str, Offer]


async def connect_once(config: Config, tell: Tell) -> ConnectReport:
    progress = _progress([server.id for server in config.servers.values() if server.enabled], tell)
    servers = {id_: _single_attempt(server) for id_, server in config.servers.items()}
    gateway = build(
        replace(config, servers=servers, audit=AuditSection()), progress
    )  # must not write the audit log of `serve`
    await gateway.start()
    try:
        report = await gateway.discover()
        errors = {
            result.server_id: {"lastError": result.error, "lastErrorCode": result.error_code}
            for result in report.server_results
            if result.status == "error"
        }
        shown = [shown_row(row, ADMINISTRATOR) for row in gateway.connections.rows()]
        rows = [row if row["lastError"] else {**row, **errors.get(row["serverId"], {})} for row in shown]
        offers = {
            id_: Offer(config.servers[id_], server.session.identity, server.lists.found)
            for id_, server in gateway.connections.servers.items()
            if server.session is not None and server.lists.has_answered
        }
        tools = gateway.snapshot()["tools"]
        return ConnectReport(rows, tools, find_conflicts(gateway.connections.unfiltered), offers)
    finally:
        tell("disconnecting")
        await gateway.stop()


def _single_attempt(server: ServerConfig) -> ServerConfig:
    limit_ms = min(server.request_timeout_ms, server.connection_timeout_ms)
    return replace(server, max_retries=0, request_timeout_ms=limit_ms, start="eager")


def _progress(waiting: list[str], tell: Tell) -> Emit:
    """Tells which servers have not answered yet."""
    count = len(waiting)

    def say() -> None:
        names = ", ".join(waiting[:_NAMED]) + (", …" if len(waiting) > _NAMED else "")
        if names:
            tell(f"{count - len(waiting)} of {count} servers answered, waiting for {names}")

    def on_event(event: Event) -> None:
        if isinstance(event, _FINAL_EVENTS) and event.server in waiting:
            waiting.remove(event.server)
            say()

    say()
    return on_event
