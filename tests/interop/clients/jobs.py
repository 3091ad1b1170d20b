"""What the drivers of clients in Python have in common: jobs on stdin, one JSON line per job on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Play = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def play_all(play: Play) -> None:
    asyncio.run(_play_all(play))


async def _play_all(play: Play) -> None:
    for job in json.load(sys.stdin):
        try:
            outcome = await asyncio.wait_for(play(job), job["seconds"])
        except Exception as problem:  # noqa: BLE001 - whatever a client raises is the finding to report
            outcome = {"error": f"{type(problem).__name__}: {problem}", "causes": _causes(problem)}
        print(json.dumps({"job": job, **outcome}), flush=True)


def _causes(problem: BaseException) -> list[str]:
    if isinstance(problem, BaseExceptionGroup):
        return [cause for inner in problem.exceptions for cause in _causes(inner)]
    return [f"{type(problem).__name__}: {problem}"]


def text_of(blocks: Any) -> str:
    return "".join(getattr(block, "text", "") for block in blocks)
