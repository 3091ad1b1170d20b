"""`pactgate servers`, `tools` and `status`: read-only views of the running gateway. `--json` prints the gateway's own answer."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.call import find_tool
from pactgate.cli.completions import tool_names
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.server_table import DOWN, duration, is_troubled, show_servers, status_of
from pactgate.cli.shared_options import CommandWithServer, server_option, with_gateway
from pactgate.cli.table import Column, show_table
from pactgate.cli.tool_cost import Cost, costs_of, hints_of
from pactgate.core.display import flat

_CATEGORY_STYLES: Final = {"query": "green", "scan": "green", "mutation": "yellow", "execution": "red"}
_TOOL_COLUMNS: Final = (
    Column("TOOL"),
    Column("DESCRIPTION", is_long=True),
    Column("CATEGORY", _CATEGORY_STYLES, from_width=70),
)
_FURTHER_COLUMNS: Final = (Column("WHY"), Column("TIMEOUT"), Column("RATE"), Column("EFFECTS"), Column("OUTPUT"))
"""In a pipe; a terminal is too narrow for them."""
_NAMES: Final = ("exposedName", "fullName")
_REASON_CHARS: Final = 300
_LABEL_CHARS: Final = 12
_NAME_CHARS: Final = 100
_LINE_CHARS: Final = 2000


@click.command()
@click.option("--verbose", "-v", is_flag=True, help="Also show what is skipped, and why.")
@with_gateway
def servers(client: GatewayClient, *, verbose: bool, as_json: bool) -> int:
    """List the servers of the running gateway. Broken servers come first, with the reason."""
    found = client.rows("servers")
    if as_json:
        terminal.say_json(found)
    elif not found:
        terminal.say("This gateway has no servers.")
    else:
        show_servers(found, is_verbose=verbose)
    return 0


@click.command(cls=CommandWithServer)
@click.argument("name", required=False, shell_complete=tool_names)
@server_option
@click.option(
    "--verbose", "-v", is_flag=True, help="Also show timeouts, rate limits, effects and where categories come from."
)
@click.option(
    "--cost", is_flag=True, help="Show what the definitions cost a client: bytes and tokens, the largest first."
)
@with_gateway
def tools(
    client: GatewayClient, *, name: str | None, server: str | None, verbose: bool, cost: bool, as_json: bool
) -> int:
    """List the tools that can be called.

    NAME shows everything about this tool: its arguments, its limits and who set them; or it lists the tools with this text in
    their names. After -- comes a server to ask without a gateway.
    """
    found = [tool for tool in client.rows("tools") if server in (None, tool.get("serverId"))]
    if name is not None:
        exact = find_tool(found, name, None)
        found = [exact] if exact else [tool for tool in found if any(name in str(tool.get(key)) for key in _NAMES)]
    if cost and (found or as_json):
        views = client.get("/api/status").get("views") or [] if name is None and server is None else []
        return _show_cost(costs_of(found, views), as_json=as_json)
    if as_json:
        terminal.say_json(found)
        return 0
    if not found:
        return _no_tools(client, server, name)
    if (verbose and terminal.is_terminal(sys.stdout)) or (name is not None and len(found) == 1):
        for tool in found:
            _show_tool(tool)
    else:
        columns = (*_TOOL_COLUMNS, *_FURTHER_COLUMNS) if verbose else _TOOL_COLUMNS
        show_table(columns, (_tool_cells(tool)[: len(columns)] for tool in found))
    for row in client.rows("servers"):
        id_ = str(row.get("serverId"))
        if server in (None, id_) and is_troubled(row):
            reason = flat(str(row.get("lastError") or "not ready yet"), _REASON_CHARS)
            terminal.warning(f"{id_} can't be used: {terminal.without_name(id_, reason)}")
    return 0


def _replicas(shared: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What the gateway shares with others, where it does."""
    if shared is None:
        return []
    if shared.get("store") is None:
        return [("replicas", f"no shared store; not shared: {', '.join(shared.get('notShared', []))}")]
    if shared["store"] == "ok":
        return [("replicas", f"{shared.get('replicas')}, the shared store answers")]
    policies = ", ".join(f"{name} {policy}" for name, policy in shared.get("withoutStore", {}).items())
    return [("replicas", f"the shared store does not answer ({shared.get('trouble')}); meanwhile: {policies}")]


@click.command()
@with_gateway
def status(client: GatewayClient, *, as_json: bool) -> int:
    """Show the status of the running gateway. The exit code is 1 when a server is down or the audit log can't be written."""
    state = client.get("/api/status")
    rows = client.rows("servers")
    down = [row for row in rows if status_of(row) in DOWN or row.get("trouble")]
    audit = state.get("audit") or {}
    code = 1 if down or audit.get("trouble") else 0
    if as_json:
        terminal.say_json(state)
        return code
    calls = state.get("calls") or {}
    facts = (
        ("gateway", f"{state.get('name')} {state.get('version')} at {client.url}"),
        ("status", state.get("status")),
        ("uptime", duration(state.get("uptimeMs", 0))),
        ("servers", _summary(rows)),
        ("tools", state.get("toolCount")),
        ("rate limits", _rates(state.get("rateLimits"))),
        ("calls", f"{calls.get('total', 0)}, {calls.get('failed', 0)} failed"),
        *_replicas(state.get("state")),
        *([("audit log", f"can't be written: {audit['trouble']}")] if audit.get("trouble") else []),
        *(
            ("down", f"{row.get('serverId')}: {terminal.without_name(str(row.get('serverId')), str(_trouble(row)))}")
            for row in down
        ),
    )
    for name, fact in facts:
        terminal.item(name, "dim", str(fact), width=_LABEL_CHARS)
    return code


