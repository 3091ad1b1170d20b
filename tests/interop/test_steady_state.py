"""Ten thousand calls leave the gateway as one call did: two servers, two processes, no more files, no more children."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cpu import tree
from bench.load import Load, measure
from tests.interop.processes import PYTHON, Fleet, Program

SERVERS = ("first", "second")
UPSTREAM = "bench.upstream_stdio"
CALLS = 10_000
CALLERS = 16

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[tuple[Program, str]]:
    with Fleet(tmp_path) as fleet:
        for server in SERVERS:
            fleet.add(server, [PYTHON, "-m", UPSTREAM, "--tools", "3"], None)
        yield fleet.start_gateway("echo")


def children(program: Program) -> set[int]:
    return set(tree(program.pid)) - {program.pid}


def upstream_processes(program: Program) -> list[int]:
    """Those that are servers: beside them the gateway may keep a process of its own that watches over them."""
    return [pid for pid in children(program) if UPSTREAM.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]


def open_files(program: Program) -> int:
    return len(list(Path(f"/proc/{program.pid}/fd").iterdir()))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_ten_thousand_calls_need_no_more_processes_and_files_than_one(
    gateway: tuple[Program, str], era: str
) -> None:
    program, address = gateway
    for server in SERVERS:
        await measure(Load(f"{address}/mcp", f"{server}__echo", era=era, calls=1, warmup=0))
    processes_after_one, files_after_one = children(program), open_files(program)
    assert len(upstream_processes(program)) == len(SERVERS)

    loads = [
        Load(f"{address}/mcp", f"{server}__echo", era=era, connections=CALLERS, calls=CALLS // 2, warmup=0, seconds=60)
        for server in SERVERS
    ]
    done = await asyncio.gather(*(measure(load) for load in loads))

    assert sum(measured.calls for measured in done) == CALLS
    assert [measured.failed for measured in done] == [0, 0]
    assert children(program) == processes_after_one
    assert len(upstream_processes(program)) == len(SERVERS)
    program.wait_until(lambda: open_files(program) <= files_after_one, "the callers' connections are closed")
