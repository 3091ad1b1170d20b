"""`pactgate probe`: call a tool twice with the same arguments and compare the results.

Only a tool that is declared idempotent and not destructive is called, unless `--yes` is given. Enforces the probe of S2/MCP-004.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.call import find_tool, read_arguments
from pactgate.cli.completions import tool_names
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import arguments_option, server_option, with_gateway

_COMPARED: Final = ("content", "structuredContent", "isError")
_SHOWN_DIFFERENCES: Final = 20
_SHOWN_CHARS: Final = 80

Difference = tuple[str, Any, Any]
ABSENT: Final = object()


@click.command(epilog="Example: pactgate probe almanac.date_facts date=2026-11-16")
@click.argument("name", shell_complete=tool_names)
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@arguments_option
@server_option
@click.option("--yes", is_flag=True, help="Also call a tool that is not declared safe to repeat.")
@with_gateway
def probe(
    client: GatewayClient,
    *,
    name: str,
    words: Sequence[str],
    args: str | None,
    server: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Call an idempotent tool twice and compare the results.

    NAME and KEY=VALUE are as in `pactgate call`. Exit codes: 0 the same result, 1 different results or a failure, 2 not safe to call twice.
    """
    tool = find_tool(client.rows("tools"), name, server)
    if tool is None:
        raise CommandError(f"There is no tool {name!r}, or several have that name.", "`pactgate tools` lists them.")
    reason = None if yes else _why_unsafe(tool)
    if reason is not None:
        raise CommandError(f"{name} was not called: {reason}.", "Two calls may do harm. --yes calls it anyway.")
    schema = tool.get("inputSchema")
    arguments = read_arguments(words, args, schema if isinstance(schema, dict) else {})
    results = []
    for turn in ("first", "second"):
        answer = client.call(name, arguments, server=server)
        if "error" in answer:
            raise CommandError(f"The {turn} call failed: {answer['error'].get('message')}", exit_code=1)
        results.append({key: answer["result"][key] for key in _COMPARED if key in answer["result"]})
    return _report(name, list(differences(results[0], results[1])), as_json=as_json)


def differences(one: Any, other: Any, at: str = "") -> Iterator[Difference]:
    """The differences between two results, each with its place as a JSON pointer."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), place)
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            first, second = (items[index] if index < len(items) else ABSENT for items in (one, other))
            yield from differences(first, second, f"{at}/{index}")
    elif type(one) is not type(other) or one != other:
        yield at, one, other


def _why_unsafe(tool: dict[str, Any]) -> str | None:
    if tool.get("isIdempotent") is not True:
        return "it is declared not idempotent" if tool.get("isIdempotent") is False else "it is not declared idempotent"
    return "it may be destructive" if tool.get("isDestructive") is not False else None


def _report(name: str, found: list[Difference], *, as_json: bool) -> int:
    if as_json:
        rows = [{"path": at, "first": _plain(one), "second": _plain(other)} for at, one, other in found]
        terminal.say_json({"tool": name, "equal": not found, "differences": rows})
    elif not found:
        terminal.say(f"{name} returned the same result twice.")
    else:
        terminal.say(f"{name} returned two different results:")
        for at, one, other in found[:_SHOWN_DIFFERENCES]:
            terminal.item("differ", "yellow", f"{at or '/'}: {_brief(one)} then {_brief(other)}")
        if len(found) > _SHOWN_DIFFERENCES:
            terminal.say(f"  and {len(found) - _SHOWN_DIFFERENCES} more")
    return 1 if found else 0


def _plain(value: Any) -> Any:
    return None if value is ABSENT else value


def _brief(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
