"""`pactgate prompts`, `prompt`, `resources` and `read`: what a gateway offers beside tools. `--json` prints the result as it came."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.call import show_failure, shown_block
from pactgate.cli.completions import prompt_names, resource_uris
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import CommandWithServer, server_option, with_gateway
from pactgate.cli.table import Column, show_table

_PROMPT_COLUMNS: Final = (Column("PROMPT"), Column("ARGUMENTS"), Column("DESCRIPTION", is_long=True))
_RESOURCE_COLUMNS: Final = (Column("URI"), Column("TYPE", from_width=80), Column("NAME", is_long=True))


@click.command(cls=CommandWithServer)
@server_option
@with_gateway
def prompts(client: GatewayClient, *, server: str | None, as_json: bool) -> int:
    """List the prompts that can be used, with their arguments; those in brackets are optional."""
    found = _list(client, "prompts/list", "prompts", server)
    if as_json:
        terminal.say_json(found)
    elif found:
        rows = ([one.get("name"), _arguments(one), one.get("description") or one.get("title") or ""] for one in found)
        show_table(_PROMPT_COLUMNS, rows)
    else:
        terminal.say("There are no prompts now. `pactgate servers` shows the servers.")
    return 0


@click.command(cls=CommandWithServer)
@click.argument("name", shell_complete=prompt_names)
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@server_option
@with_gateway
def prompt(client: GatewayClient, *, name: str, words: Sequence[str], server: str | None, as_json: bool) -> int:
    """Get a prompt and show its messages. KEY=VALUE is an argument."""
    result = _ask(client, "prompts/get", {"name": name, "arguments": _pairs(words)}, name, server)
    if result is None:
        return 1
    if as_json:
        terminal.say_json(result)
        return 0
    for message in _objects(result.get("messages")):
        terminal.title(f"{message.get('role')}:")
        terminal.say(shown_block(message.get("content")))
    return 0


@click.command(cls=CommandWithServer)
@server_option
@with_gateway
def resources(client: GatewayClient, *, server: str | None, as_json: bool) -> int:
    """List the resources and the templates of resources."""
    found = _list(client, "resources/list", "resources", server)
    templates = _list(client, "resources/templates/list", "resourceTemplates", server)
    if as_json:
        terminal.say_json({"resources": found, "resourceTemplates": templates})
    elif found or templates:
        rows = (
            [one.get("uri") or one.get("uriTemplate"), one.get("mimeType"), one.get("title") or one.get("name") or ""]
            for one in (*found, *templates)
        )
        show_table(_RESOURCE_COLUMNS, rows)
    else:
        terminal.say("There are no resources now. `pactgate servers` shows the servers.")
    return 0


@click.command(cls=CommandWithServer)
@click.argument("uri", shell_complete=resource_uris)
@server_option
@with_gateway
def read(client: GatewayClient, *, uri: str, server: str | None, as_json: bool) -> int:
    """Read a resource. Text is printed; other data is written to standard output where that is a file or a pipe."""
    result = _ask(client, "resources/read", {"uri": uri}, uri, server)
    if result is None:
        return 1
    if as_json:
        terminal.say_json(result)
        return 0
    for content in _objects(result.get("contents")):
        if isinstance(content.get("blob"), str):
            _write_data(content["blob"], str(content.get("mimeType")))
        else:
            terminal.say(str(content.get("text", "")))
    return 0


def _write_data(encoded: str, mime_type: str) -> None:
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise CommandError("The data of the resource is not base64.", exit_code=1) from None
    if terminal.is_terminal(sys.stdout):
        terminal.say(f"[{mime_type}, {len(data)} bytes; redirect the output to a file to get it]")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _list(client: GatewayClient, method: str, member: str, server: str | None) -> list[dict[str, Any]]:
    answer = client.ask(method, {})
    if "error" in answer:
        raise CommandError(str(answer["error"].get("message")), exit_code=1)
    shown = _objects(answer["result"].get(member))
    starts = (f"{server}__", f"{server}.", f"{server}+")
    names = (
        (one, str(one.get("name") if member == "prompts" else one.get("uri") or one.get("uriTemplate")))
        for one in shown
    )
    return [one for one, name in names if server is None or name.startswith(starts)]


def _ask(
    client: GatewayClient, method: str, params: dict[str, Any], name: str, server: str | None
) -> dict[str, Any] | None:
    """The result; None where the request failed, which is shown."""
    with terminal.spinner(f"waiting for {name}"):
        answer = client.ask(method, params, name=name, server=server)
    if "error" in answer:
        show_failure(str(answer["error"].get("message")), answer["error"].get("data"))
        return None
    result: dict[str, Any] = answer["result"]
    return result


def _arguments(one: dict[str, Any]) -> str:
    found = _objects(one.get("arguments"))
    return " ".join(str(each.get("name")) if each.get("required") else f"[{each.get('name')}]" for each in found)


def _pairs(words: Iterable[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, is_pair, value = word.partition("=")
        if not is_pair or not key:
            raise CommandError(f"{word!r} is not KEY=VALUE.")
        found[key] = value
    return found


def _objects(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
