"""Connects once with an entry, as the client that has it would, and counts the tools."""

from __future__ import annotations

import asyncio
import os
from typing import Any, NamedTuple

from pactgate.cli.connect_once import connect_once
from pactgate.config.clients.dialect import OurEntry
from pactgate.config.expand import expand
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig


class ConnectCheck(NamedTuple):
    """`tools` counts what a list has; `problem` says why there is none."""

    ok: bool
    tools: int = 0
    problem: str = ""
    had_token: bool = True


def check_entry(ours: OurEntry | None, token: str | None) -> ConnectCheck:
    """Connect, list the tools, and disconnect. Without the token that an entry needs, nothing is tried."""
    assert ours is not None, "our own entry can be read"
    entry = ours.entry
    headers = {}
    for name, value in entry.get("headers", {}).items():
        expansion = expand(value, os.environ)
        if expansion.missing or expansion.faults:
            if token is None:
                return ConnectCheck(ok=False, had_token=False)
            headers[name] = f"Bearer {token}"
        else:
            headers[name] = expansion.text
    server = ServerConfig(
        id="gateway",
        command=entry.get("command"),
        args=tuple(entry.get("args", ())),
        url=entry.get("url"),
        headers=headers,
        max_retries=0,
    )
    rows: list[dict[str, Any]] = asyncio.run(connect_once(Config(servers={"gateway": server}), lambda _: None)).rows
    row = next(row for row in rows if row["serverId"] == "gateway")
    if row["lastError"]:
        return ConnectCheck(ok=False, problem=str(row["lastError"]))
    return ConnectCheck(ok=True, tools=row["toolCount"])
