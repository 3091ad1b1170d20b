"""`pactgate logs`: the last lines that a server of the running gateway wrote to stderr or sent as log messages."""

from __future__ import annotations

import json
import re
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.completions import server_ids
from pactgate.cli.errors import CommandError
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import with_gateway
from pactgate.core.display import visible

_EXAMPLES: Final = """\
\b
Examples:
  pactgate logs files                the last lines of the server "files"
  pactgate logs files -f             and those that follow, until Ctrl-C
  pactgate logs files --since 5m --json

The token must have the role admin: what a server writes may be about any client.
"""
_PAUSE_S: Final = 0.3
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d{1,6})([smhd])")
_STYLES: Final = {"error": "red", "critical": "red", "alert": "red", "emergency": "red", "warning": "yellow"}


@click.command(epilog=_EXAMPLES)
@click.argument("server", shell_complete=server_ids)
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option("--since", metavar="TIME", help="Only lines of this last while, as 30s, 5m, 2h.")
@with_gateway
def logs(client: GatewayClient, *, server: str, follow: bool, since: str | None, as_json: bool) -> int:
    """Show what a server wrote to stderr, and the log messages it sent. At most the last 1,000 lines are kept."""
    from urllib.parse import quote

    earliest = earliest_of(since)
    known = [row.get("serverId") for row in client.rows("servers")]
    if server not in known:
        names = ", ".join(str(name) for name in known) or "none"
        raise CommandError(f"There is no server {server!r}.", f"The servers are: {names}.", exit_code=1)
    last = left_out = 0
    while True:
        page = client.get(f"/api/logs/{quote(server, safe='')}/{last}")
        if page["leftOut"] > left_out:
            terminal.warning(f"{page['leftOut'] - left_out} lines came too fast and were left out.")
            left_out = page["leftOut"]
        for line in page["lines"]:
            if line["time"] >= earliest:
                _show(line, as_json=as_json)
        last = page["last"]
        if not follow:
            return 0
        time.sleep(_PAUSE_S)


def earliest_of(since: str | None) -> str:
    """The time a `--since` means, as the API writes times; empty for the beginning."""
    if since is None:
        return ""
    found = _DURATION.fullmatch(since)
    if found is None:
        raise CommandError(f"--since {since} is not a while.", "Write it as 30s, 5m, 2h or 1d.", exit_code=2)
    try:
        then = datetime.now(UTC) - timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    except OverflowError:  # more years than there are
        return ""
    return then.strftime("%Y-%m-%dT%H:%M:%S")


def _show(line: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(line), flush=True)
        return
    level = str(line["level"])
    style = _STYLES.get(level, "dim")
    word = terminal.paint(f"{level or line['stream']:<8}", style, sys.stdout)
    print(f"{line['time'][11:19]} {word} {visible(str(line['text']))}", flush=True)
