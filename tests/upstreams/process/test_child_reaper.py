"""The child reaper in earnest: gateways that are killed without warning, and who is still alive afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pactgate.upstreams.process import child_reaper as reaper_module
from pactgate.upstreams.process.child import ChildProcess, Launch
from pactgate.upstreams.process.child_reaper import ChildReaper
from pactgate.upstreams.process.stdio import StdioChannel
from tests.support.children import Inbox, Witness, children, descriptors, guarded, opened, scripted, until
from tests.support.loops import on_both_loops

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = descriptors(), children()
    yield
    assert (descriptors(), children()) == before


@contextmanager
def little_gateway(*manners: str) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A gateway process of its own and the numbers of all its descendants, the reaper's last."""
    command = [sys.executable, "-m", "tests.support.little_gateway", *manners]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True) as gateway:
        assert gateway.stdout is not None
        pids = msgspec.json.decode(gateway.stdout.readline(), type=list[int])
        try:
            yield gateway, pids
        finally:
            gateway.kill()


@pytest.mark.requirement("S1/XC-003")
@pytest.mark.parametrize(
    "manners", [("echo", "echo"), ("stubborn", "parent"), ("deaf", "mute", "stubborn"), ("detaching_parent",)]
)
def test_nobody_outlives_a_gateway_that_was_killed(manners: tuple[str, ...]) -> None:
    with little_gateway(*manners) as (gateway, pids), Witness(pids) as witness:
        gateway.kill()
        assert witness.living_after(2) == set()


def test_a_kill_of_the_whole_group_of_the_gateway_does_not_reach_the_reaper() -> None:
    with little_gateway("parent") as (gateway, pids), Witness(pids) as witness:
        os.killpg(gateway.pid, signal.SIGKILL)
        assert witness.living_after(2) == set()


def test_a_reaper_is_deaf_to_the_signals_that_stop_a_gateway() -> None:
    with little_gateway("stubborn") as (gateway, pids), Witness(pids) as witness:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            os.kill(pids[-1], number)
        gateway.kill()
        assert witness.living_after(2) == set()


@pytest.mark.requirement("S1/XC-003")
@on_both_loops
async def test_a_detached_process_ends_with_its_server_and_not_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper_module, "own_cgroup", lambda: None)
    async with opened("detaching_parent") as (other, others_inbox):
        with Witness([await others_inbox.child_pid()]) as others:
            async with guarded(find_cgroup=lambda: None) as child_reaper:
                inbox = Inbox()
                channel = StdioChannel(
                    *("mine", sys.executable, scripted("detaching_parent"), {}, None, inbox.events.append, child_reaper)
                )
                await channel.open(inbox)
                with Witness([await inbox.child_pid()]) as mine:
                    await channel.close()
                    assert await asyncio.to_thread(mine.living_after, 2) == set()
            assert len(others.living_after(0)) == 1
            await other.close()
            assert await asyncio.to_thread(others.living_after, 2) == set()


@on_both_loops
async def test_no_reaper_runs_before_there_is_a_child_or_after_the_gateway_has_stopped() -> None:
    child_reaper = ChildReaper()
    pids = [child_reaper.pid]
    child_reaper.watch(99999999, "mark.")
    pids.append(child_reaper.pid)
    assert pids[0] is None
    assert pids[1] in children()
    child_reaper.release(99999999)
    await child_reaper.close()
    await child_reaper.close()
    assert child_reaper.pid is None
    assert pids[1] not in children()


@on_both_loops
async def test_all_who_close_it_wait_until_it_is_gone() -> None:
    child_reaper = ChildReaper()
    child_reaper.start()
    await asyncio.gather(child_reaper.close(), child_reaper.close())
    assert child_reaper.pid is None


@on_both_loops
async def test_one_reaper_serves_all_children() -> None:
    async with guarded() as child_reaper:
        child_reaper.start()
        pid = child_reaper.pid
        child_reaper.watch(99999998, "mark.")
        child_reaper.watch(99999999, "mark.")
        child_reaper.start()
        assert child_reaper.pid == pid


