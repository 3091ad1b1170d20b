"""Asking one real server for its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from pactgate.catalog import discovery
from pactgate.catalog.discovery import MAX_LEFT_OUT, DiscoveredLists, discover
from pactgate.core.events import DiscoveryFailed
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.process.child_reaper import ChildReaper
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.eventually import eventually
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
        max_frame_bytes=2**22,
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
    assert [tool.key for tool in first.tools] == sorted(tool.key for tool in first.tools)


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


FAT_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def fat(method: str, **size: int) -> dict[str, Any]:
    return {method: {"member": FAT_LISTS[method], **size}}


@pytest.mark.parametrize("method", FAT_LISTS)
async def test_a_list_with_too_many_bytes_is_left_out_and_hides_no_other_server(method: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    too_large = fat(method, pages=400, entries=20, bytes=30_000)
    evil = scripted("evil", options={"fat": too_large, "log": str(log)})
    async with open_gateway(evil, scripted("good")) as inside:
        reply = await inside.ask(method)
        assert text_of(await inside.call("good.echo", {"text": "hi"})) == "hi"
        await eventually(lambda: any(isinstance(event, DiscoveryFailed) for event in inside.events))
        row = inside.gateway.connections.rows()[0]
    assert reply.result is not None
    assert len(reply.result) < 20_000
    assert methods(log).count(method) == 7  # 4 MiB of definitions are full on the seventh page of 600 kB
    assert "its list is too large" in str(row["lastError"]) + str(row["leftOut"])
    reasons = [event.reason for event in inside.events if isinstance(event, DiscoveryFailed)]
    assert any("skipped: its list is too large" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("size", "pages"),
    [({"entries": 12, "bytes": 70_000}, 20), ({"entries": 1, "bytes": 900_000}, 19)],
)
async def test_pages_of_which_nothing_is_kept_are_bounded_too(size: dict[str, int], pages: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(GatewayFailure) as caught:
        await found(fat=fat("tools/list", pages=1000, **size), log=str(log))
    assert caught.value.kind is Kind.RESPONSE_TOO_LARGE
    assert methods(log).count("tools/list") == pages


async def test_an_entry_with_a_very_long_description_is_skipped() -> None:
    definitions = [
        {"name": name, "description": "d" * length, "inputSchema": {"type": "object"}}
        for name, length in {"long": 65_535, "short": 100}.items()
    ]
    listed = await found(definitions=definitions)
    assert [tool.key for tool in listed.tools] == ["short"]
    assert listed.left_out == ("an entry of tools/list: the description of 'long' has more than 65536 bytes",)


async def test_a_very_large_definition_is_skipped() -> None:
    listed = await found(fat=fat("tools/list", pages=1, entries=2, bytes=600_000))
    assert listed.tools == ()
    assert set(listed.left_out) == {"an entry of tools/list: its definition has more than 524288 bytes"}


async def test_a_page_of_very_many_values_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(GatewayFailure) as caught:
        await found(fat=fat("tools/list", pages=1, entries=0, bytes=0, zeros=400_002))
    assert "its list is too large" in caught.value.message
    assert caught.value.kind is Kind.RESPONSE_TOO_LARGE


async def test_reasons_for_skipped_entries_are_bounded() -> None:
    listed = await found(fat=fat("tools/list", pages=1, entries=0, bytes=0, zeros=1000))
    assert len(listed.left_out) == MAX_LEFT_OUT + 1
    assert listed.left_out[-1] == f"and {1000 - MAX_LEFT_OUT} more"
    assert max(map(len, listed.left_out)) <= 200


@pytest.mark.parametrize(
    "definition",
    [
        b'{"name":"a","name":"b","inputSchema":{"type":"object"}}',
        b'{"name":"a","inputSchema":{"type":"object","type":"string"}}',
        b'{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"readOnlyHint":false}}',
    ],
)
def test_a_definition_with_a_key_twice_is_left_out(definition: bytes) -> None:
    assert "twice" in str(discovery._key(Raw(definition), discovery.TOOLS))
