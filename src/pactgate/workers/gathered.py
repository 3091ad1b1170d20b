"""One gateway seen through several workers: their counters added up, their calls in one list.

Values in, values out. What describes the servers or the configuration is the same in every worker and taken from the one that was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pactgate.workers.alone import OwnStories

_SAMPLE: Final = re.compile(r"(\S+) (\S+)")
_NOT_ADDED: Final = ("pactgate_server_", "pactgate_workers")
_UPTIME: Final = "pactgate_uptime_seconds"
_MAX_CALLS: Final = 200


def add_metrics(own: bytes, others: Iterable[bytes]) -> bytes:
    """The exposition text with the numbers of all workers. Samples only others have are put beside their like."""
    groups: dict[str, dict[str, float]] = {}
    heads: dict[str, list[str]] = {}
    for number, text in enumerate((own, *others)):
        name = ""
        for line in text.decode().splitlines():
            if line.startswith("#"):
                name = line.split(" ", 3)[2]
                if number == 0 or name not in groups:
                    heads.setdefault(name, []).append(line)
                    groups.setdefault(name, {})
            elif sample := _SAMPLE.fullmatch(line):
                key, value = sample[1], float(sample[2])
                group = groups.setdefault(name, {})
                group[key] = _together(name, group.get(key), value)
    lines = [line for name, group in groups.items() for line in (*_unique(heads.get(name, [])), *_samples(group))]
    return ("\n".join(lines) + "\n").encode()


def _together(name: str, known: float | None, value: float) -> float:
    """Counted numbers add up; what is the same in every worker does not; a gateway is up since its first worker is."""
    if known is None:
        return value
    if name == _UPTIME:
        return max(known, value)
    return known if name.startswith(_NOT_ADDED) else known + value


def add_snapshots(own: dict[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The state as one gateway's: calls, the cache and sessions of callers added up, the rest as this worker sees it."""
    merged = {**own, "calls": dict(own["calls"]), "cache": dict(own["cache"])}
    sessions = {row["serverId"]: row["callerSessions"] for row in own["servers"]}
    for other in others:
        merged["uptimeMs"] = max(merged["uptimeMs"], other["uptimeMs"])
        for section in ("calls", "cache"):
            _add(merged[section], other[section])
        for row in other["servers"]:
            if row["serverId"] in sessions:
                sessions[row["serverId"]] += row["callerSessions"]
    merged["servers"] = [{**row, "callerSessions": sessions[row["serverId"]]} for row in own["servers"]]
    return merged


def seen_by_others(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """As much of a worker's snapshot as the others need to add up."""
    rows = [{name: row[name] for name in ("serverId", "callerSessions")} for row in snapshot["servers"]]
    return {
        "uptimeMs": snapshot["uptimeMs"],
        "calls": snapshot["calls"],
        "cache": snapshot["cache"],
        "servers": rows,
    }


class AllStories:
    """The calls of all workers, as far as the others were asked lately: `rows` for lists, `stories` for single calls."""

    def __init__(self, own: OwnStories) -> None:
        self._own = own
        self.rows: list[dict[str, Any]] = []
        self.stories: dict[str, dict[str, Any]] = {}

    def tell(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None:
        found = self._own.tell(request_id, subject)
        if found is None and (other := self.stories.get(request_id)) is not None:
            return other if subject in (None, other.get("subject")) else None
        return found

    def latest(self, count: int, subject: str | None = None) -> list[dict[str, Any]]:
        others = [row for row in self.rows if subject in (None, row["subject"])]
        rows = sorted((*self._own.latest(count, subject), *others), key=_when, reverse=True)
        return rows[: min(count, _MAX_CALLS)]


def _when(row: Mapping[str, Any]) -> str:
    return str(row["time"])


def _add(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name, value in other.items():
        if isinstance(value, int | float) and isinstance(into.get(name), int | float):
            into[name] += value


def _samples(group: Mapping[str, float]) -> list[str]:
    return [f"{key} {value:.6f}" if value % 1 else f"{key} {value:.0f}" for key, value in group.items()]


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
