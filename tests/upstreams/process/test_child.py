"""Real child processes: how they are started, how their death is noticed, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pactgate.upstreams.process.child import (
    SAFE_ENVIRONMENT,
    ChildProcess,
    Launch,
    ShutdownSteps,
    SpawnError,
    child_environment,
    describe_exit,
)
from tests.support.children import PATIENT, QUICK, Witness, children, descriptors, scripted
from tests.support.loops import on_both_loops

ENV = {"PATH": os.defpath}


class Guarded:
    """A guard that only remembers, and sees whether a leader still has its number when it is released."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.held_its_number: list[bool] = []

    def new_mark(self) -> str:
        return "mark."

    def watch(self, pgid: int, mark: str) -> None:
        assert mark == "mark."
        self.groups.add(pgid)

    def release(self, pgid: int) -> None:
        self.groups.discard(pgid)
        self.held_its_number.append(Path(f"/proc/{pgid}").exists())


class Child:
    """A spawned child of a scripted manner, with the pipes in the test's hands."""

    def __init__(self, *words: str) -> None:
        self.guard = Guarded()
        self.exits: list[int] = []
        self.process = ChildProcess.spawn(
            Launch((sys.executable, *scripted(*words)), ENV), self.exits.append, guard=self.guard
        )

    async def line(self) -> bytes:
        stdout = self.process.pipes[1]
        assert stdout is not None
        return await asyncio.to_thread(stdout.readline)

    def close_stdin(self) -> None:
        stdin = self.process.pipes[0]
        assert stdin is not None
        stdin.close()

    def close_pipes(self) -> None:
        for pipe in self.process.pipes:
            assert pipe is not None
            pipe.close()

    async def end(self, shutdown_steps: ShutdownSteps) -> float:
        """Close its stdin, end it step by step, and say how long that took."""
        started = time.monotonic()
        self.close_stdin()
        await self.process.end(shutdown_steps)
        self.close_pipes()
        return time.monotonic() - started


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = descriptors(), children()
    yield
    assert (descriptors(), children()) == before


@on_both_loops
async def test_an_exit_is_told_once_with_its_code_after_the_guard_was_told() -> None:
    child = Child("answer_and_end", "", "3")
    await child.end(PATIENT)
    assert child.exits == [3]
    assert child.process.returncode == 3
    assert child.guard.groups == set()
    assert child.guard.held_its_number == [True]


@on_both_loops
async def test_a_child_leads_a_session_of_its_own() -> None:
    child = Child("echo")
    await child.line()
    assert os.getsid(child.process.pid) == child.process.pid != os.getsid(0)
    assert child.guard.groups == {child.process.pid}
    await child.end(PATIENT)


@on_both_loops
async def test_without_a_pidfd_a_death_is_noticed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not on this kernel")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    child = Child("answer_and_end", "", "4")
    await child.end(PATIENT)
    assert child.exits == [4]
    assert child.guard.held_its_number == [True]


@on_both_loops
async def test_the_first_rung_lets_a_polite_child_go_by_itself(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    child = Child("polite", str(journal))
    await child.line()
    await child.end(PATIENT)
    assert journal.read_text() == "end of input"
    assert child.exits == [0]


@on_both_loops
async def test_the_second_rung_is_sigterm(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    child = Child("heeds_sigterm", str(journal))
    await child.line()
    took_s = await child.end(ShutdownSteps(eof_s=0.1, term_s=5, kill_s=5))
    assert journal.read_text() == "SIGTERM"
    assert child.exits == [0]
    assert took_s >= 0.1


@on_both_loops
async def test_the_last_rung_is_sigkill() -> None:
    child = Child("stubborn")
    await child.line()
    took_s = await child.end(QUICK)
    assert child.exits == [-signal.SIGKILL]
    assert took_s >= QUICK.eof_s + QUICK.term_s


@on_both_loops
async def test_a_stopped_child_gets_the_chance_to_end_by_itself() -> None:
    child = Child("echo")
    await child.line()
    child.process.signal_group(signal.SIGSTOP)
    await child.end(QUICK)
    assert child.exits == [-signal.SIGTERM]


@on_both_loops
async def test_a_stopped_child_that_heeds_nothing_is_killed() -> None:
    child = Child("stubborn")
    await child.line()
    child.process.signal_group(signal.SIGSTOP)
    await child.end(QUICK)
    assert child.exits == [-signal.SIGKILL]


@on_both_loops
async def test_the_group_of_a_dead_leader_dies_with_it() -> None:
    child = Child("parent_that_dies")
    grandchild = int((await child.line()).split(b":")[-1].strip(b"}\n"))
    with Witness([grandchild]) as witness:
        child.close_stdin()
        await child.process.end(PATIENT)
        child.close_pipes()
        assert child.exits == [7]
        assert witness.living_after(1) == set()


@on_both_loops
async def test_all_who_end_a_child_wait_for_the_same_ending() -> None:
    child = Child("stubborn")
    await child.line()
    child.close_stdin()
    await asyncio.gather(*(child.process.end(QUICK) for _ in range(5)))
    await child.process.end(QUICK)
    child.close_pipes()
    assert child.exits == [-signal.SIGKILL]


@on_both_loops
async def test_an_ending_goes_on_when_the_one_who_asked_is_cancelled() -> None:
    child = Child("stubborn")
    await child.line()
    child.close_stdin()
    asking = asyncio.create_task(child.process.end(QUICK))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(child.process.end(QUICK), 5)
    child.close_pipes()
    assert child.exits == [-signal.SIGKILL]


@pytest.mark.parametrize("yields", [1, 2, 5])
@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_loop_that_shuts_down_in_the_middle_of_an_ending_leaves_no_process(yields: int, is_abandoned: bool) -> None:
    exits: list[list[int]] = []

    async def leave_without_waiting() -> None:
        child = Child("stubborn")
        exits.append(child.exits)
        await child.line()
        child.close_pipes()
        asking = asyncio.create_task(child.process.end(PATIENT))
        for _ in range(yields):
            await asyncio.sleep(0)
        if is_abandoned:
            asking.cancel()

    asyncio.run(leave_without_waiting())
    assert exits == [[-signal.SIGKILL]]


@on_both_loops
async def test_a_reaped_child_is_not_signalled_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("answer_and_end", "", "0")
    await child.end(PATIENT)
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))
    child.process.signal_group(signal.SIGTERM)
    assert signalled == []


