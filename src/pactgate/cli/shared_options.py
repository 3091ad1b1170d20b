"""Options that several commands share. Must not: import what `--help` does not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Final

import click

from pactgate.cli.completions import server_ids
from pactgate.cli.errors import CommandError

if TYPE_CHECKING:
    from pactgate.cli.gateway_client import GatewayClient
    from pactgate.cli.running_gateways import RunningGateway

_MAX_TOKEN_CHARS: Final = 8192
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


def gateway_client(*, url: str | None, token: str | None, token_file: str | None, ca_file: str | None) -> GatewayClient:
    """The client of the gateway that these options mean."""
    from pactgate.cli.gateway_client import UNIX, GatewayClient

    found = configured_gateway() if url is None else _gateway_at(url)
    address = found.url if found.socket is None else f"{UNIX}{found.socket}"
    given = token if token_file is None else _read_token(token_file)
    return GatewayClient(address, given, ca_file=ca_file, certificate=found.certificate)


def _read_token(file: str) -> str:
    """The first line of the file. It takes precedence over PACTGATE_TOKEN."""
    try:
        with click.open_file(file, encoding="utf-8") as stream:
            token = str(stream.readline(_MAX_TOKEN_CHARS + 1)).strip()
    except OSError as problem:
        raise CommandError(f"The token can't be read from {file}: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"The token can't be read from {file}: it is not text.") from None
    if not 0 < len(token) <= _MAX_TOKEN_CHARS:
        raise CommandError(f"{'Standard input' if file == '-' else file} has no token in its first line.")
    return token


def _gateway_at(url: str) -> RunningGateway:
    """The gateway at an address. One of this user that runs there has the certificate that its file says."""
    from pactgate.cli.running_gateways import RunningGateway, running_gateways

    known = (gateway for gateway in running_gateways() if url.startswith("https://") and gateway.url == url)
    return RunningGateway(url=url, pid=0, certificate=next((gateway.certificate for gateway in known), None))


def configured_gateway() -> RunningGateway:
    """The gateway that a command means without `--url`: the running one of this folder's configuration, else the only one that runs."""
    from pactgate.cli.config_file import find_config, load_config
    from pactgate.cli.gateway_client import DEFAULT_URL, UNIX, address_of
    from pactgate.cli.running_gateways import RunningGateway, running_gateways

    path, running = find_config(None), running_gateways()
    here = [gateway for gateway in running if path is not None and gateway.config == str(path.resolve())]
    if len(here or running) == 1:
        return (here or running)[0]
    if len(here or running) > 1:
        found = "\n".join(f"  {gateway.url}  {gateway.config or 'demo'}" for gateway in here or running)
        raise CommandError("Several gateways run; say which one with --url.", found)
    if path is None:
        return RunningGateway(url=DEFAULT_URL, pid=0)
    listen = load_config(path, only=("listen",)).listen
    if listen.port == 0:
        raise CommandError(
            f"No gateway of {path} runs, and it takes any free port.", "Start it with `pactgate serve`, or give --url."
        )
    certificate = None if listen.tls is None else listen.tls.certificate
    if listen.tcp_port is None:
        return RunningGateway(url=f"{UNIX}{listen.socket}", pid=0)
    url = address_of(listen.host, listen.tcp_port, has_tls=listen.tls is not None)
    return RunningGateway(url=url, pid=0, certificate=certificate)
