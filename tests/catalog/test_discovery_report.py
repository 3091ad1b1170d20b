"""Discovery: one row per server, whatever happens to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.config.model import Discovery
from pactgate.config.server_settings import ServerConfig
from tests.pipeline.conftest import open_gateway
from tests.support.eventually import eventually
from tests.support.servers import methods, scripted

BROKEN = ServerConfig(id="broken", command="no-such-program-anywhere", max_retries=0)


@pytest.mark.requirement("S0/ECO-001")
async def test_a_second_discovery_within_the_interval_asks_nobody_and_says_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        first = await inside.gateway.discover()
        second = await inside.gateway.discover()
        asked = methods(log).count("tools/list")
        forced = await inside.gateway.discover(force_refresh=True)
    assert [row.tool_count for row in first.server_results] == [10]
    assert second.server_results[0].duration_ms == 0
    assert asked == 1
    assert methods(log).count("tools/list") == 2
    assert forced.server_results[0].tool_count == 10


@pytest.mark.requirement("S0/ECO-002")
async def test_every_server_has_its_row_and_a_failure_is_one_of_them() -> None:
    async with open_gateway(BROKEN, scripted(), scripted("off", enabled=False)) as inside:
        report = await inside.gateway.discover(include_disabled=True)
        usual = await inside.gateway.discover()
    rows = {row.server_id: row for row in report.server_results}
    assert {id_: row.status for id_, row in rows.items()} == {"broken": "error", "files": "success", "off": "skipped"}
    assert rows["broken"].error_code == "MCP_ECO_CONNECTION_FAILED"
    assert "no-such-program-anywhere" in (rows["broken"].error or "")
    assert [row.server_id for row in usual.server_results] == ["broken", "files"]


@pytest.mark.requirement("S0/ECO-201")
async def test_including_disabled_servers_never_connects_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(enabled=False, options={"log": str(log)})) as inside:
        report = await inside.gateway.discover(force_refresh=True, include_disabled=True)
    assert report.server_results[0].status == "skipped"
    assert not log.exists()


async def test_an_unknown_server_is_a_row_that_says_so() -> None:
    async with open_gateway() as inside:
        report = await inside.gateway.discover(server_ids=["nobody"])
    assert report.server_results[0].error_code == "MCP_ECO_SERVER_NOT_FOUND"


@pytest.mark.requirement("S0/ECO-002")
async def test_a_hanging_list_fails_its_own_row_only() -> None:
    mute = scripted("mute", options={"hang": "list"}, request_timeout_ms=300)
    async with open_gateway(mute, scripted()) as inside:
        report = await inside.gateway.discover()
    assert {row.server_id: row.status for row in report.server_results} == {"mute": "error", "files": "success"}


@pytest.mark.requirement("S0/ECO-001")
async def test_a_list_older_than_the_interval_is_asked_for_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(
        scripted(options={"log": str(log)}), discovery=Discovery(discovery_interval_ms=500)
    ) as inside:
        await inside.gateway.discover()
        listed = inside.gateway.connections.servers["files"].lists
        assert listed.is_fresh(0.5)
        await eventually(lambda: not listed.is_fresh(0.5))
        await inside.gateway.discover()
    assert methods(log).count("tools/list") == 2
