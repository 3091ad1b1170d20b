"""The bound of processes holds before a fork, whatever the server does, and takes nothing from a server that keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.effects import Effects
from pactgate.core.failures import Kind
from pactgate.upstreams.process.resource_watch import group_members
from tests.support.children import until
from tests.upstreams.confinement import WAIT, bounded, go, needs_kernel, with_and_without_cgroups

FORK_BOMB = (
    # Nine generations, so that a bound which does not hold costs 512 processes and not the machine.
    f"{WAIT}sys.stdin.readline()\n"
    "born = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\n"
    "for _ in range(9):\n"
    "    try:\n"
    "        if os.fork() == 0: os.write(born, b'.')\n"
    "    except OSError: pass\n"
    "while True: pass\n"
)
ORPHANS = (
    f"{WAIT}sys.stdin.readline()\n"
    "for _ in range(40):\n"
    "    if os.fork() == 0:\n"
    "        if os.fork() == 0: time.sleep(600)\n"
    "        os._exit(0)\n"
    "    os.wait()\n"
    "time.sleep(600)"
)


@needs_kernel
@with_and_without_cgroups
@pytest.mark.requirement("S2/MCP-002")
async def test_a_fork_bomb_is_ended_whole_before_it_is_many(options: dict[str, Any], tmp_path: Path) -> None:
    born = tmp_path / "born"
    born.touch()
    effects = Effects(processes=20, write=(str(born),))
    async with bounded(FORK_BOMB, effects, options, str(born)) as (channel, inbox, pid):
        await go(channel)
        failure = await inbox.wait_lost(10)
        assert failure.kind is Kind.CONNECTION_LOST
        assert "had more than 20 processes (effects.processes)" in failure.message
        await until(lambda: group_members(pid) == [])
        # Twice the bound: forks that were granted just before a count are not seen by it.
        assert born.stat().st_size < 40


@needs_kernel
@with_and_without_cgroups
async def test_processes_that_have_left_their_parents_count(options: dict[str, Any]) -> None:
    async with bounded(ORPHANS, Effects(processes=20), options) as (channel, inbox, pid):
        await go(channel)
        assert "had more than 20 processes (effects.processes)" in (await inbox.wait_lost(10)).message
        await until(lambda: group_members(pid) == [])


@needs_kernel
async def test_processes_that_have_ended_make_room_and_threads_take_none() -> None:
    code = (
        f"import threading\n{WAIT}sys.stdin.readline()\n"
        "threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(20)]\n"
        "for one in threads: one.start()\n"
        "for _ in range(50): os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-I', '-S', '-c', ''], {}), 0)\n"
        'print(\'{"jsonrpc":"2.0","method":"done"}\', flush=True)\n'
        "sys.stdin.readline()"
    )
    async with bounded(code, Effects(processes=2, run=True), {}) as (channel, inbox, _):
        await go(channel)
        await inbox.wait_frames(2, 20)
        assert inbox.failures == []


@needs_kernel
async def test_a_server_is_ended_though_it_waits_for_a_fork() -> None:
    """The gateway stops answering only when the server is gone, and its last question is refused by the kernel."""
    code = f"{WAIT}\nwhile True:\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)"
    async with bounded(code, Effects(processes=2), {}) as (channel, inbox, pid):
        await channel.close()
        assert inbox.failures == []
        assert group_members(pid) == []
