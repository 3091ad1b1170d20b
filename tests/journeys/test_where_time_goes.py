"""Where the time of a call went: at a slow server, in a full queue, in a gate that waits, or in the gateway itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pactgate.app import Gateway
from pactgate.config.load import load
from tests.cli.program import write_config
from tests.support.eventually import eventually

SERVER = {"command": sys.executable, "args": ["-I", "-S", str(Path(__file__).with_name("light_server.py")), "healthy"]}
SLOW_MS = 200


@asynccontextmanager
async def gateway(folder: Path, **sections: Any) -> AsyncIterator[Gateway]:
    config = load(write_config(folder, {"files": SERVER}, **sections), environ={}, overrides={})
    async with Gateway.open(config) as opened:
        await eventually(lambda: any(opened.connections.unfiltered.listed_tools()))
        yield opened


async def times(opened: Gateway, *calls: dict[str, Any]) -> list[dict[str, float]]:
    """Where the time of calls of a slow tool went that were begun in this order."""
    envelopes = await asyncio.gather(*(opened.invoke("files.slow", arguments) for arguments in calls))
    traces = [opened.observers.stories.get(one["metadata"]["requestId"]) for one in envelopes]
    found = [trace["times"] for trace in traces if trace is not None]
    for trace in filter(None, traces):
        assert abs(sum(trace["times"].values()) - trace["durationMs"]) < 0.1, "the times add up"
    return found


async def test_the_time_at_a_slow_server_is_told_from_that_of_the_gateway(tmp_path: Path) -> None:
    async with gateway(tmp_path) as opened:
        (slow,) = await times(opened, {"ms": SLOW_MS})
    assert set(slow) == {"server", "gateway"}
    assert slow["server"] > SLOW_MS > 2 * slow["gateway"]


async def test_the_time_in_a_full_queue_is_told_from_that_at_the_server(tmp_path: Path) -> None:
    async with gateway(tmp_path, limits={"maxInFlightPerServer": 1}) as opened:
        _, second = await times(opened, {"ms": SLOW_MS, "text": "one"}, {"ms": 0, "text": "two"})
    assert second["queue"] > SLOW_MS / 2 > second["server"] + second["gateway"]


async def test_the_time_in_a_gate_that_waits_is_told_under_its_name(tmp_path: Path) -> None:
    kept = {"tools": {"files.slow": {"ttlMs": 60000}}}
    async with gateway(tmp_path, cache=kept, categories={"files.slow": "query"}) as opened:
        first, second = await times(opened, {"ms": SLOW_MS}, {"ms": SLOW_MS})
    assert first["server"] > SLOW_MS
    assert set(second) == {"cache_lookup", "gateway"}, "it waited for the call before it"
    assert second["cache_lookup"] > SLOW_MS / 2 > second["gateway"]
