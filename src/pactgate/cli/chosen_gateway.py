"""Which gateway a command means: the one at `--url`, else the running one. Must not: import what `--help` does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from pactgate.cli.errors import CommandError

if TYPE_CHECKING:
    from pactgate.cli.gateway_client import GatewayClient
    from pactgate.cli.running_gateways import RunningGateway

_MAX_TOKEN_CHARS: Final = 8192


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
    meant = list({(one.url, one.socket): one for one in here or running}.values())  # replicas of one port are one
    if len(meant) == 1:
        return meant[0]
    if meant:
        found = "\n".join(f"  {gateway.url}  {gateway.config or 'demo'}" for gateway in meant)
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
