"""Callers that a server has other tools for see these tools, and nobody else does."""

from __future__ import annotations

import json
import sys
from typing import Final

from pactgate.config.server_settings import ServerConfig
from pactgate.core.values import Caller
from tests.pipeline.conftest import Inside, open_gateway
from tests.support import callers
from tests.support.asking import UPSTREAM, asker

SERVER: Final = ServerConfig(
    id="asking",
    command=sys.executable,
    args=(str(UPSTREAM), json.dumps({"era": "legacy", "extra": True})),
    era="legacy",
    isolation="session",
)


async def listed(inside: Inside, who: Caller) -> set[str]:
    reply = await inside.ask("tools/list", who=who)
    return {tool["name"].removeprefix("asking__") for tool in json.loads(reply.result or b"{}")["tools"]}


async def test_a_tool_for_clients_that_can_be_asked_is_listed_for_them_alone() -> None:
    capable = asker(session="s1")
    async with open_gateway(SERVER) as inside:
        assert await listed(inside, capable) - await listed(inside, callers.caller()) == {"extra"}


async def test_such_a_tool_can_be_called_before_it_was_listed_by_those_it_is_for() -> None:
    async with open_gateway(SERVER) as inside:
        assert (await inside.call("extra", who=asker(session="s1"))).error is None
        unknown = await inside.call("extra", who=callers.caller())
    assert unknown.error is not None
    assert unknown.error.data["failure_mode"] == "unknown_tool"
