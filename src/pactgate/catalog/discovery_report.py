"""The discovery report: one row per server, with its error if discovery failed. Never raises. Enforces S0/ECO-001, ECO-002 and ECO-201."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from pactgate.catalog.supervisor import Supervisor
from pactgate.catalog.waiting import utc_now
from pactgate.core.failures import EcosystemCode, GatewayFailure
from pactgate.core.values import ServerStatus


class ServerResult(Struct, frozen=True, rename="camel", omit_defaults=False):
    """`status` is success, error or skipped."""

    server_id: str
    status: str
    tool_count: int = 0
    prompt_count: int = 0
    resource_count: int = 0
    error: str | None = None
    error_code: str | None = None
    duration_ms: int = 0


class DiscoveryReport(Struct, frozen=True, rename="camel"):
    server_results: tuple[ServerResult, ...]
    total_duration_ms: int
    discovered_at: str
    tools: tuple[dict[str, Any], ...] = ()


async def discover_all(
    servers: Mapping[str, Supervisor],
    *,
    only: Collection[str] | None,
    force: bool,
    include_disabled: bool,
    max_age_s: float,
) -> DiscoveryReport:
    """Ask all servers concurrently, each within its own time limits."""
    started = time.monotonic()
    asked = [servers.get(id_) or id_ for id_ in only] if only is not None else list(servers.values())
    rows = await asyncio.gather(*(_ask(server, force=force, max_age_s=max_age_s) for server in asked))
    shown = tuple(row for row in rows if include_disabled or row.status != "skipped")
    return DiscoveryReport(shown, round((time.monotonic() - started) * 1000), utc_now())


async def _ask(server: Supervisor | str, *, force: bool, max_age_s: float) -> ServerResult:
    if isinstance(server, str):
        message = f"No server {server!r} is configured."
        return ServerResult(server, "error", error=message, error_code=EcosystemCode.SERVER_NOT_FOUND)
    if server.status is ServerStatus.DISABLED:
        return ServerResult(server.config.id, "skipped", error="disabled")
    limit_ms = server.config.connection_timeout_ms + server.config.request_timeout_ms
    started = time.monotonic()
    failure: GatewayFailure | None = None
    try:
        async with asyncio.timeout(limit_ms / 1000):
            was_asked = await server.refresh(force=force, max_age_s=max_age_s)
    except TimeoutError:
        return _failed(server, f"{server.config.id} did not answer within {limit_ms} ms", None, started)
    except GatewayFailure as problem:
        failure = problem
    if failure is not None:
        return _failed(server, failure.message, failure.ecosystem, started)
    found = server.lists.found
    took_ms = round((time.monotonic() - started) * 1000) if was_asked else 0
    counts = (len(found.tools), len(found.prompts), len(found.resources))
    return ServerResult(server.config.id, "success", *counts, duration_ms=took_ms)


def _failed(server: Supervisor, message: str, code: EcosystemCode | None, started: float) -> ServerResult:
    took_ms = round((time.monotonic() - started) * 1000)
    shown = code or EcosystemCode.DISCOVERY_FAILED
    return ServerResult(server.config.id, "error", error=message, error_code=shown, duration_ms=took_ms)
