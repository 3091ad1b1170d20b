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
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.failures import ENVELOPE_KEY, Verdict

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

    The most used tools come first. Calls that were refused do not count. Where sessions of clients of a gateway are there, they alone
    count: its sessions with servers have the same calls.
    """
    path = find_config(config)
    servers = () if path is None else tuple(load_config(path, only=("mcpServers", "servers")).servers)
    of_gateway, direct, sessions = Counter[str | None](), Counter[str | None](), 0
    for file in _files(Path(source)):
        for label, called in _calls(file):
            sessions += 1
            for tool, result in called:
                envelope = _envelope(result)
                if envelope is None:
                    direct[full_name_of(tool, label, servers)] += 1
                elif envelope.get("server") != OWN_SERVER_ID and _was_sent(envelope):
                    of_gateway[full_name_of(str(envelope.get("tool")), label, servers)] += 1
    counted = of_gateway or direct
    skipped = counted.pop(None, 0)
    used = Counter({tool: count for tool, count in counted.items() if tool is not None})
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


def _calls(file: Path) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """The label of each session of a file, and the tools that it called with the results."""
    from pactgate.capture.format import CaptureError, read
    from pactgate.capture.source import chunks_of

    try:
        for session in read(chunks_of(file)):
            called = [call for exchange in session.exchanges for call in _results(exchange.request, exchange.response)]
            yield session.head.label, called
    except CaptureError as problem:
        terminal.warning(f"{file}: {problem.message}")


def _results(request: Any, response: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tools that were called, and the results that came."""
    requests, responses = (body if isinstance(body, list) else [body] for body in (request, response))
    results = {str(one.get("id")): one.get("result") for one in responses if isinstance(one, dict)}
    for message in requests:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            params, result = message.get("params"), results.get(str(message.get("id")))
            name = params.get("name") if isinstance(params, dict) else None
            if isinstance(name, str) and isinstance(result, dict):
                yield name, result


def _envelope(result: dict[str, Any]) -> dict[str, Any] | None:
    """What the gateway says of the call: the tool itself, whatever it is called in a view and by whom."""
    meta = result.get("_meta")
    found = meta.get(ENVELOPE_KEY) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else None


def _was_sent(envelope: dict[str, Any]) -> bool:
    failure = envelope.get("failure")
    return not isinstance(failure, dict) or failure.get("verdict") != Verdict.DID_NOT_RUN.value
