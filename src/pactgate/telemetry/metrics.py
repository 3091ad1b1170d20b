"""Metrics in the Prometheus text format: counters and durations of requests, and the state of servers.

Counting costs a few dictionary additions per request; the text is rendered on request. The number of labels is bounded: servers come
from the configuration, and unknown methods count as `other`. Must not: hold anything secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pactgate.core.events import Event, RequestFinished
from pactgate.core.values import ServerStatus
from pactgate.protocol.versions import METHODS

BUCKETS_MS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000)
_OTHER: Final = "other"
_CALL: Final = "tools/call"


class DurationHistogram:
    """How many requests took at most as long as each bucket's bound."""

    __slots__ = ("counts", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_MS) + 1)
        self.total_ms = 0.0


class Metrics:
    """Counts events and renders them on request."""

    def __init__(self) -> None:
        self._finished_by: dict[tuple[str, str | None, str], int] = {}
        """The number of requests by method, server (for tool calls) and outcome."""
        self._durations: dict[str, DurationHistogram] = {}
        self._events: Counter[str] = Counter()

    def emit(self, event: Event) -> None:
        if not isinstance(event, RequestFinished):
            self._events[type(event).__name__] += 1
            return
        record = event.record
        method = record.method if record.method in METHODS else _OTHER
        key = method, record.server if method == _CALL else None, record.outcome
        finished = self._finished_by
        finished[key] = finished.get(key, 0) + 1
        durations = self._durations.get(method)
        if durations is None:
            durations = self._durations[method] = DurationHistogram()
        durations.counts[bisect_left(BUCKETS_MS, record.duration_ms)] += 1
        durations.total_ms += record.duration_ms

    @property
    def calls(self) -> dict[str, int]:
        """The number of tool calls and of failed ones."""
        total = self._calls.total()
        return {"total": total, "failed": total - sum(n for (_, how), n in self._calls.items() if how == "ok")}

    def render(self, servers: Iterable[Mapping[str, Any]], uptime_s: float, more: Mapping[str, float]) -> bytes:
        """The exposition text. `more` are further gauges by name."""
        lines: list[str] = []
        _counter(lines, "pactgate_requests_total", "Requests answered.", ("method", "outcome"), self._requests)
        _counter(lines, "pactgate_tool_calls_total", "Tool calls answered.", ("server", "outcome"), self._calls)
        self._render_durations(lines)
        _counter(lines, "pactgate_events_total", "What happened, by kind.", ("event",), self._events)
        _render_servers(lines, list(servers))
        _gauge(lines, "pactgate_uptime_seconds", "Since the start.", [({}, round(uptime_s, 3))])
        for name, number in more.items():
            _gauge(lines, name, "", [({}, number)])
        return ("\n".join(lines) + "\n").encode()

    @property
    def _requests(self) -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        for (method, _, outcome), count in self._finished_by.items():
            counts[method, outcome] += count
        return counts

    @property
    def _calls(self) -> Counter[tuple[str, str]]:
        return Counter(
            {
                (server or "", how): count
                for (method, server, how), count in self._finished_by.items()
                if method == _CALL
            }
        )

    def _render_durations(self, lines: list[str]) -> None:
        name = "pactgate_request_duration_seconds"
        _head(lines, name, "histogram", "How long requests took.")
        for method, durations in sorted(self._durations.items()):
            reached = 0
            for bound_ms, count in zip((*BUCKETS_MS, None), durations.counts, strict=True):
                reached += count
                bound = "+Inf" if bound_ms is None else f"{bound_ms / 1000:g}"
                lines.append(f'{name}_bucket{{method="{method}",le="{bound}"}} {reached}')
            lines.append(f'{name}_sum{{method="{method}"}} {durations.total_ms / 1000:.6f}')
            lines.append(f'{name}_count{{method="{method}"}} {reached}')


def _render_servers(lines: list[str], servers: list[Mapping[str, Any]]) -> None:
    def rows(fact: str) -> list[tuple[dict[str, str], float]]:
        return [({"server": row["serverId"]}, row[fact]) for row in servers]

    states = [
        ({"server": row["serverId"], "status": status.value}, float(row["status"] == status.value))
        for row in servers
        for status in ServerStatus
    ]
    _gauge(lines, "pactgate_server_status", "1 for the state a server is in.", states)
    _gauge(lines, "pactgate_server_tools", "Tools a server offers.", rows("toolCount"))
    _gauge(lines, "pactgate_server_resources", "Resources a server lists.", rows("resourceCount"))
    _gauge(lines, "pactgate_server_attempts", "Attempts of the last series of connecting.", rows("attempts"))


def _counter(lines: list[str], name: str, about: str, labels: tuple[str, ...], counts: Mapping[Any, int]) -> None:
    _head(lines, name, "counter", about)
    for key, count in sorted(counts.items()):
        values = key if isinstance(key, tuple) else (key,)
        lines.append(f"{name}{_labels(dict(zip(labels, values, strict=True)))} {count}")


def _gauge(lines: list[str], name: str, about: str, samples: list[tuple[dict[str, str], float]]) -> None:
    _head(lines, name, "gauge", about)
    lines.extend(f"{name}{_labels(labels)} {number:g}" for labels, number in samples)


def _head(lines: list[str], name: str, kind: str, about: str) -> None:
    if about:
        lines.append(f"# HELP {name} {about}")
    lines.append(f"# TYPE {name} {kind}")


def _labels(labels: Mapping[str, str]) -> str:
    """Ids and methods need no escaping; any other character would be a bug and is replaced."""
    shown = ",".join(f'{name}="{_plain(text)}"' for name, text in labels.items())
    return f"{{{shown}}}" if shown else ""


def _plain(text: str) -> str:
    return "".join(character if character.isalnum() or character in "-_/." else "_" for character in text)
