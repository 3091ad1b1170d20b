"""The snapshot of a running gateway for the admin API and the command line, and the gauges of the metrics.

Reads other parts and changes none of them. Must not: show a secret, a command line or an argument.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from pactgate.catalog.catalog import Catalog
from pactgate.catalog.connections import Connections
from pactgate.catalog.surfaces import Surfaces
from pactgate.config.model import Config
from pactgate.core.values import Tool
from pactgate.policy import contracts
from pactgate.policy.access import ALLOWED_FOR
from pactgate.policy.overload import Overload
from pactgate.policy.rate_limits import RatePolicy
from pactgate.policy.result_cache import ResultCache
from pactgate.policy.timeouts import ToolTimeout
from pactgate.protocol import messages
from pactgate.state.memory_cache import MemoryCache
from pactgate.telemetry.exposition import OPEN_METRICS, TEXT, Exposition, accepts_open_metrics
from pactgate.telemetry.metrics import TRAFFIC_MS, Metrics

Gauge = tuple[str, str, float]
"""A name, what it says, and its value now."""
_MAX_CELLS: Final = 2000
"""Tools times classes of clients: a rule for each takes about 20 us, and nothing else is served meanwhile."""
CACHE_COUNTERS: Final = {
    "hits": "Results served from the cache.",
    "misses": "Lookups that found nothing in the cache.",
    "shared": "Calls that shared the call of another (single-flight).",
    "faults": "Times the cache could not be used.",
    "rejected": "Results that were too large to cache.",
    "evictedForSize": "Results evicted because the cache had no bytes left.",
    "evictedForEntries": "Results evicted because the cache had too many.",
    "expired": "Results that expired.",
    "dropped": "Results dropped because something may have changed.",
}


class GatewaySnapshot:
    """Reads the state of the parts of one gateway."""

    def __init__(
        self,
        *,
        connections: Connections,
        metrics: Metrics,
        cache: MemoryCache,
        results: ResultCache,
        overload: Overload,
        rates: RatePolicy,
        timeout_of: Callable[[Tool], ToolTimeout],
        config: Callable[[], Config],
        gauges: Callable[[], Iterable[Gauge]] = tuple,
        counters: Callable[[], Iterable[Gauge]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._metrics = metrics
        self._cache = cache
        self._results = results
        self._overload = overload
        self._rates = rates
        self._timeout_of = timeout_of
        self._config = config
        self._gauges = gauges
        self._counters = counters
        self._clock = clock
        self._started_at = clock()
        self._rows_of: tuple[Catalog, Config] | None = None
        self._rows: list[dict[str, Any]] = []
        self._views_of: tuple[Surfaces, list[dict[str, Any]]] | None = None

    def snapshot(self) -> dict[str, Any]:
        return {
            "uptimeMs": round(self._uptime_s() * 1000),
            "servers": self._connections.rows(),
            "lists": "waiting" if self._connections.settling() else "whole",
            "tools": self._tool_rows(),
            "views": self._view_rows(),
            "calls": self._metrics.calls,
            "cache": self._cache_facts(),
            **self.limits(),
        }

    def traffic(self) -> dict[str, Any]:
        """What went to each server so far, and what is under way."""
        load = self._overload.load()
        rows = [
            {**row, "running": load.get(row["serverId"], (0, 0))[0], "waiting": load.get(row["serverId"], (0, 0))[1]}
            for row in self._metrics.traffic()
        ]
        seen = {row["serverId"] for row in rows}
        rows += [
            {"serverId": server, "calls": 0, "running": running, "waiting": waiting}
            for server, (running, waiting) in load.items()
            if server not in seen
        ]
        return {"atMs": round(self._uptime_s() * 1000), "boundsMs": list(TRAFFIC_MS), "servers": rows}

    def limits(self) -> dict[str, Any]:
        """The rate limits, size limits and timeouts, which every client may read (S2/MCP-007)."""
        config = self._config()
        return {
            "rateLimits": self._rates.describe(),
            "limits": msgspec.to_builtins(config.limits),
            "timeouts": msgspec.to_builtins(config.timeouts),
            "maxResponseBytes": config.response.max_response_bytes,
        }

    def render_metrics(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics in the format that a scraper accepts, with its content type."""
        is_open = accepts_open_metrics(accept)
        to = Exposition(is_open=is_open)
        self._metrics.render(to, self._connections.rows())
        cache, load = self._cache_facts(), self._overload.load()
        for name, about in CACHE_COUNTERS.items():
            to.counter(f"pactgate_cache_{_snake(name)}_total", about, [({}, cache[name])])
        refused, limited = self._overload.refused_count, self._rates.refused_count
        to.counter("pactgate_calls_refused_total", "Calls refused because too many were under way.", [({}, refused)])
        to.counter("pactgate_calls_rate_limited_total", "Requests refused by a rate limit.", [({}, limited)])
        to.gauge("pactgate_cache_entries", "Cached results.", [({}, cache["entries"])])
        to.gauge("pactgate_cache_size_bytes", "Bytes of the cached results.", [({}, cache["sizeBytes"])])
        to.gauge("pactgate_calls_held", "Calls that run or wait for a slot now.", [({}, self._overload.held_count)])
        under_way = {row["serverId"]: load.get(row["serverId"], (0, 0)) for row in self._connections.rows()}
        running = [({"server": server}, float(count)) for server, (count, _) in under_way.items()]
        waiting = [({"server": server}, float(count)) for server, (_, count) in under_way.items()]
        to.gauge("pactgate_calls_running", "Calls at their server now.", running)
        to.gauge("pactgate_calls_waiting", "Calls that wait for a free slot now.", waiting)
        for name, about, number in self._counters():
            to.counter(name, about, [({}, number)])
        for name, about, number in self._gauges():
            to.gauge(name, about, [({}, number)])
        to.gauge("pactgate_uptime_seconds", "Since the start.", [({}, round(self._uptime_s(), 3))])
        return to.encode(), OPEN_METRICS if is_open else TEXT

    def _uptime_s(self) -> float:
        return self._clock() - self._started_at

    def _cache_facts(self) -> dict[str, Any]:
        held, asked = self._cache.statistics(), self._results.statistics()
        return {
            "hits": asked.hits,
            "misses": asked.misses,
            "shared": asked.shared,
            "faults": asked.faults,
            "entries": held.entries,
            "sizeBytes": held.size_bytes,
            "rejected": held.rejected,
            "evictedForSize": held.evicted_for_size,
            "evictedForEntries": held.evicted_for_entries,
            "expired": held.expired,
            "dropped": held.dropped,
            "pressure": held.pressure.value,
        }

    def _tool_rows(self) -> list[dict[str, Any]]:
        """The rows of all tools, decoded once per catalog and configuration: health checks are frequent, changes rare."""
        catalog, config = self._connections.unfiltered, self._config()
        if self._rows_of is None or self._rows_of[0] is not catalog or self._rows_of[1] is not config:
            self._rows_of = catalog, config
            allowed = _allowed(config, catalog.listed_tools())
            self._rows = [
                {
                    **_tool_row(tool, self._effects_level(tool)),
                    "timeoutMs": self._timeout_of(tool).ms,
                    "timeoutSource": self._timeout_of(tool).source,
                    "rateLimit": self._rates.facts_of(tool),
                    "lock": self._connections.lock_state(tool),
                    **allowed.get(tool.full_name, {}),
                }
                for tool in catalog.listed_tools()
            ]
        return self._rows

    def _view_rows(self) -> list[dict[str, Any]]:
        """How many tools each view lists, and the bytes of their definitions."""
        surfaces = self._connections.surfaces
        if self._views_of is None or self._views_of[0] is not surfaces:
            shown = {name: surfaces.shown_in(name) for name in self._config().views}
            rows = [
                {"view": name, "toolCount": len(tools), "bytes": sum(len(tool.exposed_definition) for tool in tools)}
                for name, tools in shown.items()
            ]
            self._views_of = surfaces, rows
        return self._views_of[1]

    def _effects_level(self, tool: Tool) -> str | None:
        """How the declared effects of the tool are enforced (D12); None where it declares none."""
        session = self._connections.connected(tool.server)
        level = session.effects_level if session is not None else None
        declared = contracts.declared_level(tool)
        return level or (None if declared == contracts.UNKNOWN else declared)


