"""A table of servers: the broken ones first, each with the reason.

The rows are those of `/api/servers`, of a running gateway or of one that connected once. Reasons are text of upstreams.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.table import Column, Styled, show_table
from pactgate.cli.terminal import without_name

DOWN: Final = ("error", "disconnected")
_STYLES: Final = {
    "connected": "green",
    "connecting": "yellow",
    "disconnected": "yellow",
    "error": "red",
    "disabled": "dim",
    "idle": "dim",
}
_COLUMNS: Final = (
    Column("SERVER"),
    Column("STATUS", _STYLES),
    Column("PROTOCOL", from_width=60),
    Column("TRANSPORT", from_width=120),
    Column("TOOLS", is_number=True, from_width=50),
    Column("PROMPTS", is_number=True, from_width=130),
    Column("RESOURCES", is_number=True, from_width=130),
    Column("LATENCY", is_number=True, from_width=80),
    Column("SINCE", is_number=True, from_width=110),
    Column("NOTE", is_long=True, wraps=True),
)


def show_servers(rows: Sequence[dict[str, Any]], *, is_verbose: bool = False) -> None:
    where = "see below" if is_verbose else "--verbose shows why"
    show_table(_COLUMNS, (_cells(row, where) for row in sorted(rows, key=_urgency)))
    if not is_verbose:
        return
    for row in rows:
        reasons = skipped(row)
        if reasons:
            terminal.say(f"{row.get('serverId')}: {len(reasons)} skipped, because they can't be used:")
            for reason in reasons:
                terminal.say(f"  {reason}")
        if row.get("mayHide"):
            terminal.say(f"{row.get('serverId')}: {row['mayHide']}")
        for hazard in row.get("hazards") or ():
            terminal.say(f"{row.get('serverId')}: {hazard}")


def skipped(row: dict[str, Any]) -> list[str]:
    """What a server offers and the gateway does not list, with the reasons."""
    found = row.get("leftOut")
    return [str(reason) for reason in found] if isinstance(found, list) else []


def is_troubled(row: dict[str, Any]) -> bool:
    """Whether a server is enabled and can't be used."""
    return status_of(row) not in ("connected", "disabled", "idle") or bool(row.get("lastError"))


def status_of(row: dict[str, Any]) -> str:
    """The status for people: a lazy server that waits for its next call is idle."""
    return "idle" if row.get("isIdle") else str(row.get("status"))


def duration(ms: float) -> str:
    seconds = int(ms // 1000)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _urgency(row: dict[str, Any]) -> int:
    if row.get("status") == "disabled":
        return 4
    if status_of(row) in DOWN:
        return 0
    if is_troubled(row):
        return 1
    return 2 if skipped(row) else 3


def _cells(row: dict[str, Any], where: str) -> list[Any]:
    status = status_of(row)
    latency_ms = row.get("latencyMs")
    return [
        row.get("serverId"),
        Styled(status, "yellow") if status == "connected" and is_troubled(row) else status,
        row.get("protocolVersion"),
        row.get("transport"),
        row.get("toolCount"),
        row.get("promptCount"),
        row.get("resourceCount"),
        f"{latency_ms:.0f} ms" if isinstance(latency_ms, int | float) else None,
        _since(row.get("lastConnectedAt")) if status == "connected" else None,
        _note(row, where),
    ]


def _note(row: dict[str, Any], where: str) -> Styled:
    if row.get("lastError"):
        reason = without_name(str(row.get("serverId")), str(row["lastError"]))
        return Styled(reason, "red" if row.get("status") in DOWN else "yellow")
    info = row.get("serverInfo")
    known = info if isinstance(info, dict) else {}
    name = " ".join(str(known[key]) for key in ("name", "version") if known.get(key))
    hazards, omitted = len(row.get("hazards") or ()), len(skipped(row))
    if hazards:
        return Styled(f"{hazards} conflict{'s' * (hazards != 1)} ({where}), {name}", "yellow")
    return Styled(f"{omitted} skipped ({where})", "yellow") if omitted else Styled(name, "")


def _since(moment: Any) -> str | None:
    try:
        then = datetime.fromisoformat(str(moment))
        return duration(max(0.0, (datetime.now(UTC) - then).total_seconds() * 1000))
    except (ValueError, TypeError):  # no moment, or one without a time zone
        return None
