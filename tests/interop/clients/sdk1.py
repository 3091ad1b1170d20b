"""Drives the 1.x Python client. Runs in .tools/mcp1."""

from __future__ import annotations

from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from tests.interop.clients.jobs import play_all, text_of


async def play(job: dict[str, Any]) -> dict[str, Any]:
    async with (
        streamablehttp_client(job["url"]) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        version = (await session.initialize()).protocolVersion
        listed = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool(job["tool"], job["arguments"])
        text = text_of(result.content)
        return {"listed": listed, "text": text, "version": version}


if __name__ == "__main__":
    play_all(play)
