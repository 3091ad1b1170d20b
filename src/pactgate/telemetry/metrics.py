"""Counts requests for Prometheus: how many, how they ended, and where their time went.

All of a request is counted in one `Series`, found by what tells its labels; what is exposed is added up on request. The number of series
is bounded: methods are those of the protocol, tools are those of the catalog, the first `MAX_TOOLS` of them, and error codes are those
that are known. Names: `mcp_*` are those of OpenTelemetry's conventions, `pactgate_*` our own. Must not: hold anything secret.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pactgate.core.context import CLIENT, CONNECTION, QUEUE, ExecutionRecord
from pactgate.core.events import Event, RequestFinished
from pactgate.core.values import ServerStatus
from pactgate.telemetry.conventions import CALL, OTHER, client_error_type, method_of, server_error_type, transport_of
from pactgate.telemetry.exposition import Exemplar, Exposition, HistogramSample, Labels, rows, seconds

REQUEST_MS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000)
OPERATION_MS: Final = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000)
"""The buckets that the conventions ask for. They are too coarse for what a gateway adds, which has a histogram of its own."""
OVERHEAD_MS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000)
QUEUE_MS: Final = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000)
_ALL_MS: Final = tuple(sorted({*REQUEST_MS, *OPERATION_MS}))
"""One search serves both histograms of a duration."""
TRAFFIC_MS: Final = _ALL_MS
_EXEMPLAR_S: Final = 1.0
MAX_TOOLS: Final = 500
MAX_SERIES: Final = 2000


class DurationHistogram:
    """How many requests took at most as long as each bound, and the last traced one of each bucket."""

    __slots__ = ("bounds_ms", "counts", "exemplars", "noted_until", "total_ms")

    def __init__(self, bounds_ms: Sequence[float]) -> None:
        self.bounds_ms = bounds_ms
        self.counts = [0] * (len(bounds_ms) + 1)
        self.total_ms = 0.0
        self.exemplars: dict[int, Exemplar] = {}
        self.noted_until: dict[int, float] = {}

    def add(self, ms: float) -> None:
        self.counts[bisect_left(self.bounds_ms, ms)] += 1
        self.total_ms += ms

    def add_all(self, other: DurationHistogram) -> None:
        """Add the counts of another one, which has all bounds of this one and perhaps more."""
        for number, count in enumerate(other.counts):
            bound = other.bounds_ms[number] if number < len(other.bounds_ms) else float("inf")
            at = bisect_left(self.bounds_ms, bound)
            self.counts[at] += count
            if number in other.exemplars:
                self.exemplars[at] = other.exemplars[number]
        self.total_ms += other.total_ms

    def note(self, ms: float, trace_id: str, wall: Callable[[], float], now: float) -> None:
        """Keep an example of the bucket of this duration, a new one every second. `now` is of the monotonic clock."""
        number = bisect_left(self.bounds_ms, ms)
        if now >= self.noted_until.get(number, 0.0):
            self.exemplars[number] = Exemplar(trace_id, ms / 1000, wall())
            self.noted_until[number] = now + _EXEMPLAR_S


class Series:
    """All requests whose labels are the same."""

    __slots__ = ("client_labels", "duration", "method", "outcome", "overhead", "served", "server", "server_labels")

    def __init__(self, record: ExecutionRecord, method: str, tool: str, *, is_varied: bool) -> None:
        """Unless it `is_varied`, what servers and clients can vary is left out of the labels."""
        self.method = method
        self.server = record.server or ""
        self.outcome = record.outcome
        self.duration = DurationHistogram(_ALL_MS)
        self.served = DurationHistogram(OPERATION_MS)
        self.overhead = DurationHistogram(OVERHEAD_MS)
        labels = {"mcp_method_name": method, "gen_ai_tool_name": tool}
        self.server_labels = {
            **labels,
            "error_type": server_error_type(record),
            "mcp_protocol_version": record.version if is_varied else OTHER,
            "network_transport": transport_of(record),
        }
        self.client_labels = {
            **labels,
            "error_type": client_error_type(record),
            "mcp_protocol_version": (record.upstream_revision or "") if is_varied else OTHER,
            "pactgate_server": self.server,
        }


class Metrics:
    """Counts events and renders them on request."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._series: dict[tuple[object, ...], Series] = {}
        self._tools: set[str] = set()
        self._queues: dict[str, DurationHistogram] = {}
        self._waited_ms: dict[tuple[str, str], float] = {}
        """By server and what was waited for: QUEUE, CONNECTION, CLIENT or a gate."""
        self._events: Counter[str] = Counter()

    def emit(self, event: Event) -> None:
        if not isinstance(event, RequestFinished):
            self._events[type(event).__name__] += 1
            return
        record = event.record
        failure = record.failure
        key = (
            record.method,
            record.server,
            record.tool,
            record.outcome,
            record.version,
            record.upstream_revision,
            transport_of(record),
            None if failure is None else (record.error_code, client_error_type(record)),
        )
        series = self._series.get(key) or self._find(key, record)
        overhead_ms = duration_ms = record.duration_ms
        # `DurationHistogram.add` in place, which would cost another 0.2 us for the three of them.
        added = series.duration
        added.counts[bisect_left(_ALL_MS, duration_ms)] += 1
        added.total_ms += duration_ms
        if record.sent_at:
            server_ms = (record.received_at - record.sent_at) * 1000
            if record.waits:
                server_ms = record.server_ms
            overhead_ms -= server_ms
            added = series.served
            added.counts[bisect_left(OPERATION_MS, server_ms)] += 1
            added.total_ms += server_ms
        if record.waits:
            overhead_ms = record.overhead_ms
            self._count_waits(record)
        added = series.overhead
        added.counts[bisect_left(OVERHEAD_MS, overhead_ms)] += 1
        added.total_ms += overhead_ms
        trace = record.trace
        if trace is not None and trace.is_sampled:
            self._note_trace(series, record, trace.trace_id)

    @property
    def calls(self) -> dict[str, int]:
        """The number of tool calls and of failed ones."""
        calls = [(one.outcome, sum(one.duration.counts)) for one in self._all() if one.method == CALL]
        return {
            "total": sum(count for _, count in calls),
            "failed": sum(count for outcome, count in calls if outcome != "ok"),
        }

    def traffic(self) -> list[dict[str, Any]]:
        """For each server, so far: how many requests, how many failed, how long they took and where. `counts` is by TRAFFIC_MS."""
        found: dict[str, dict[str, Any]] = {}
        for one in self._all():
            if not one.server:
                continue
            row = found.setdefault(
                one.server,
                {"serverId": one.server, "calls": 0, "failed": 0, "serverMs": 0.0, "gatewayMs": 0.0}
                | {"queueMs": 0.0, "gatesMs": 0.0, "counts": [0] * (len(TRAFFIC_MS) + 1)},
            )
            count = sum(one.duration.counts)
            row["calls"] += count
            row["failed"] += count if one.outcome != "ok" else 0
            row["serverMs"] += one.served.total_ms
            row["gatewayMs"] += one.overhead.total_ms
            row["counts"] = [before + more for before, more in zip(row["counts"], one.duration.counts, strict=True)]
        for (server, what), ms in self._waited_ms.items():
            if server in found and what not in (CLIENT, CONNECTION):
                found[server]["queueMs" if what == QUEUE else "gatesMs"] += ms
        return [found[server] for server in sorted(found)]

    def render(self, to: Exposition, servers: Sequence[Mapping[str, Any]]) -> None:
        """Write everything. `servers` are the rows of the configured servers."""
        series = self._all()
        counts: Counter[tuple[str, str]] = Counter()
        calls: Counter[tuple[str, str]] = Counter()
        for one in series:
            count = sum(one.duration.counts)
            counts[one.method, one.outcome] += count
            if one.method == CALL:
                calls[one.server, one.outcome] += count
        to.counter("pactgate_requests_total", "Requests answered.", _labelled(counts, "method", "outcome"))
        to.counter("pactgate_tool_calls_total", "Tool calls answered.", _labelled(calls, "server", "outcome"))
        _histogram(
            to,
            "pactgate_request_duration_seconds",
            "How long requests took.",
            REQUEST_MS,
            (({"method": one.method}, one.duration) for one in series),
        )
        _histogram(
            to,
            "mcp_server_operation_duration_seconds",
            "How long requests of clients took.",
            OPERATION_MS,
            ((one.server_labels, one.duration) for one in series),
        )
        _histogram(
            to,
            "mcp_client_operation_duration_seconds",
            "How long servers took to answer.",
            OPERATION_MS,
            ((one.client_labels, one.served) for one in series if any(one.served.counts)),
        )
        _histogram(
            to,
            "pactgate_overhead_seconds",
            "What the gateway itself added to a request.",
            OVERHEAD_MS,
            (({"method": one.method}, one.overhead) for one in series),
        )
        _histogram(
            to,
            "pactgate_queue_seconds",
            "How long requests waited for a free slot of their server, where they had to wait.",
            QUEUE_MS,
            (({"server": server}, one) for server, one in self._queues.items()),
        )
        to.counter(
            "pactgate_wait_seconds_total",
            "How long requests waited, by what for: queue, connection, client, or a gate.",
            (({"server": server, "for": what}, ms / 1000) for (server, what), ms in sorted(self._waited_ms.items())),
        )
        to.counter("pactgate_events_total", "What happened, by kind.", _labelled(self._events, "event"))
        _render_servers(to, servers)

    def _all(self) -> list[Series]:
        return list(dict.fromkeys(self._series.values()))

    def _find(self, key: tuple[object, ...], record: ExecutionRecord) -> Series:
        """The series of a request that is the first of its kind, or whose method or tool is one too many to count by itself."""
        method, tool = method_of(record), record.tool or ""
        if tool and tool not in self._tools:
            if len(self._tools) < MAX_TOOLS:
                self._tools.add(tool)
            else:
                tool = OTHER
        is_varied = len(self._series) < MAX_SERIES
        if method == record.method and tool == (record.tool or "") and is_varied:
            series = self._series[key] = Series(record, method, tool, is_varied=True)
            return series
        rest = (method, record.server, tool if is_varied else OTHER, record.outcome, is_varied)
        series = self._series.get(rest) or Series(record, method, tool if is_varied else OTHER, is_varied=False)
        return self._series.setdefault(rest, series)

    def _note_trace(self, series: Series, record: ExecutionRecord, trace_id: str) -> None:
        series.duration.note(record.duration_ms, trace_id, self._wall, record.opened_at)
        if record.sent_at:
            series.served.note(record.server_ms, trace_id, self._wall, record.opened_at)

    def _count_waits(self, record: ExecutionRecord) -> None:
        for what, waited_ms in record.waits:
            key = record.server or "", what
            self._waited_ms[key] = self._waited_ms.get(key, 0.0) + waited_ms
            if what == QUEUE and record.server is not None:
                self._queues.setdefault(record.server, DurationHistogram(QUEUE_MS)).add(waited_ms)


