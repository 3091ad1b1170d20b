"""Drives the 1.x Python client. Runs in .tools/mcp1. Jobs on stdin, one JSON line per job on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def play(job: dict[str, Any]) -> dict[str, Any]:
    async with (
        streamablehttp_client(job["url"]) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        version = (await session.initialize()).protocolVersion
        listed = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool(job["tool"], job["arguments"])
        text = "".join(getattr(block, "text", "") for block in result.content)
        return {"listed": listed, "text": text, "version": version}


async def main() -> None:
    for job in json.load(sys.stdin):
        try:
            outcome = await asyncio.wait_for(play(job), job["seconds"])
        except Exception as problem:  # noqa: BLE001 - whatever a client raises is the finding to report
            outcome = {"error": f"{type(problem).__name__}: {problem}", "causes": causes(problem)}
        print(json.dumps({"job": job, **outcome}), flush=True)


def causes(problem: BaseException) -> list[str]:
    if isinstance(problem, BaseExceptionGroup):
        return [cause for inner in problem.exceptions for cause in causes(inner)]
    return [f"{type(problem).__name__}: {problem}"]


if __name__ == "__main__":
    asyncio.run(main())
