"""The bounds of processes and threads hold before a fork, whatever the server does, and take nothing from a server that keeps them."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pactgate.config.sections.effects import Effects
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.process import fork_gate, sandbox, stdio
from pactgate.upstreams.process.resource_watch import group_members
from pactgate.upstreams.process.sandbox import SandboxSupport, confine
from tests.support.children import until
from tests.support.eventually import eventually
from tests.upstreams.confinement import WAIT, bare, bounded, go, needs_kernel, with_and_without_cgroups
from tests.upstreams.process.test_launcher import ALREADY_TAKEN, ROOT

FORK_BOMB = (
    # Six generations, so that a bound which does not hold costs 64 processes and not the machine.
    f"{WAIT}sys.stdin.readline()\n"
    "born = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\n"
    "for _ in range(6):\n"
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
        await eventually(lambda: group_members(pid) == [])  # the kernel still ends the child that was just forked


SAYS = 'print(\'{"jsonrpc":"2.0","method":"\' + said + \'"}\', flush=True)\nsys.stdin.readline()'
FORKS = (
    "def fork():\n"
    "    pid = os.fork()\n"
    "    if not pid: os._exit(0)\n"
    "    while True:\n"
    "        try: return os.waitpid(pid, 0)\n"
    "        except InterruptedError: pass\n"
)
INTERRUPTED = (
    f"import signal\n{WAIT}{FORKS}sys.stdin.readline()\n"
    "signal.signal(signal.SIGALRM, lambda *_: None)\n"
    "signal.siginterrupt(signal.SIGALRM, False)\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
    "said = 'done'\n"
    "try:\n"
    "    for _ in range(300): fork()\n"
    "except OSError as problem: said = problem.strerror\n"
    f"signal.setitimer(signal.ITIMER_REAL, 0)\n{SAYS}"
)
MANY_THREADS = (
    # A bound that does not hold costs 200 threads, not all numbers of processes that the machine has.
    f"import threading\n{WAIT}threading.stack_size(65536)\nsys.stdin.readline()\n"
    "try:\n"
    "    for _ in range(200): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    "except RuntimeError: pass\n"
    "time.sleep(600)"
)
ONE_THEN_ANOTHER = (
    f"{WAIT}{FORKS}sys.stdin.readline()\n"
    "try: fork(); said = 'forked'\n"
    "except OSError as problem: said = str(problem.errno)\n"
    f"{SAYS}\nfork(); said = 'forked'\n{SAYS}"
)


@needs_kernel
async def test_a_fork_that_signals_interrupt_goes_on_when_they_are_handled() -> None:
    async with bounded(INTERRUPTED, Effects(processes=4), {}) as (channel, inbox, _):
        await go(channel)
        assert b'"done"' in (await inbox.wait_frames(2, 20))[1]


@needs_kernel
@with_and_without_cgroups
async def test_threads_are_bounded_as_they_use_up_process_numbers_too(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_THREADS", 50)
    async with bounded(MANY_THREADS, Effects(processes=4), options) as (channel, inbox, pid):
        await go(channel)
        assert "had more than 50 threads" in (await inbox.wait_lost(10)).message
        await until(lambda: group_members(pid) == [])


@needs_kernel
async def test_a_fork_is_refused_and_not_left_waiting_while_the_gateway_can_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_descriptors(_pid: int, _members: Callable[[int], object]) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    async with bounded(ONE_THEN_ANOTHER, Effects(processes=2), {}) as (channel, inbox, _):
        with monkeypatch.context() as patch:
            patch.setattr(stdio, "living_processes", no_descriptors)
            await go(channel)
            assert b'"%d"' % errno.EAGAIN in (await inbox.wait_frames(2))[1]
        await go(channel)
        assert b'"forked"' in (await inbox.wait_frames(3))[2]
        assert inbox.failures == []


@needs_kernel
async def test_counting_for_a_server_that_always_forks_leaves_the_time_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[float] = []

    def slow(pid: int, members: Callable[[int], Sequence[int] | None]) -> Sequence[int]:
        counts.append(time.monotonic())
        while time.monotonic() < counts[-1] + 0.01:
            pass
        return [pid]

    monkeypatch.setattr(stdio, "living_processes", slow)
    code = f"{WAIT}{FORKS}sys.stdin.readline()\nwhile True: fork()"
    async with bounded(code, Effects(processes=2), {}) as (channel, _, _):
        await go(channel)
        await until(lambda: len(counts) >= 5)
        assert all(later - earlier >= 0.1 for earlier, later in pairwise(counts))


@pytest.fixture
def only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has taken the kernel's queue for itself."""
    start = f"import sys\nsys.path.append({str(ROOT / 'src')!r})\nfrom pactgate.upstreams.process import launcher\n"
    (tmp_path / "launcher.py").write_text(f"{start}{ALREADY_TAKEN}launcher.main(sys.argv[1:])")
    monkeypatch.setattr(sandbox, "LAUNCHER", str(tmp_path / "launcher.py"))


async def sandbox_level() -> str | None:
    async with bounded(f"{WAIT}sys.stdin.readline()", Effects(processes=2), {}) as (channel, _, _):
        return channel.sandbox_level


@needs_kernel
async def test_a_bound_the_kernel_asks_about_is_called_enforced() -> None:
    assert await sandbox_level() == "enforced"


@needs_kernel
@pytest.mark.usefixtures("only_counted")
async def test_a_bound_that_is_only_counted_is_not_called_enforced() -> None:
    assert await sandbox_level() == "partly enforced: all but the number of processes"


@needs_kernel
@pytest.mark.usefixtures("only_counted")
@pytest.mark.parametrize(("code", "excess"), [(ORPHANS, "20 processes"), (MANY_THREADS, "50 threads")])
async def test_a_server_beyond_a_bound_that_is_only_counted_is_ended_too(
    code: str, excess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_THREADS", 50)
    async with bounded(code, Effects(processes=20), {}) as (channel, inbox, pid):
        await go(channel)
        assert f"had more than {excess}" in (await inbox.wait_lost(10)).message
        await until(lambda: group_members(pid) == [])


@needs_kernel
async def test_a_kernel_that_can_not_be_answered_refuses_every_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux before 5.5 asks, but does not know the answer that lets a call go on. A fork that is never answered waits for ever."""
    monkeypatch.setattr(fork_gate, "_CONTINUE", 1 << 31)
    async with bounded(ONE_THEN_ANOTHER, Effects(processes=2), {}) as (channel, inbox, _):
        await go(channel)
        assert b'"%d"' % errno.ENOSYS in (await inbox.wait_frames(2))[1]


async def test_a_server_is_not_started_while_the_gateway_has_no_descriptor_for_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_descriptors(**_bounds: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(stdio, "ForkGate", no_descriptors)
    with pytest.raises(GatewayFailure, match="Too many open files") as refusal:
        async with bounded(WAIT, Effects(processes=2), {}):
            pass
    assert refusal.value.kind is Kind.CONNECTION_FAILED


def test_a_program_without_a_filter_does_not_get_the_gateways_socket() -> None:
    support = SandboxSupport(abi=7, landlock=True, seccomp=False)
    effects = Effects(processes=2, run=True, best_effort=True)
    assert confine(bare("sh", "-c", ":"), effects, forks=7, ask=lambda: support).launch.fds == ()
