"""What an operator reads about one server, in each of its states."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.config.server_settings import ServerConfig
from tests.pipeline.conftest import open_gateway
from tests.support.servers import scripted


async def row_of(server: ServerConfig) -> dict[str, Any]:
    async with open_gateway(server) as inside:
        await inside.ask("tools/list")
        return inside.gateway.connections.rows()[0]


@pytest.mark.requirement("S0/ECO-200")
async def test_a_connected_server_says_so_and_counts_its_tools() -> None:
    row = await row_of(scripted(era="legacy"))
    assert (row["status"], row["lastError"], row["toolCount"]) == ("connected", None, 10)
    assert row["lastConnectedAt"] is not None
    assert (row["era"], row["transport"]) == ("legacy", "stdio")


async def test_tools_that_a_legacy_server_may_hide_from_all_are_said_where_clients_share_its_session() -> None:
    shared, own = await row_of(scripted(era="legacy")), await row_of(scripted(era="legacy", isolation="session"))
    assert "all clients share one list" in shared["mayHide"]
    assert own["mayHide"] is None


@pytest.mark.parametrize(
    ("settings", "transport"),
    [
        ({"url": "http://127.0.0.1:9/mcp"}, "http"),
        ({"command": "none"}, "stdio"),
        ({"command": "none", "unresolved": "There is no variable TOKEN."}, None),
    ],
)
async def test_a_server_that_was_never_connected_says_how_it_would_be_reached(
    settings: dict[str, Any], transport: str | None
) -> None:
    assert (await row_of(ServerConfig(id="crm", enabled=False, **settings)))["transport"] == transport
