"""A server whose lists are too large, in front of a gateway that is a process of its own: what it costs the gateway and other clients."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually
from tests.support.facing import modern
from tests.support.raw_http import RawClient, get

SHAPES = {
    "many tools of 500 kB": {"pages": 20, "entries": 15, "bytes": 500_000},
    "one text of 7.9 MB a page": {"pages": 80, "entries": 1, "bytes": 7_900_000},
    "many tools of 60 kB": {"pages": 40, "entries": 100, "bytes": 60_000},
    "millions of numbers": {"pages": 3, "entries": 0, "bytes": 0, "zeros": 2_500_000},
}


def memory_mb(served: Served, name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{served.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def last_error(client: RawClient) -> str:
    """Why the server is left out. The other clients of the gateway hardly wait while it reads that server's list."""
    started = time.monotonic()
    rows = (await client.ask(get("/api/servers"))).json["servers"]
    assert time.monotonic() - started < 3.0
    found: str = next(row["lastError"] or "" for row in rows if row["serverId"] == "evil")
    return found


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_list_that_is_too_large_costs_little_memory_and_reaches_nobody(shape: str, tmp_path: Path) -> None:
    fat: dict[str, Any] = {"member": "tools", **SHAPES[shape]}
    evil = {**scripted(era="legacy", fat={"tools/list": fat}), "maxRetries": 0}
    write_config(tmp_path, {"good": scripted(era="legacy"), "evil": evil})
    with Served(tmp_path) as served:
        served.wait_for("ok    good")
        before = memory_mb(served, "VmRSS")
        async with RawClient(int(served.url.rpartition(":")[2])) as client:
            reason = await eventually(lambda: last_error(client))
            listed = await client.ask(modern("tools/list"))
        assert "its list is too large" in reason
        assert len(listed.body) < 20_000
        assert "its list is too large" in listed.body.decode()
        assert memory_mb(served, "VmHWM") < before + 64
        assert "its list is too large" in served.log_text()
