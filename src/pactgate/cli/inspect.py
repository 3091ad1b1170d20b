"""The running gateway from a terminal: its servers, its tools, its state. Read-only; `--json` prints what the gateway said, as it is."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Final

from pactgate.cli import console
from pactgate.cli.client import GatewayClient
from pactgate.cli.console import Column

_STATUS_STYLES: Final = {
    "connected": "green",
    "connecting": "yellow",
    "disconnected": "yellow",
    "error": "red",
    "disabled": "dim",
}
_DOWN: Final = ("error", "disconnected")


def servers(client: GatewayClient, *, as_json: bool) -> int:
    found = _rows(client, "/api/servers", "servers")
    if as_json:
        console.say_json(found)
    elif not found:
        console.say("This gateway has no servers.")
    else:
        columns = (
            Column("SERVER"),
            Column("STATUS", _STATUS_STYLES),
            Column("ERA"),
            Column("REVISION"),
            Column("TRANSPORT"),
            Column("TOOLS", is_number=True),
            Column("DETAIL", is_long=True, wraps=True),
        )
        console.table(columns, map(_server_cells, found))
    return 0


def tools(client: GatewayClient, *, server: str | None, as_json: bool) -> int:
    found = [tool for tool in _rows(client, "/api/tools", "tools") if server in (None, tool.get("serverId"))]
    if as_json:
        console.say_json(found)
        return 0
    if not found:
        return _no_tools(client, server)
    columns = (Column("TOOL"), Column("SERVER"), Column("DESCRIPTION", is_long=True))
    console.table(columns, ([t.get("exposedName"), t.get("serverId"), _gist(t)] for t in found))
    return 0


def status(client: GatewayClient, *, as_json: bool) -> int:
    """1 when a server that should be there is not."""
    state = client.get("/api/status")
    rows = _rows(client, "/api/servers", "servers")
    down = [row for row in rows if row.get("status") in _DOWN]
    if as_json:
        console.say_json(state)
        return 1 if down else 0
    calls = state.get("calls") or {}
    facts = (
        ("gateway", f"{state.get('name')} {state.get('version')} at {client.url}"),
        ("status", state.get("status")),
        ("up for", _duration(state.get("uptimeMs", 0))),
        ("servers", _summary(rows)),
        ("tools", state.get("toolCount")),
        ("calls", f"{calls.get('total', 0)}, {calls.get('failed', 0)} failed"),
        *(("down", f"{row.get('serverId')}: {row.get('lastError') or row.get('status')}") for row in down),
    )
    for name, fact in facts:
        console.say(f"{name:<8} {fact}")
    return 1 if down else 0


def _rows(client: GatewayClient, path: str, key: str) -> list[dict[str, Any]]:
    page = client.get(path)
    found = page.get(key) if isinstance(page, dict) else page
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _server_cells(row: dict[str, Any]) -> list[Any]:
    info = row.get("serverInfo") or {}
    known_as = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    return [
        row.get("serverId"),
        row.get("status"),
        row.get("era"),
        row.get("protocolVersion"),
        row.get("transport"),
        row.get("toolCount"),
        row.get("lastError") or known_as,
    ]


def _no_tools(client: GatewayClient, server: str | None) -> int:
    known = [str(row.get("serverId")) for row in _rows(client, "/api/servers", "servers")]
    if server is not None and server not in known:
        console.problem(f"There is no server {server!r}.", f"There are: {', '.join(known) or 'none'}.")
        return 1
    console.say("There are no tools now. `pactgate servers` says why.")
    return 0


def _gist(tool: dict[str, Any]) -> str:
    """The description, or at least the title; where somebody watches, its first sentence."""
    text = str(tool.get("description") or tool.get("title") or "")
    return text.partition(". ")[0] if console.is_terminal(sys.stdout) else text


def _summary(rows: list[dict[str, Any]]) -> str:
    counts = Counter(str(row.get("status")) for row in rows)
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none configured"


def _duration(ms: float) -> str:
    seconds = int(ms // 1000)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"