def _histogram(
    to: Exposition,
    name: str,
    about: str,
    bounds_ms: Sequence[float],
    parts: Iterable[tuple[Labels, DurationHistogram]],
) -> None:
    """Write one histogram: parts with equal labels are added up."""
    sums: dict[tuple[tuple[str, str], ...], DurationHistogram] = {}
    for labels, part in parts:
        sums.setdefault(tuple(labels.items()), DurationHistogram(bounds_ms)).add_all(part)
    samples = (
        HistogramSample(dict(labels), one.counts, one.total_ms / 1000, one.exemplars)
        for labels, one in sorted(sums.items(), key=lambda item: item[0])
    )
    to.histogram(name, about, seconds(bounds_ms), samples)


def _labelled(counts: Mapping[Any, int], *names: str) -> list[tuple[Labels, float]]:
    keys = sorted(counts)
    return [(dict(zip(names, key if isinstance(key, tuple) else (key,), strict=True)), counts[key]) for key in keys]


def _render_servers(to: Exposition, servers: Sequence[Mapping[str, Any]]) -> None:
    states = [
        ({"server": row["serverId"], "status": status.value}, float(row["status"] == status.value))
        for row in servers
        for status in ServerStatus
    ]
    to.gauge("pactgate_server_status", "1 for the state a server is in.", states)
    for name, about, fact in (
        ("pactgate_server_tools", "Tools a server offers.", "toolCount"),
        ("pactgate_server_resources", "Resources a server lists.", "resourceCount"),
        ("pactgate_definitions_changed", "Definitions that are not those of the lock file.", "definitionsChanged"),
        ("pactgate_server_attempts", "Attempts of the last series of connecting.", "attempts"),
    ):
        to.gauge(name, about, rows(servers, "server", "serverId", fact))