def refused(*argv: str, cwd: str | None = None, env: dict[str, str] | None = None) -> SpawnError:
    async def spawn() -> SpawnError:
        with pytest.raises(SpawnError) as caught:
            ChildProcess.spawn(Launch(argv, ENV if env is None else env, cwd), print, guard=Guarded())
        return caught.value

    return asyncio.run(spawn())


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_program_that_is_not_on_path_is_named_with_what_to_do() -> None:
    problem = refused("no-such-program-at-all")
    assert problem.permanent
    assert str(problem) == (
        "the program 'no-such-program-at-all' was not found on PATH; install it or give the full path"
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["{tmp}/missing"], "does not exist"),
        (["{tmp}"], "may not be executed"),
        (["{tmp}/plain"], "may not be executed"),
        (["{tmp}/formless"], "no program this machine can run"),
        (["{tmp}/homeless"], "interpreter named in the first line"),
        (["{tmp}/plain/inside"], "does not exist"),
        (["/bin/sh", "nul\0inside"], "a character no program can be given"),
        (["/bin/sh", "x" * 3_000_000], "longer than the system allows"),
    ],
)
def test_a_command_that_can_never_run_says_why(argv: list[str], words: str, tmp_path: Path) -> None:
    script(tmp_path / "plain", "#!/bin/sh\n", 0o644)
    script(tmp_path / "formless", "\0no first line")
    script(tmp_path / "homeless", "#!/no/such/interpreter\n")
    problem = refused(*(word.replace("{tmp}", str(tmp_path)) for word in argv))
    assert problem.permanent
    assert words in str(problem)


def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    problem = refused("/bin/sh", cwd=str(tmp_path / "nowhere"))
    assert problem.permanent
    assert "nowhere' does not exist; create it or correct `cwd`" in str(problem)


def test_a_working_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    problem = refused("/bin/sh", cwd=script(tmp_path / "file", "", 0o644))
    assert problem.permanent
    assert "file' " in str(problem)


def test_a_path_of_the_child_decides_where_its_program_is_found(tmp_path: Path) -> None:
    script(tmp_path / "mine", "#!/bin/sh\nexit 9\n")
    refused("mine")
    exits: list[int] = []

    async def run() -> None:
        child = ChildProcess.spawn(Launch(("mine",), {"PATH": str(tmp_path)}), exits.append, guard=None)
        await child.end(PATIENT)
        for pipe in child.pipes:
            assert pipe is not None
            pipe.close()

    asyncio.run(run())
    assert exits == [9]


def test_a_shortage_of_the_system_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", exhausted)
    problem = refused("/bin/sh")
    assert not problem.permanent
    assert "Resource temporarily unavailable" in str(problem)


def test_a_child_gets_the_safe_names_and_what_it_is_given_and_nothing_else() -> None:
    ours = {name: f"our {name}" for name in SAFE_ENVIRONMENT} | {"AWS_SECRET_ACCESS_KEY": "canary", "HTTPS_PROXY": "p"}
    env = child_environment("/usr/bin/server", {"TOKEN": "given", "LANG": "given"}, ours)
    assert env == {name: f"our {name}" for name in SAFE_ENVIRONMENT} | {"TOKEN": "given", "LANG": "given"}


@pytest.mark.parametrize("command", ["npx", "/opt/bin/uvx"])
def test_a_program_that_fetches_what_it_runs_gets_its_settings_but_no_password(command: str) -> None:
    ours = {
        "HTTPS_PROXY": "http://user:canary@proxy:3128",
        "NO_PROXY": "localhost",
        "NODE_EXTRA_CA_CERTS": "/etc/ca.pem",
        "NPM_TOKEN": "canary",
    }
    env = child_environment(command, {}, ours)
    assert env == {"PATH": os.defpath, "NO_PROXY": "localhost", "NODE_EXTRA_CA_CERTS": "/etc/ca.pem"}


@pytest.mark.parametrize(
    ("returncode", "text"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was ended by SIGKILL"),
        (-11, "was ended by SIGSEGV"),
        (-63, "was ended by signal 63"),
    ],
)
def test_an_exit_is_described_by_code_or_signal_name(returncode: int, text: str) -> None:
    assert describe_exit(returncode) == text


@pytest.mark.requirement("S1/XC-003")
@on_both_loops
async def test_fifty_children_leave_no_descriptor_and_no_zombie() -> None:
    before = descriptors(), children()
    for _ in range(50):
        await Child("answer_and_end", "", "0").end(PATIENT)
    assert (descriptors(), children()) == before
