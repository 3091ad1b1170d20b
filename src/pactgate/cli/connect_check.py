"""Connects once with an entry, as the client that has it would, counts the tools, and reads the status of the gateway."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec import Raw

from pactgate.app import Gateway
from pactgate.config.clients.dialect import OurEntry
from pactgate.config.expand import expand
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.pipeline.status import URI as STATUS_URI
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.peer import UpstreamReplyError

_ATTEMPTS: Final = 6
_PAUSE_S: Final = 0.5


class ConnectCheck(NamedTuple):
    """`tools` counts what a list has; `problem` says why there is none."""

    ok: bool
    tools: int = 0
    problem: str = ""
    had_token: bool = True
    has_read: bool = False


def check_entry(ours: OurEntry | None, token: str | None, *, is_new_key: bool = False) -> ConnectCheck:
    """Connect, list the tools, and disconnect. Without the token that an entry needs, nothing is tried.

    A running gateway knows a new key within a second, so more than one attempt is made with it.
    """
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
    return asyncio.run(_check(Config(servers={server.id: server}), server.id, _ATTEMPTS if is_new_key else 1))


async def _check(config: Config, id_: str, attempts: int) -> ConnectCheck:
    check = await _tried(config, id_)
    for _ in range(attempts - 1):
        if check.ok:
            break
        await asyncio.sleep(_PAUSE_S)
        check = await _tried(config, id_)
    return check


async def _tried(config: Config, id_: str) -> ConnectCheck:
    """Connect, list, and read the status of the gateway: a request that changes nothing wherever it ends."""
    async with Gateway.open(config) as gateway:
        (result,) = (await gateway.discover()).server_results
        session = gateway.connections.connected(id_)
        if result.status != "success" or session is None:
            return ConnectCheck(ok=False, problem=str(result.error))
        has_read = False
        with suppress(UpstreamReplyError):  # permissions and views may leave it out
            await session.peer.request("resources/read", {"uri": Raw(encode_json(STATUS_URI))}, name=STATUS_URI)
            has_read = True
        return ConnectCheck(ok=True, tools=result.tool_count, has_read=has_read)
