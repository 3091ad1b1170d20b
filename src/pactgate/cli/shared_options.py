"""Options that several commands share. Must not: import what `--help` does not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final

import click

from pactgate.cli.chosen_gateway import gateway_client
from pactgate.cli.completions import server_ids

_SERVER_WORDS: Final = "pactgate.server"

config_option: Final = click.option(
    "--config",
    "-c",
    metavar="FILE",
    help="Configuration file. Default: ./pactgate.*, else ~/.config/pactgate/pactgate.*",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
server_option: Final = click.option("--server", "-s", metavar="ID", help="Only this server.", shell_complete=server_ids)
arguments_option: Final = click.option("--args", metavar="JSON", help="All arguments as one JSON object.")
header_option: Final = click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Send this header to the URL. Repeatable."
)
_url_option: Final = click.option(
    "--url",
    metavar="URL",
    envvar="PACTGATE_URL",
    help="Address of the gateway, or unix:PATH. Default: as configured, else http://127.0.0.1:7411. Also: PACTGATE_URL.",
)
_ca_file_option: Final = click.option(
    "--ca-file", metavar="FILE", envvar="PACTGATE_CA_FILE", help="Certificate authority of the gateway, for https."
)
_token_option: Final = click.option(
    "--token",
    metavar="TOKEN",
    envvar="PACTGATE_TOKEN",
    help="Bearer token, if the gateway needs one. Every user of this machine can see it in the list of processes: better is "
    "--token-file or PACTGATE_TOKEN.",
)
_token_file_option: Final = click.option(
    "--token-file", metavar="FILE", help="Read the bearer token from this file; - is standard input."
)


class CommandWithServer(click.Command):
    """A command whose words after `--` start a server, or are its URL: it is asked instead of a gateway."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_SERVER_WORDS] = args[:at], tuple(args[at + 1 :])
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...|URL]"]


def with_gateway(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of the connection and `--json`, and call the function with a GatewayClient as its first argument."""

    @wraps(function)
    def run(
        *, url: str | None, token: str | None, token_file: str | None, ca_file: str | None, **options: object
    ) -> int:
        words = click.get_current_context().meta.get(_SERVER_WORDS)
        if words is not None:
            from pactgate.cli.direct_server import direct_client  # the whole gateway

            with direct_client(words) as client:
                return function(client, **options)
        return function(gateway_client(url=url, token=token, token_file=token_file, ca_file=ca_file), **options)

    return gateway_options(json_option(run))


def gateway_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of the connection to a gateway."""
    return _url_option(_token_option(_token_file_option(_ca_file_option(function))))
