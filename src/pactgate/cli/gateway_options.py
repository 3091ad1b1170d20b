"""How a command reaches the running gateway: its address, its token, and plain words when nothing answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pactgate.cli import terminal

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", envvar="PACTGATE_URL", help="The gateway. Default: as configured, else port 7411 here."
    ),
]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", envvar="PACTGATE_TOKEN", help="Token, if the gateway wants one."),
]


def ask(url: str | None, token: str | None, question: Callable[[Any], int]) -> int:
    """Put a question to the running gateway, and say so in plain words when there is none."""
    from pactgate.cli.gateway_client import BadAddressError, GatewayClient, GatewayProblem

    try:
        return question(GatewayClient(url or _configured_url(), token))
    except GatewayProblem as problem:
        sys.stdout.flush()
        terminal.problem(problem.message, problem.hint)
        return 2 if isinstance(problem, BadAddressError) else 1


def _configured_url() -> str:
    """Where the configuration of this folder says the gateway listens; the usual place if it does not say so readably."""
    from pathlib import Path

    from pactgate.cli.gateway_client import DEFAULT_URL, address_of
    from pactgate.config.load import find, load
    from pactgate.config.problems import ConfigurationError

    try:
        path = find(Path.cwd(), os.environ)
        listen = load(path, environ=os.environ).listen if path is not None else None
    except ConfigurationError:
        listen = None
    return DEFAULT_URL if listen is None or not listen.port else address_of(listen.host, listen.port)
