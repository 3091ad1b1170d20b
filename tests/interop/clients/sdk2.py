"""Drives the 2.x Python client in each of its three modes."""

from __future__ import annotations

from typing import Any

from mcp.client.client import Client

from tests.interop.clients.jobs import play_all, text_of

MODES = {"sdk2-legacy": "legacy", "sdk2-auto": "auto", "sdk2-modern": "2026-07-28"}


async def play(job: dict[str, Any]) -> dict[str, Any]:
    async with Client(job["url"], mode=MODES[job["client"]]) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(job["tool"], job["arguments"])
        text = text_of(result.content)
        return {"listed": listed, "text": text, "version": client.protocol_version}


if __name__ == "__main__":
    play_all(play)
