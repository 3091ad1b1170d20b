"""`pactgate views`: the views of the running gateway, and a proposal of one from recorded sessions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.config_file import find_config, load_config
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import config_option, json_option, with_gateway
from pactgate.cli.table import Column, show_table
from pactgate.cli.tool_cost import costs_of

_MARKS: Final = ("__", ".")


@click.group()
def views() -> None:
    """List views, or propose one from recorded sessions."""


@views.command("list")
@with_gateway
def list_views(client: GatewayClient, *, as_json: bool) -> int:
    """List the views of the running gateway with what their lists cost."""
    rows = client.get("/api/status").get("views") or []
    if as_json:
        terminal.say_json(rows)
    elif not rows:
        terminal.say("This gateway has no views, or none that you may see.")
    else:
        columns = (
            Column("VIEW"),
            Column("PATH"),
            *(Column(name, is_number=True) for name in ("TOOLS", "BYTES", "TOKENS")),
        )
        found = [cost for cost in costs_of((), rows) if cost.kind == "view"]
        show_table(columns, ([one.name, f"/mcp/v/{one.name}", one.tools, one.bytes, one.tokens] for one in found))
    return 0


@views.command("suggest", epilog="Example: pactgate views suggest --from captures/")
@click.option("--from", "source", metavar="PATH", required=True, help="A capture file, or a folder of them.")
@click.option("--name", default="suggested", metavar="NAME", help="Name of the view. Default: suggested.")
@config_option
@json_option
def suggest(*, source: str, name: str, config: str | None, as_json: bool) -> int:
    """Propose a view of the tools that recorded sessions called.

    The most used tools come first.
    """
    path = find_config(config)
    servers = () if path is None else tuple(load_config(path, only=("mcpServers", "servers")).servers)
    used, sessions, skipped = Counter[str](), 0, 0
    for file in _files(Path(source)):
        for label, called in _calls(file):
            sessions += 1
            for tool in called:
                full_name = full_name_of(tool, label, servers)
                if full_name is None:
                    skipped += 1
                else:
                    used[full_name] += 1
    if not used:
        raise CommandError(
            f"No session in {source} calls a tool of a configured server.", f"Servers: {', '.join(servers) or 'none'}."
        )
    view = {"views": {name: {"tools": [tool for tool, _ in used.most_common()]}}}
    if as_json:
        terminal.say_json({**view, "calls": dict(used.most_common()), "sessions": sessions, "skippedCalls": skipped})
        return 0
    terminal.say(json.dumps(view, indent=2))
    left_out = f", {skipped} of other servers" if skipped else ""
    terminal.warning(f"{used.total()} calls in {sessions} sessions{left_out}. Clients reach the view at /mcp/v/{name}.")
    return 0


def full_name_of(tool: str, label: str, servers: tuple[str, ...]) -> str | None:
    """The full name of a recorded tool: by its prefix, else by the server whose session it is."""
    for mark in _MARKS:
        server, found, own = tool.partition(mark)
        if found and server in servers:
            return f"{server}.{own}"
    return f"{label}.{tool}" if label in servers else None


def _files(source: Path) -> list[Path]:
    if source.is_dir():
        return sorted(file for file in source.rglob("*.json*") if file.is_file())
    return [source]


def _calls(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The label and the called tools of each session of a file."""
    from pactgate.capture.format import CaptureError, read
    from pactgate.capture.source import chunks_of

    try:
        for session in read(chunks_of(file)):
            called = [name for exchange in session.exchanges for name in _names(exchange.request)]
            yield session.head.label, called
    except CaptureError as problem:
        terminal.warning(f"{file}: {problem.message}")


def _names(request: Any) -> Iterator[str]:
    for message in request if isinstance(request, list) else [request]:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            params = message.get("params")
            name = params.get("name") if isinstance(params, dict) else None
            if isinstance(name, str):
                yield name
