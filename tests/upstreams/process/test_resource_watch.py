"""Bounds of memory and processes: a server beyond them is ended whole, and one within them is left alone."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

import pytest

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process.resource_watch import ResourceWatch, group_members, own_bytes, resident_bytes
from pactgate.upstreams.process.sandbox import confine
from tests.support.children import until
from tests.upstreams.confinement import WAIT, bare, bounded, go, needs_kernel, run, with_and_without_cgroups

FEW = f"{WAIT}[os.fork() or time.sleep(600) for _ in range(3)]\nsys.stdin.readline()"
SHARED = (
    f"import mmap\n{WAIT}sys.stdin.readline()\n"
    "pieces = []\n"
    "for _ in range(512):\n"  # a bound that does not hold costs half a gibibyte, not the machine
    "    pieces.append(mmap.mmap(-1, 2**20)); pieces[-1].write(b'x' * 2**20)\n"
    "time.sleep(600)"
)


@needs_kernel
@with_and_without_cgroups
async def test_shared_memory_counts_for_the_server_as_a_whole(options: dict[str, Any]) -> None:
    async with bounded(SHARED, Effects(memory="128MiB"), options) as (channel, inbox, pid):
        await go(channel)
        failure = await inbox.wait_lost(20)
        assert "used more than 128 MiB of memory (effects.memory)" in failure.message
        await until(lambda: group_members(pid) == [])


@needs_kernel
@with_and_without_cgroups
async def test_a_server_within_its_bounds_is_left_alone(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []
    excess = ResourceWatch._excess
    monkeypatch.setattr(ResourceWatch, "_excess", lambda watch: checks.append(excess(watch)))
    async with bounded(FEW, Effects(memory="64MiB", processes=4), options) as (channel, inbox, pid):
        await until(lambda: len(group_members(pid)) == 4)
        checks.clear()
        await until(lambda: len(checks) >= 3)
        assert checks[:3] == [None, None, None]
        assert inbox.failures == []
        assert channel.pid == pid


@needs_kernel
async def test_a_gateway_without_descriptors_looks_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def no_descriptors(_watch: ResourceWatch) -> NoReturn:
        looks.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    async with bounded(SHARED, Effects(memory="64MiB"), {}) as (channel, inbox, _):
        with monkeypatch.context() as patch:
            patch.setattr(ResourceWatch, "_excess", no_descriptors)
            await until(lambda: len(looks) >= 2)
        await go(channel)
        await inbox.wait_lost(20)


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_a_process_that_wants_more_memory_than_its_bound_does_not_get_it() -> None:
    code = (
        "import os\n"
        "for deed in (lambda: bytearray(2**28), lambda: os.memfd_create('x')):\n"
        "    try: deed(); print('done')\n"
        "    except (MemoryError, OSError) as problem: print(type(problem).__name__)\n"
        "print(len(bytearray(2**24)))"
    )
    launch = bare(sys.executable, "-I", "-c", code)
    assert run(confine(launch, Effects(memory="128MiB")).launch).stdout.split() == [
        "MemoryError",
        "PermissionError",
        str(2**24),
    ]
    assert run(confine(launch, Effects()).launch).stdout.split() == ["done", "done", str(2**24)]


@needs_kernel
@pytest.mark.parametrize(
    ("program", "arguments"),
    [("node", ("-e", "console.log(1)")), ("java", ("-version",)), (sys.executable, ("-c", "1"))],
)
def test_language_runtimes_start_within_half_a_gibibyte(program: str, arguments: tuple[str, ...]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    done = run(confine(bare(program, *arguments), Effects(memory="512MiB")).launch)
    assert done.returncode == 0, done.stderr


def test_the_memory_of_a_group_counts_what_its_processes_share_once() -> None:
    code = "import os, sys\ndata = b'x' * 2**26\nprint(os.fork() and 1, flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        for _ in range(2):
            child.stdout.readline()
        pids = group_members(child.pid)
        assert len(pids) == 2
        assert resident_bytes(pids) > 2 * 2**26
        assert 2**26 < own_bytes(pids) < 1.5 * 2**26
        assert child.stdin is not None
        child.stdin.close()
    assert own_bytes([child.pid]) == resident_bytes([child.pid]) == 0
    assert group_members(os.getpgid(0)).count(os.getpid()) == 1