class Stubborn:
    """A child that only a SIGKILL ends, registered by hand so that the test decides when it is released."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.process = ChildProcess.spawn(
            Launch((sys.executable, *scripted("stubborn")), {}), lambda _: self.exited.set(), guard=None
        )

    async def ready(self) -> int:
        stdout = self.process.pipes[1]
        assert stdout is not None
        await asyncio.to_thread(stdout.readline)
        return self.process.pid

    async def died(self) -> bool:
        await asyncio.wait_for(self.exited.wait(), 5)
        self.close_pipes()
        return self.process.returncode == -signal.SIGKILL

    def close_pipes(self) -> None:
        for pipe in self.process.pipes:
            assert pipe is not None
            pipe.close()


@on_both_loops
async def test_closing_the_reaper_ends_what_is_still_registered_and_spares_what_was_released() -> None:
    kept, released = Stubborn(), Stubborn()
    child_reaper = ChildReaper(find_cgroup=lambda: None)
    for child in (kept, released):
        child_reaper.watch(await child.ready(), "mark.")
    child_reaper.release(released.process.pid)
    await child_reaper.close()
    assert await kept.died()
    assert released.process.returncode is None
    released.process.signal_group(signal.SIGKILL)
    assert await released.died()


@on_both_loops
async def test_releasing_a_group_spares_the_groups_whose_numbers_look_alike() -> None:
    first, second = Stubborn(), Stubborn()
    child_reaper = ChildReaper(find_cgroup=lambda: None)
    pids = [await first.ready(), await second.ready()]
    for pid in (*pids, 10_000_000 + pids[0], int(f"{pids[1]}9")):
        child_reaper.watch(pid, "mark.")
    child_reaper.release(10_000_000 + pids[0])
    child_reaper.release(int(f"{pids[1]}9"))
    await child_reaper.close()
    assert await first.died()
    assert await second.died()


def is_another(child_reaper: ChildReaper, old: int) -> bool:
    return child_reaper.pid not in (old, None)


@on_both_loops
async def test_a_reaper_that_dies_is_replaced_and_the_next_one_knows_every_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reaper_module, "RESTART_DELAY_S", 0.05)
    child = Stubborn()
    child_reaper = ChildReaper()
    child_reaper.watch(await child.ready(), "mark.")
    for _ in range(3):
        old = child_reaper.pid
        assert old is not None
        os.kill(old, signal.SIGKILL)
        await until(partial(is_another, child_reaper, old))
    assert child.process.returncode is None
    await child_reaper.close()
    assert await child.died()


@on_both_loops
async def test_a_reaper_that_does_not_read_is_replaced_and_no_healthy_child_dies_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reaper_module, "RESTART_DELAY_S", 0.05)
    child = Stubborn()
    child_reaper = ChildReaper()
    child_reaper.watch(await child.ready(), "mark.")
    old = child_reaper.pid
    assert old is not None
    os.kill(old, signal.SIGSTOP)
    for _ in range(10_000):  # more lines than its pipe holds
        child_reaper.watch(99999999, "mark.")
        child_reaper.release(99999999)
    await until(partial(is_another, child_reaper, old))
    assert child.process.returncode is None
    await child_reaper.close()
    assert await child.died()


@on_both_loops
async def test_a_reaper_nobody_needs_any_more_is_not_replaced() -> None:
    async with guarded() as child_reaper:
        child_reaper.start()
        assert child_reaper.pid is not None
        os.kill(child_reaper.pid, signal.SIGKILL)
        await until(lambda: child_reaper.pid is None)
        assert children() == set()


async def test_a_machine_without_a_shell_is_served_without_the_protection_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reaper_module, "_LAUNCH", Launch(("/no/such/shell",), {}))
    async with guarded() as child_reaper:
        child_reaper.watch(99999999, "mark.")
        child_reaper.release(99999999)
        assert child_reaper.pid is None
        assert child_reaper.problem is not None
        assert "/no/such/shell" in child_reaper.problem


@pytest.mark.parametrize("pgid", [1, 0, -1])
def test_a_number_that_would_reach_every_process_is_refused(pgid: int) -> None:
    with pytest.raises(ValueError, match="every process"):
        ChildReaper().watch(pgid, "mark.")


class Holdings:
    """What a process has open, where it stands, and what it was given."""

    def __init__(self, pid: int | None) -> None:
        folder = Path(f"/proc/{pid}")
        self.descriptors: dict[str, str] = {}
        for entry in (folder / "fd").iterdir():
            with suppress(FileNotFoundError):
                self.descriptors[entry.name] = os.readlink(entry)
        self.directory = os.readlink(folder / "cwd")
        self.environment = (folder / "environ").read_bytes()


async def test_a_reaper_holds_nothing_of_ours_but_the_read_end_of_its_pipe() -> None:
    async with guarded() as child_reaper:
        child_reaper.start()
        given = f"PATH={os.defpath}\0".encode()
        await until(lambda: Holdings(child_reaper.pid).environment == given)  # no longer the gateway's own copy
        await until(lambda: Holdings(child_reaper.pid).descriptors.keys() == {"0", "1", "2"})  # its program is loaded
        held = Holdings(child_reaper.pid)
        assert held.descriptors["0"].startswith("pipe:")
        assert held.descriptors["1"] == held.descriptors["2"] == "/dev/null"
        assert held.directory == "/"
        assert held.environment == given


async def test_a_child_does_not_hold_the_reapers_pipe() -> None:
    async with opened("environment") as (_, inbox):
        assert b'"fds":"0,1,2,3"' in (await inbox.wait_frames(1))[0]  # 3 is the listing itself
