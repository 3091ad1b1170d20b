"""Rates and durations of the last while, from two readings of `/api/traffic`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

_SUMS: Final = ("serverMs", "queueMs", "gatesMs", "gatewayMs")


class ServerTraffic(Struct, frozen=True):
    """One row of `pactgate top`. Times are in milliseconds: two quantiles of whole calls, and means of where the time went."""

    server: str
    calls_per_s: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    failed_percent: float = 0.0
    running: int = 0
    waiting: int = 0
    server_ms: float | None = None
    queue_ms: float | None = None
    gates_ms: float | None = None
    gateway_ms: float | None = None


def traffic_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ServerTraffic]:
    """What happened between two readings; what is under way is that of the second."""
    seconds = max(0.001, (after["atMs"] - before["atMs"]) / 1000)
    earlier = {row["serverId"]: row for row in before["servers"]}
    return [_row(earlier.get(row["serverId"], {}), row, seconds, after["boundsMs"]) for row in after["servers"]]


def _row(
    before: Mapping[str, Any], after: Mapping[str, Any], seconds: float, bounds_ms: Sequence[float]
) -> ServerTraffic:
    under_way = {"running": after["running"], "waiting": after["waiting"]}
    calls = after["calls"] - before.get("calls", 0)
    if calls <= 0:
        return ServerTraffic(after["serverId"], **under_way)
    held = before.get("counts") or [0] * len(after["counts"])
    counts = [late - early for early, late in zip(held, after["counts"], strict=True)]
    means = [(after[name] - before.get(name, 0.0)) / calls for name in _SUMS]
    return ServerTraffic(
        after["serverId"],
        calls_per_s=calls / seconds,
        p50_ms=quantile(counts, bounds_ms, 0.5),
        p95_ms=quantile(counts, bounds_ms, 0.95),
        failed_percent=100 * (after["failed"] - before.get("failed", 0)) / calls,
        server_ms=means[0],
        queue_ms=means[1],
        gates_ms=means[2],
        gateway_ms=means[3],
        **under_way,
    )


def quantile(counts: Sequence[int], bounds_ms: Sequence[float], part: float) -> float:
    """Interpolated within its bucket, as Prometheus does; of the last bucket its lower bound."""
    wanted, reached, lower = part * sum(counts), 0, 0.0
    for count, upper in zip(counts, bounds_ms, strict=False):
        if count and reached + count >= wanted:
            return lower + (upper - lower) * (wanted - reached) / count
        reached += count
        lower = upper
    return lower
