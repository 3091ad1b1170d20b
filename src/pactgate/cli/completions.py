"""What the shell completes beside commands and options: tools, prompts, resources and servers, clients, and paths of settings.

Names come from the running gateway, those of servers else from the configuration file. Nothing is completed where neither can be read.
Must not: print anything, or wait longer than a request of any command does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from pactgate.cli.errors import CommandError

if TYPE_CHECKING:
    from pactgate.cli.gateway_client import GatewayClient


def tool_names(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    return _beginning(begun, (row.get("exposedName") for row in _rows(ctx, "tools")))


def prompt_names(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    return _beginning(begun, (one.get("name") for one in _listed(ctx, "prompts/list", "prompts")))


def resource_uris(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    return _beginning(begun, (one.get("uri") for one in _listed(ctx, "resources/list", "resources")))


def server_ids(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Those of the running gateway, and those of the file: a disabled one is only there."""
    return _beginning(begun, [*(row.get("serverId") for row in _rows(ctx, "servers")), *_configured(ctx)])


def client_ids(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from pactgate.config.clients.table import clients

    return _beginning(begun, (client.id for client in clients()))


def setting_paths(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from pactgate.config.change import shown
    from pactgate.config.model import Config

    return _beginning(begun, _paths(shown(Config()), ""))


def _paths(settings: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in settings.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")


def _beginning(begun: str, names: Iterable[Any]) -> list[str]:
    return [name for name in dict.fromkeys(names) if isinstance(name, str) and name.startswith(begun)]


def _rows(ctx: click.Context, name: str) -> list[dict[str, Any]]:
    with suppress(CommandError):
        return _client(ctx).rows(name)
    return []


def _listed(ctx: click.Context, method: str, member: str) -> list[dict[str, Any]]:
    with suppress(CommandError):
        found = _client(ctx).ask(method, {}).get("result", {}).get(member)
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return []


def _client(ctx: click.Context) -> GatewayClient:
    from pactgate.cli.chosen_gateway import gateway_client

    return gateway_client(**{name: ctx.params.get(name) for name in ("url", "token", "token_file", "ca_file")})


def _configured(ctx: click.Context) -> list[str]:
    from pactgate.cli.config_file import find_config
    from pactgate.config.edit import SERVER_KEYS, value_at
    from pactgate.config.problems import ConfigFindings
    from pactgate.config.reader import FORMATS, Format, read

    with suppress(CommandError, OSError, UnicodeDecodeError):
        path = find_config(ctx.params.get("config"))
        if path is not None:
            form = FORMATS.get(path.suffix.lower(), Format.JSON)
            values = read(path.read_text(encoding="utf-8-sig"), form, ConfigFindings(path.name))
            return [name for key in SERVER_KEYS for name in value_at(values, [key]) or ()]
    return []