def _trouble(row: dict[str, Any]) -> Any:
    return row.get("trouble") or row.get("lastError") or row.get("status")


def _show_tool(tool: dict[str, Any]) -> None:
    """Everything about one tool, a fact a line: its table would be wider than a terminal."""
    name, _, category, why, *facts = map(str, _tool_cells(tool))
    about = tool.get("description") or tool.get("title") or ""
    print(terminal.wrapped(flat(f"{name}: {about}", _LINE_CHARS), sys.stdout, indent=2))
    for argument in arguments_of(tool.get("inputSchema")):
        terminal.item("argument", "cyan", argument, width=_LABEL_CHARS)
    for label, fact in zip(
        ("category", "timeout", "rate limit", "effects", "output"), (f"{category}, {why}", *facts), strict=True
    ):
        terminal.item(label, "dim", fact, width=_LABEL_CHARS)


def arguments_of(schema: Any) -> Iterator[str]:
    """Each argument of a tool as a line: `count: integer = 3. How many.`; those that can be left out are in brackets."""
    known = schema if isinstance(schema, dict) else {}
    properties, required = known.get("properties"), known.get("required")
    for name, about in (properties if isinstance(properties, dict) else {}).items():
        facts = about if isinstance(about, dict) else {}
        default = f" = {json.dumps(facts['default'], ensure_ascii=False)}" if "default" in facts else ""
        shown = f"{name}: {_type_of(facts, known)}{default}"
        is_required = isinstance(required, list) and name in required
        description = facts.get("description")
        yield (shown if is_required else f"[{shown}]") + (f". {description}" if isinstance(description, str) else "")


def _type_of(facts: dict[str, Any], root: dict[str, Any]) -> str:
    """The type of an argument in a word or two, or its choices."""
    definitions, reference = root.get("$defs"), str(facts.get("$ref")).rpartition("/")[2]
    if isinstance(definitions, dict) and isinstance(definitions.get(reference), dict):
        facts = {**definitions[reference], **facts}
    if isinstance(facts.get("enum"), list):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in facts["enum"])
    kinds = facts.get("type")
    if kinds is None:
        choices = facts.get("anyOf") or facts.get("oneOf")
        kinds = (
            [one.get("type", "any") for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
        )
    return " | ".join(map(str, kinds if isinstance(kinds, list) else [kinds])) or "any"


def _show_cost(costs: list[Cost], *, as_json: bool) -> int:
    if as_json:
        terminal.say_json([cost.facts() for cost in costs])
        return 0
    columns = (
        Column("KIND"),
        Column("NAME"),
        *(Column(title, is_number=True) for title in ("TOOLS", "BYTES", "TOKENS")),
    )
    show_table(columns, ([cost.kind, cost.name, cost.tools, cost.bytes, cost.tokens] for cost in costs))
    for hint in hints_of(costs[0]):
        terminal.warning(hint)
    return 0


def _tool_cells(tool: dict[str, Any]) -> list[Any]:
    category, why = (tool.get(key) or "-" for key in ("category", "categoryReason"))
    timeout = f"{tool.get('timeoutMs')} ms, {tool.get('timeoutSource')}"
    return [
        tool.get("exposedName"),
        _gist(tool),
        category,
        why,
        timeout,
        _rate(tool.get("rateLimit")),
        _effects(tool),
        tool.get("outputValidation") or "-",
    ]


def _effects(tool: dict[str, Any]) -> str:
    """How the effects are known, and which ones the contract names: `observed: network`."""
    level = str(tool.get("effectsLevel") or "unknown").partition(":")[0]
    contract = tool.get("contract")
    if isinstance(contract, dict) and "effects" in contract.get("assumed", ()):
        return f"{level}: not declared"
    named = contract.get("effects") if isinstance(contract, dict) else None
    return f"{level}: {', '.join(map(str, named)) or 'none'}" if isinstance(named, list | tuple) else level


def _rate(limit: Any) -> str:
    """The rate limit of each client."""
    return f"{limit.get('rpm')}/min, burst {limit.get('burst')}" if isinstance(limit, dict) else "no limit"


def _rates(limits: Any) -> str:
    if not isinstance(limits, dict) or not limits.get("enabled"):
        return "no limit"
    return "; ".join(f"{name} {_rate(limits.get(name))}" for name in ("execution", "mutation", "read"))


def _no_tools(client: GatewayClient, server: str | None, name: str | None) -> int:
    known = [str(row.get("serverId")) for row in client.rows("servers")]
    if server is not None and server not in known:
        raise CommandError(f"There is no server {server!r}.", f"Servers: {', '.join(known) or 'none'}.", exit_code=1)
    if name is not None:
        raise CommandError(
            f"No tool has {flat(name, _NAME_CHARS)!r} in its name.", "`pactgate tools` lists all.", exit_code=1
        )
    terminal.say("There are no tools now. `pactgate servers` shows why.")
    return 0


def _gist(tool: dict[str, Any]) -> str:
    """The description, else the title; on a terminal only its first sentence."""
    text = str(tool.get("description") or tool.get("title") or "")
    return text.partition(". ")[0] if terminal.is_terminal(sys.stdout) else text


def _summary(rows: list[dict[str, Any]]) -> str:
    counts = Counter(status_of(row) for row in rows)
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none configured"
