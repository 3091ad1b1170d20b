"""The methods beside tools/call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway
from tests.support.callers import caller
from tests.support.servers import methods, scripted

SI = "io.modelcontextprotocol/serverInfo"
BROKEN = ServerConfig(id="broken", command="no-such-program-anywhere", max_retries=0)


async def test_initialize_agrees_to_the_version_the_face_negotiated() -> None:
    async with open_gateway(scripted()) as inside:
        await inside.ask("tools/list")
        reply = await inside.ask("initialize", params={})
    result = json.loads(reply.result or b"")
    assert result["protocolVersion"] == "2025-11-25"
    assert set(result["capabilities"]) == {"tools", "prompts", "resources"}
    assert result["serverInfo"]["name"] == "pactgate"
    assert "## files\nBe kind." in result["instructions"]


async def test_discover_names_the_modern_versions_and_carries_cache_hints() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.ask("server/discover", who=caller(Era.MODERN), params={})
    result = json.loads(reply.result or b"")
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert {"ttlMs", "cacheScope", "capabilities"} <= set(result)
    assert result["_meta"][SI]["name"] == "pactgate"


async def test_on_its_own_endpoint_a_server_shows_its_own_name_and_instructions() -> None:
    async with open_gateway(scripted()) as inside:
        reply = await inside.ask("initialize", who=caller(scope="files"), params={})
    result = json.loads(reply.result or b"")
    assert result["serverInfo"] == {"name": "scripted", "version": "1"}
    assert result["instructions"] == "Be kind."


async def test_what_is_missing_is_said_in_the_instructions() -> None:
    async with open_gateway(BROKEN, scripted()) as inside:
        await inside.ask("tools/list")
        reply = await inside.ask("initialize", params={})
    instructions = json.loads(reply.result or b"")["instructions"]
    assert "Not available" in instructions
    assert "broken: " in instructions
    assert "no-such-program-anywhere" in instructions


@pytest.mark.requirement("S0/ECO-002")
async def test_a_failed_server_does_not_hide_the_tools_of_others() -> None:
    async with open_gateway(BROKEN, scripted()) as inside:
        reply = await inside.ask("tools/list", params={})
        rows = {row["serverId"]: row for row in inside.gateway.snapshot()["servers"]}
    names = [tool["name"] for tool in json.loads(reply.result or b"")["tools"]]
    assert "files__echo" in names
    assert rows["broken"]["status"] == "error"
    assert rows["files"]["status"] == "connected"


async def test_a_second_list_asks_nobody(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)})) as inside:
        first, second = await inside.ask("tools/list"), await inside.ask("tools/list")
    assert first == second
    assert methods(log).count("tools/list") == 1


async def test_a_cursor_that_is_not_ours_is_refused() -> None:
    async with open_gateway(scripted()) as inside:
        for cursor in ("' OR 1=1 --", 7, "x" * 100_000):
            reply = await inside.ask("tools/list", params={"cursor": cursor})
            assert reply.error is not None
            assert reply.error.code == -32602
        assert (await inside.ask("tools/list", params={"cursor": None})).result is not None


async def test_ping_is_answered_to_legacy_callers() -> None:
    async with open_gateway() as inside:
        assert (await inside.ask("ping")).result == b"{}"
        assert (await inside.ask("ping", who=caller(Era.MODERN))).error is not None
