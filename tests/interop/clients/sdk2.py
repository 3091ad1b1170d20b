"""Drives the 2.x Python client in each of its three modes. Jobs on stdin, one JSON line per job on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp.client.client import Client

MODES = {"sdk2-legacy": "legacy", "sdk2-auto": "auto", "sdk2-modern": "2026-07-28"}


async def play(job: dict[str, Any]) -> dict[str, Any]:
    async with Client(job["url"], mode=MODES[job["client"]]) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(job["tool"], job["arguments"])
        text = "".join(getattr(block, "text", "") for block in result.content)
        return {"listed": listed, "text": text, "version": client.protocol_version}


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
