"""The running gateway from a terminal: its servers, its tools, its state. Read-only; `--json` prints what the gateway said, as it is."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.server_table import DOWN, duration, is_troubled, show_servers
from pactgate.cli.table import Column, show_table
from pactgate.core.display import flat

_CATEGORY_STYLES: Final = {"query": "green", "scan": "green", "mutation": "yellow", "execution": "red"}
_LEVEL_STYLES: Final = {"enforced": "green", "observed": "green"}
_TOOL_COLUMNS: Final = (
    Column("TOOL"),
    Column("SERVER", from_width=100),
    Column("CATEGORY", _CATEGORY_STYLES, from_width=70),
    Column("RATE", from_width=100),
    Column("WHY", from_width=120),
    Column("EFFECTS", _LEVEL_STYLES, from_width=110),
    Column("DESCRIPTION", is_long=True),
)
_REASON_CHARS: Final = 300


def servers(client: GatewayClient, *, is_verbose: bool, as_json: bool) -> int:
    found = _rows(client, "/api/servers", "servers")
    if as_json:
        terminal.say_json(found)
    elif not found:
        terminal.say("This gateway has no servers.")
    else:
        show_servers(found, is_verbose=is_verbose)
    return 0


def tools(client: GatewayClient, *, server: str | None, as_json: bool) -> int:
    found = [tool for tool in _rows(client, "/api/tools", "tools") if server in (None, tool.get("serverId"))]
    if as_json:
        terminal.say_json(found)
        return 0
    if not found:
        return _no_tools(client, server)
    show_table(_TOOL_COLUMNS, map(_tool_cells, found))
    sys.stdout.flush()
    for row in _rows(client, "/api/servers", "servers"):
        if server in (None, row.get("serverId")) and is_troubled(row):
            reason = flat(str(row.get("lastError") or "not ready yet"), _REASON_CHARS)
            terminal.warning(f"{row.get('serverId')} can't be used: {reason}")
    return 0


def status(client: GatewayClient, *, as_json: bool) -> int:
    """1 when a server that should be there is not, or calls can't be recorded."""
    state = client.get("/api/status")
    rows = _rows(client, "/api/servers", "servers")
    down = [row for row in rows if row.get("status") in DOWN or row.get("trouble")]
    audit = state.get("audit") or {}
    code = 1 if down or audit.get("trouble") else 0
    if as_json:
        terminal.say_json(state)
        return code
    calls = state.get("calls") or {}
    facts = (
        ("gateway", f"{state.get('name')} {state.get('version')} at {client.url}"),
        ("status", state.get("status")),
        ("up for", duration(state.get("uptimeMs", 0))),
        ("servers", _summary(rows)),
        ("tools", state.get("toolCount")),
        ("rates", _rates(state.get("rateLimits"))),
        ("calls", f"{calls.get('total', 0)}, {calls.get('failed', 0)} failed"),
        *([("audit", f"can't be written: {audit['trouble']}")] if audit.get("trouble") else []),
        *(
            ("down", f"{row.get('serverId')}: {row.get('trouble') or row.get('lastError') or row.get('status')}")
            for row in down
        ),
    )
    for name, fact in facts:
        terminal.say(f"{name:<8} {fact}")
    return code


def _rows(client: GatewayClient, path: str, key: str) -> list[dict[str, Any]]:
    page = client.get(path)
    found = page.get(key) if isinstance(page, dict) else page
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _tool_cells(tool: dict[str, Any]) -> list[Any]:
    category, why = (tool.get(key) or "-" for key in ("category", "categoryReason"))
    rate = _rate(tool.get("rateLimit"))
    return [tool.get("exposedName"), tool.get("serverId"), category, rate, why, _effects(tool), _gist(tool)]


def _effects(tool: dict[str, Any]) -> str:
    """How far its effects are known, and which a contract names: `observed: network`."""
    level = str(tool.get("effectsLevel") or "unknown").partition(":")[0]
    contract = tool.get("contract")
    named = contract.get("effects") if isinstance(contract, dict) else None
    return f"{level}: {', '.join(map(str, named)) or 'none'}" if isinstance(named, list | tuple) else level


def _rate(limit: Any) -> str:
    """Calls of one caller in a minute, and at once."""
    return f"{limit.get('rpm')}/min, {limit.get('burst')} at once" if isinstance(limit, dict) else "no limit"


def _rates(limits: Any) -> str:
    if not isinstance(limits, dict) or not limits.get("enabled"):
        return "no limit"
    return "; ".join(f"{name} {_rate(limits.get(name))}" for name in ("execution", "mutation", "read"))


def _no_tools(client: GatewayClient, server: str | None) -> int:
    known = [str(row.get("serverId")) for row in _rows(client, "/api/servers", "servers")]
    if server is not None and server not in known:
        terminal.problem(f"There is no server {server!r}.", f"There are: {', '.join(known) or 'none'}.")
        return 1
    terminal.say("There are no tools now. `pactgate servers` says why.")
    return 0


def _gist(tool: dict[str, Any]) -> str:
    """The description, or at least the title; where somebody watches, its first sentence."""
    text = str(tool.get("description") or tool.get("title") or "")
    return text.partition(". ")[0] if terminal.is_terminal(sys.stdout) else text


def _summary(rows: list[dict[str, Any]]) -> str:
    counts = Counter(str(row.get("status")) for row in rows)
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none configured"
