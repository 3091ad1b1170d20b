"""The demo servers against an independent peer: the client of the official SDK."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters


def server(name: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", f"pactgate.demo.{name}"])


@pytest.mark.parametrize(
    ("name", "mode", "version", "tool", "arguments", "expected"),
    [
        ("almanac", "legacy", "2025-11-25", "days_between", {"start": "2026-01-01", "end": "2026-01-08"}, {"days": 7}),
        ("almanac", "auto", "2025-11-25", "date_facts", {"date": "2026-11-16"}, {"weekday": "Monday"}),
        ("scratchpad", "auto", "2026-07-28", "note_list", {}, {"notes": [], "count": 0}),
        ("scratchpad", "2026-07-28", "2026-07-28", "note_add", {"text": "one"}, {"count": 1}),
    ],
)
async def test_the_official_client_lists_and_calls(
    name: str, mode: Any, version: str, tool: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    async with Client(server(name), mode=mode, read_timeout_seconds=5) as client:
        assert client.protocol_version == version
        assert len((await client.list_tools()).tools) == 3
        result = await client.call_tool(tool, arguments)
        assert not result.is_error
        assert result.structured_content is not None
        assert {key: result.structured_content[key] for key in expected} == expected


async def test_the_official_client_hears_the_progress_of_a_countdown() -> None:
    heard: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with Client(server("scratchpad"), read_timeout_seconds=5) as client:
        await client.call_tool("countdown", {"steps": 3, "intervalMs": 1}, progress_callback=on_progress)
    assert heard == [1, 2, 3]
