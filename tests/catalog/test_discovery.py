"""Asking one real server for its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.catalog.discovery import DiscoveredLists, discover
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.process.child_reaper import ChildReaper
from tests.support.servers import methods, scripted


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[Session]:
    child_reaper, client = ChildReaper(), HttpClient()
    dialer = Dialer(
        scripted(options=options),
        client=client,
        child_reaper=child_reaper,
        emit=lambda event: None,
        client_info={"name": "tests", "version": "0"},
        max_frame_bytes=2**20,
    )
    async with asyncio.timeout(10):
        session = await dialer.dial()
    try:
        yield session
    finally:
        await session.peer.close()
        await client.close()
        await child_reaper.close()


async def found(**options: Any) -> DiscoveredLists:
    async with connected(**options) as session:
        return await discover(session)


@pytest.mark.requirement("S0/ECO-001")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_discovering_twice_gives_the_same_tools_in_the_same_order(era: str) -> None:
    async with connected(era=era) as session:
        first = await discover(session)
        second, third = await discover(session, first), await discover(session)
    assert first == second
    assert [tool.digest for tool in third.tools] == [tool.digest for tool in first.tools]
    assert [tool.key for tool in first.tools][:2] == ["echo", "wire"]


@pytest.mark.requirement("S0/ECO-001")
async def test_all_pages_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    listed = await found(pages=2, log=str(log))
    assert len(listed.tools) == 10
    assert methods(log).count("tools/list") == 5


async def test_a_cursor_that_comes_twice_ends_the_discovery() -> None:
    with pytest.raises(GatewayFailure) as caught:
        await found(loop_cursor=True)
    assert caught.value.kind is Kind.MALFORMED_RESULT
    assert caught.value.server == "files"


@pytest.mark.requirement("S0/ECO-002")
async def test_malformed_tools_are_left_out_with_a_reason_and_hide_no_other() -> None:
    good = {"name": "good", "inputSchema": {"type": "object"}}
    odd = [
        7,
        {"name": 1, "inputSchema": {}},
        {"name": "no_schema"},
        {"name": "", "inputSchema": {}},
        {"name": "list", "inputSchema": []},
    ]
    named = [{"name": "bell\x07", "inputSchema": {}}, {"name": "x" * 300, "inputSchema": {}}]
    listed = await found(definitions=[*odd, good, *named, {**good, "title": "again"}])
    assert [tool.key for tool in listed.tools] == ["good"]
    assert len(listed.left_out) == 8


async def test_a_definition_is_kept_as_the_server_wrote_it() -> None:
    definition = {
        "name": "odd",
        "inputSchema": {"type": "object", "$defs": {"a": {"$anchor": "x"}}},
        "unknown": [None, 2**64],
    }
    listed = await found(definitions=[definition])
    assert json.loads(listed.tools[0].definition) == definition


async def test_a_tool_with_an_invalid_header_annotation_is_kept_where_no_headers_are_sent() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    listed = await found(definitions=[{"name": "odd", "inputSchema": schema}])
    assert listed.tools[0].header_params == ()
