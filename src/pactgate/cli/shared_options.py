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
    """The gateway that a command means without `--url`: the running one of this folder's configuration, else the only one that runs."""
    from pactgate.cli.config_file import find_config, load_config
    from pactgate.cli.gateway_client import DEFAULT_URL, address_of
    from pactgate.cli.running_gateways import running_gateways

    path, running = find_config(None), running_gateways()
    here = [gateway for gateway in running if path is not None and gateway.config == str(path.resolve())]
    if len(here or running) == 1:
        return (here or running)[0].url
    if len(here or running) > 1:
        found = "\n".join(f"  {gateway.url}  {gateway.config or 'demo'}" for gateway in here or running)
        raise CommandError("Several gateways run; say which one with --url.", found)
    if path is None:
        return DEFAULT_URL
    listen = load_config(path, only=("listen",)).listen
    if not listen.port:
        raise CommandError(
            f"No gateway of {path} runs, and it takes any free port.", "Start it with `pactgate serve`, or give --url."
        )
    return address_of(listen.host, listen.port)