def _allowed(config: Config, tools: Iterable[Tool]) -> dict[str, dict[str, Any]]:
    """For each tool which class of clients may call it (`yes`, `no`, `if`); nothing where every client may, or where it takes long."""
    known = list(tools)
    if not config.permissions or len(known) * (len(config.callers) + 1) > _MAX_CELLS:
        return {}
    from pactgate.policy.permissions.comparison import class_label, class_pairs, reach_of
    from pactgate.policy.permissions.rules import Permissions  # with the engine for conditions

    permissions, classes = Permissions(config), [name for name, _ in class_pairs(config.callers, config.callers)]
    return {
        tool.full_name: {ALLOWED_FOR: {class_label(name): reach_of(permissions, name, tool).answer for name in classes}}
        for tool in known
    }


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _tool_row(tool: Tool, effects_level: str | None) -> dict[str, Any]:
    definition = messages.value(tool.definition)
    return {
        "fullName": tool.full_name,
        "exposedName": tool.exposed_name,
        "toolName": tool.name,
        "serverId": tool.server,
        "title": definition.get("title"),
        "description": definition.get("description"),
        "inputSchema": definition.get("inputSchema"),
        "category": tool.traits.category,
        "categoryReason": tool.traits.reason,
        "isReadOnly": tool.traits.is_read_only,
        "isIdempotent": tool.traits.is_idempotent,
        "outputValidation": _output_validation(tool),
        "effectsLevel": effects_level,
        "contract": None if tool.contract is None else msgspec.to_builtins(tool.contract),
        "annotations": definition.get("annotations"),
        "definitionBytes": len(tool.exposed_definition),
        "isDestructive": _is_destructive(tool, definition.get("annotations")),
    }


def _output_validation(tool: Tool) -> str | None:
    """What happens to a result that does not fit what the tool declares of it; None where it declares nothing."""
    if tool.contract is not None and tool.contract.output_validation is not msgspec.UNSET:
        return tool.contract.output_validation
    return "enforce" if tool.output_check is not None else None


def _is_destructive(tool: Tool, annotations: Any) -> bool:
    """The protocol's default: a tool that is not read-only may be destructive unless it is annotated otherwise."""
    hints = annotations if isinstance(annotations, dict) else {}
    return not tool.traits.is_read_only and hints.get("destructiveHint") is not False
