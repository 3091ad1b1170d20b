"""Lists are asked for once by everybody, and a failed one leaves nothing that claims to be true."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pactgate.core.failures import GatewayFailure
from tests.pipeline.conftest import open_gateway
from tests.support.eventually import eventually
from tests.support.servers import methods, scripted

LONG_S = 3600.0


@pytest.mark.requirement("S0/ECO-001")
async def test_a_forced_refresh_asks_the_server_and_yields_an_equal_list(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        await inside.ask("tools/list")
        server = inside.gateway.connections.servers["files"]
        first, listed_at = server.lists.found, server.lists.listed_at
        assert await server.refresh(force=False, max_age_s=LONG_S) is False
        assert server.lists.listed_at == listed_at
        assert await server.refresh(force=True, max_age_s=LONG_S) is True
    assert server.lists.found == first
    assert methods(log).count("tools/list") == 2


@pytest.mark.requirement("S0/ECO-001")
async def test_those_who_ask_at_the_same_time_share_one_question(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        await inside.ask("tools/list")
        server = inside.gateway.connections.servers["files"]
        await asyncio.gather(*(server.refresh(force=True, max_age_s=0) for _ in range(20)))
    assert methods(log).count("tools/list") == 2


@pytest.mark.requirement("S0/ECO-001")
async def test_a_refresh_that_fails_is_an_error_and_leaves_no_tools() -> None:
    async with open_gateway(scripted(max_retries=0)) as inside:
        await inside.ask("tools/list")
        server = inside.gateway.connections.servers["files"]
        session = server.session
        assert session is not None
        assert session.pid is not None
        os.kill(session.pid, signal.SIGSTOP)
        asking = asyncio.create_task(server.refresh(force=True, max_age_s=0))
        await asyncio.sleep(0)
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(GatewayFailure):
            await asking


@pytest.mark.requirement("S0/ECO-001")
async def test_a_server_that_comes_back_with_another_tool_shows_it_at_once(tmp_path: Path) -> None:
    marker = tmp_path / "again"
    options = {"extra_after": str(marker)}
    async with open_gateway(scripted(options=options)) as inside:
        await inside.ask("tools/list")
        server = inside.gateway.connections.servers["files"]
        assert "extra" not in {tool.key for tool in server.lists.found.tools}
        marker.touch()
        await inside.call("files.crash")
        await eventually(lambda: "extra" in {tool.key for tool in server.lists.found.tools})
