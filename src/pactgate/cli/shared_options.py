"""Options that several commands share. Must not: import what `--help` does not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final

import click

from pactgate.cli.errors import CommandError

config_option: Final = click.option(
    "--config", "-c", metavar="FILE", help="Configuration file. Default: pactgate.* in this folder, else the user's."
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
server_option: Final = click.option("--server", "-s", metavar="ID", help="Only this server.")
arguments_option: Final = click.option("--args", metavar="JSON", help="All arguments as one JSON object.")
header_option: Final = click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Send this header to the URL. Repeatable."
)
_url_option: Final = click.option(
    "--url",
    metavar="URL",
    envvar="PACTGATE_URL",
    help="Address of the gateway. Default: as configured, else http://127.0.0.1:7411. Also: PACTGATE_URL.",
)
_token_option: Final = click.option(
    "--token",
    metavar="TOKEN",
    envvar="PACTGATE_TOKEN",
    help="Bearer token, if the gateway needs one. Also: PACTGATE_TOKEN.",
)


def with_gateway(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--url`, `--token` and `--json`, and call the function with a GatewayClient as its first argument."""

    @wraps(function)
    def run(*, url: str | None, token: str | None, **options: object) -> int:
        from pactgate.cli.gateway_client import GatewayClient

        return function(GatewayClient(url or configured_url(), token), **options)

    return _url_option(_token_option(json_option(run)))


def configured_url() -> str:
    """The address in the configuration of this folder, or the default address."""
    from pactgate.cli.config_file import find_config, load_config
    from pactgate.cli.gateway_client import DEFAULT_URL, address_of

    try:
        listen = load_config(find_config(None)).listen
    except CommandError:
        return DEFAULT_URL
    return address_of(listen.host, listen.port) if listen.port else DEFAULT_URL
