"""A declaration of effects, held by the kernel: what a liar is denied, what honest programs keep, and what is said of it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pactgate.config.sections.effects import Effects
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.process import launcher, sandbox
from pactgate.upstreams.process.child import SpawnError
from pactgate.upstreams.process.executable import Executable
from pactgate.upstreams.process.sandbox import (
    ANY_FREE_PORT,
    METADATA_ELSEWHERE,
    SandboxRules,
    SandboxSupport,
    confine,
    level_of,
    probe,
    rules_of,
)
from pactgate.upstreams.process.stdio import StdioChannel
from pactgate.upstreams.process.syscall_filter import SYSCALL_NUMBERS
from tests.support import liar
from tests.support.children import QUICK, Inbox, Witness, frame, guarded, opened
from tests.support.servers import scripted
from tests.upstreams.confinement import LIAR, attempt, bare, needs_kernel, run, world
from tests.upstreams.test_dialer import dialed

OF_OTHERS = "limits and priorities of other programs"
FULL = SandboxSupport(7, True, True)
ALONE = Executable(("tool",), ("/opt/tool",), ("/opt/tool/tool",))

FILES = {
    *("read a file", "read a file by a link", "read a file by the root of a process", "read what a child may"),
    *("list a folder",),
}
CHANGES = {
    *(
        "write a file",
        "write into a file",
        "write what a child may",
        "cut a file short",
        "rename a file",
        "remove a file",
    ),
    *("make a folder", "make a link", "change a mode", "change times", "change an attribute"),
}
CONNECTIONS = {"connect", "connect what a child may"}
SERVING = {"listen", "listen anywhere"}
SOCKETS = {
    *("send a datagram", "connect to a Unix socket", "send to a Unix socket", "send to a Unix socket by a pair"),
    *("connect to an abstract socket",),
}
PROGRAMS = {"start a program", "start a program from memory"}
NEVER = {"signal the parent", "read the parent's environment", "use io_uring"}
ON_OTHERS = set(liar.processes())
NEVER_SENT = {"connect by another protocol", "connect by sending"}
EVERYTHING = FILES | CHANGES | CONNECTIONS | SERVING | SOCKETS | PROGRAMS | NEVER | NEVER_SENT | ON_OTHERS
NOT_ON_EVERY_KERNEL = {"use io_uring", "change an attribute", *NEVER_SENT, "read a keyring", "make a user namespace"}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, str]]:
    """What the liar achieved under a declaration, run once each."""
    seen: dict[str, dict[str, str]] = {}

    def under(name: str) -> dict[str, str]:
        if name not in seen:
            with world(tmp_path_factory.mktemp("world") / "there") as at:
                seen[name] = attempt(declaration(name, at), at)
        return seen[name]

    return under


def declaration(name: str, at: dict[str, Any]) -> Effects | None:
    return {
        "free": None,
        "nothing": Effects(),
        "read": Effects(read=(at["folder"],)),
        "write": Effects(write=(at["folder"],)),
        "connect": Effects(connect=(at["tcp"],)),
        "other port": Effects(connect=(1,), bind=(1,)),
        "bind": Effects(bind=(at["free"],)),
        "sockets": Effects(sockets=True),
        "run": Effects(run=True),
    }[name]


# What a liar is denied.


@needs_kernel
def test_the_liar_could_do_all_of_it_if_nobody_held_it(outcomes: Callable[[str], dict[str, str]]) -> None:
    free = outcomes("free")
    assert set(free) == EVERYTHING
    assert {deed: end for deed, end in free.items() if end != "done" and deed not in NOT_ON_EVERY_KERNEL} == {}


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize("deed", sorted(EVERYTHING))
def test_what_is_not_declared_is_denied(deed: str, outcomes: Callable[[str], dict[str, str]]) -> None:
    assert outcomes("nothing")[deed] in ("EACCES", "EPERM")


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("read", FILES),
        # Nothing can hold back changes of modes and times once something may be written.
        ("write", FILES | CHANGES),
        ("connect", CONNECTIONS),
        ("bind", SERVING),
        ("sockets", SOCKETS),
        ("run", PROGRAMS),
        ("other port", {"listen anywhere"}),
    ],
)
def test_what_is_declared_is_allowed_and_nothing_beside_it(
    name: str, allowed: set[str], outcomes: Callable[[str], dict[str, str]]
) -> None:
    assert {deed for deed, end in outcomes(name).items() if end == "done"} == allowed


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_a_file_can_be_declared_without_its_neighbours(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        ends = attempt(Effects(write=(at["secret"],)), at)
    assert ends["read a file"] == ends["write into a file"] == "done"
    assert ends["write a file"] == ends["remove a file"] == ends["list a folder"] == "EACCES"


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_of_the_programs_on_a_machine_only_the_listed_can_be_started() -> None:
    code = (
        "import os, subprocess, sys\n"
        "for program in sys.argv[1:]:\n"
        "    try: print(subprocess.run([program], stdout=subprocess.DEVNULL).returncode)\n"
        "    except OSError as problem: print(problem.errno)"
    )
    launch = bare(sys.executable, "-I", "-c", code, "/bin/true", "true", "/bin/ls", "ls")
    done = run(confine(launch, Effects(run=("true",))).launch)
    assert done.stdout.split() == ["0", "0", "13", "13"], done.stderr


@needs_kernel
def test_a_listed_program_does_not_let_memory_be_started(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        ends = attempt(Effects(run=("true",)), at | {"only": sorted(PROGRAMS)})
    assert ends == {"start a program": "done", "start a program from memory": "EACCES"}


# Other processes of the same user.

NOBODY = 65534
ANYTHING = Effects(write=("/tmp",), run=True, sockets=True, bind=(0,), connect=(443,))
AS_PARENT = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode)"


def said_by(effects: Effects, at: dict[str, Any], user: int) -> Any:
    """What the liar says when it and its parent run as this user."""
    python = sys.executable if user == os.getuid() else "/usr/bin/python3"
    launch = confine(bare(python, "-I", "-S", LIAR, json.dumps(at)), effects).launch
    options: dict[str, Any] = {} if user == os.getuid() else {"user": user, "group": user, "extra_groups": []}
    argv = [python, "-I", "-S", "-c", AS_PARENT, python, *launch.argv[1:]]
    done = subprocess.run(argv, env=launch.env, cwd="/", capture_output=True, timeout=60, check=False, **options)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


each_user = pytest.mark.parametrize(
    "user",
    [
        pytest.param(os.getuid(), id="us"),
        pytest.param(
            NOBODY,
            id="nobody",
            marks=pytest.mark.skipif(
                os.getuid() != 0 or not os.path.exists("/usr/bin/python3"), reason="only root can become nobody"
            ),
        ),
    ],
)


@needs_kernel
@each_user
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize("effects", [Effects(), ANYTHING], ids=["nothing", "anything"])
def test_no_declaration_lets_a_program_act_on_other_processes_of_its_user(effects: Effects, user: int) -> None:
    at = dict.fromkeys(("folder", "secret", "link", "victim", "tcp", "udp", "unix", "log", "abstract", "free"), "none")
    ends = said_by(effects, at | {"only": sorted(ON_OTHERS)}, user)["params"]
    assert set(ends) == ON_OTHERS
    assert {deed: end for deed, end in ends.items() if end not in ("EACCES", "EPERM")} == {}


@needs_kernel
@each_user
@pytest.mark.requirement("S2/MCP-002")
def test_every_call_that_no_declaration_allows_is_denied(user: int) -> None:
    numbers = SYSCALL_NUMBERS[os.uname().machine]
    calls = {name: number for name, number in numbers.call.items() if number in numbers.never}
    ends = said_by(ANYTHING, {"calls": calls}, user)
    assert set(ends) == set(calls)
    assert {name: end for name, end in ends.items() if end != "EPERM"} == {}


@needs_kernel
def test_a_program_of_root_can_not_raise_its_own_limits_or_priority_again() -> None:
    code = (
        "import os, resource\n"
        "files = resource.RLIMIT_NOFILE\n"
        "resource.prlimit(0, files, (64, 64)); resource.prlimit(os.getpid(), files, (32, 32)); os.nice(1)\n"
        "os.sched_setaffinity(0, os.sched_getaffinity(0)); os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\n"
        "for deed in (lambda: resource.setrlimit(files, (64, 64)), lambda: os.nice(-5),\n"
        "             lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))):\n"
        "    try: deed(); print('done')\n"
        "    except (OSError, ValueError): print('denied')"
    )
    done = run(confine(bare(sys.executable, "-c", code), Effects()).launch)
    assert done.stdout.split() == ["denied", "denied", "denied"], done.stderr


# The files of the gateway.


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_a_program_beside_the_configuration_reads_its_own_code_and_nothing_of_the_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "captures").mkdir(parents=True)
    (folder / "package").mkdir()
    ours = ("pactgate.json", ".env", "audit.jsonl", "audit.000001.jsonl", "captures/one.jsonl", "notes.txt")
    for name in (*ours, "package/data.txt"):
        (folder / name).write_text("token")
    (folder / "package" / "__init__.py").write_text("")
    (folder / "helper.py").write_text("")
    (folder / "probe.py").write_text(
        "import helper, package, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(open(name).read())\n"
        "    except OSError as problem: print(problem.errno)\n"
    )
    launch = msgspec.structs.replace(
        bare(sys.executable, "probe.py", *ours, "/proc/self/cwd/.env", "package/data.txt"), cwd=str(folder)
    )
    private = tuple(str(folder / name) for name in ("pactgate.json", "audit.jsonl", "captures"))
    done = run(confine(launch, Effects(), private=private).launch)
    assert done.stdout.split() == ["13"] * 7 + ["token"], done.stderr


# What honest programs keep.


@needs_kernel
@each_user
@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        ("node", ("-e", "console.log(require('os').cpus().length > 0, process.memoryUsage().rss > 0)"), "true true"),
        ("node", ("-e", "new (require('worker_threads').Worker)('console.log(1 + 1)', {eval: true})"), "2"),
        ("java", ("-Xshare:auto", "-version"), ""),
        (
            "/usr/bin/python3",
            ("-c", "import threading, ssl, ctypes, os; os.waitpid(os.fork() or os._exit(0), 0); print(1)"),
            "1",
        ),
    ],
)
def test_language_runtimes_run_enforced(program: str, arguments: tuple[str, ...], said: str, user: int) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    launch = confine(bare(program, *arguments), Effects()).launch
    argv = launch.argv if user == os.getuid() else ("/usr/bin/python3", *launch.argv[1:])
    options: dict[str, Any] = {} if user == os.getuid() else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        argv, env=launch.env, cwd="/", capture_output=True, text=True, timeout=60, check=False, **options
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


@needs_kernel
def test_a_program_keeps_its_arguments_environment_folder_and_signals(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal, asyncio, ssl, sqlite3, threading\n"
        "async def main(): return await asyncio.to_thread(os.getcwd)\n"
        "print([sys.argv[1:], sorted(os.environ), asyncio.run(main()), os.listdir('/proc/self/fd')[:9],"
        " [line for line in open('/proc/self/status') if 'SigIgn' in line or 'SigBlk' in line]])"
    )
    launch = msgspec.structs.replace(bare(sys.executable, "-c", code, "a b", "é", ""), cwd=str(tmp_path))
    launch = msgspec.structs.replace(launch, env=launch.env | {"LC_ALL": "C.UTF-8", "X": "1"})
    free, held = run(launch), run(confine(launch, Effects()).launch)
    assert held.stdout == free.stdout
    assert (held.returncode, held.stderr) == (0, "")


@needs_kernel
def test_nothing_is_added_to_the_environment() -> None:
    launch = bare("env")
    assert run(confine(launch, Effects()).launch).stdout == run(launch).stdout


@needs_kernel
def test_a_script_with_env_in_its_first_line_needs_no_leave_to_start_programs(tmp_path: Path) -> None:
    script = tmp_path / "app" / "serve"
    script.parent.mkdir()
    (script.parent / "beside.py").write_text("TEXT = 'here'")
    python = os.path.basename(sys.executable)
    script.write_text(f"#!/usr/bin/env {python}\nimport sys, beside\nprint(beside.TEXT, sys.argv[1:])\n")
    script.chmod(0o755)
    launch = bare(str(script), "x")
    launch = msgspec.structs.replace(launch, env=launch.env | {"PATH": os.path.dirname(sys.executable)})
    done = run(confine(launch, Effects()).launch)
    assert done.stdout == "here ['x']\n", done.stderr


@needs_kernel
async def test_a_confined_server_is_served_and_ended_like_any_other() -> None:
    async with opened("echo", effects=Effects()) as (channel, inbox):
        await channel.send(frame(b'{"jsonrpc":"2.0","method":"x"}'))
        assert (await inbox.wait_frames(2))[1] == b'{"jsonrpc":"2.0","method":"x"}'
        assert channel.sandbox_level == "enforced"
        assert channel.pid is not None
        with Witness([channel.pid]) as witness:
            await channel.close()
            assert witness.living_after(5) == set()


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
async def test_a_server_that_declares_nothing_and_tries_everything_is_denied_over_its_channel(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        async with guarded() as child_reaper:
            inbox = Inbox()
            arguments = ("-I", "-S", LIAR, json.dumps(at))
            channel = StdioChannel(
                "liar",
                sys.executable,
                arguments,
                {},
                None,
                inbox.events.append,
                child_reaper,
                effects=Effects(),
                shutdown_steps=QUICK,
            )
            await channel.open(inbox)
            frames = await inbox.wait_frames(1)
            await channel.close()
        ends = msgspec.json.decode(frames[0])["params"]
    assert set(ends) == EVERYTHING
    assert "done" not in ends.values()


@needs_kernel
@pytest.mark.parametrize(
    ("effects", "level"),
    [
        (None, None),
        (Effects(), "enforced"),
        (Effects(enforce=False), "declared"),
        (Effects(write=("/nowhere",)), f"partly enforced: all but {METADATA_ELSEWHERE}"),
    ],
)
async def test_a_session_says_how_far_its_effects_are_held(effects: Effects | None, level: str | None) -> None:
    async with dialed(scripted(effects=effects)) as session:
        assert session.effects_level == level


# What is said, and refused, where a kernel can't.


@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(
    ("support", "effects", "missing"),
    [
        (FULL, Effects(), []),
        (FULL, Effects(connect=(443,), run=True, sockets=True), []),
        (FULL, Effects(write=("/data",)), [METADATA_ELSEWHERE]),
        (FULL, Effects(bind=(80,)), [ANY_FREE_PORT]),
        (FULL, Effects(bind=(0,)), []),
        (SandboxSupport(5, True, True), Effects(), ["signals to other programs"]),
        (SandboxSupport(3, True, True), Effects(connect=(443,)), ["TCP ports", "signals to other programs"]),
        (SandboxSupport(3, True, True), Effects(sockets=True), ["signals to other programs"]),
        (SandboxSupport(2, True, True), Effects(), ["cutting files short", "signals to other programs"]),
        (SandboxSupport(0, False, True), Effects(), ["files", "signals to other programs"]),
        (SandboxSupport(0, False, True), Effects(bind=(0,)), ["files", "TCP ports", "signals to other programs"]),
        (
            SandboxSupport(7, True, False),
            Effects(),
            ["kinds of sockets", "starting programs", "modes, owners and times of files", OF_OTHERS],
        ),
        (
            SandboxSupport(7, True, False),
            Effects(run=True, write=("/data",)),
            ["kinds of sockets", OF_OTHERS, METADATA_ELSEWHERE],
        ),
    ],
)
def test_the_level_names_what_a_kernel_can_not_hold(
    support: SandboxSupport, effects: Effects, missing: list[str]
) -> None:
    level = level_of(rules_of(effects, ALONE), support)
    assert level == (f"partly enforced: all but {', '.join(missing)}" if missing else "enforced")


def test_where_nothing_can_be_held_a_declaration_is_only_that() -> None:
    assert level_of(rules_of(Effects(), ALONE), SandboxSupport(0, False, False)) == "declared"


@pytest.mark.requirement("S2/MCP-002")
def test_a_kernel_that_can_not_hold_everything_does_not_start_the_program() -> None:
    with pytest.raises(
        SpawnError, match=r"can't enforce its `effects`: files, signals .*no Landlock.*bestEffort"
    ) as caught:
        confine(bare("true"), Effects(), ask=lambda: SandboxSupport(0, False, True, ("no Landlock",)))
    assert caught.value.permanent


def test_best_effort_starts_it_all_the_same_and_says_what_is_missing() -> None:
    confined = confine(bare("true"), Effects(best_effort=True), ask=lambda: SandboxSupport(0, False, True))
    assert confined.level == "partly enforced: all but files, signals to other programs"
    assert "--" in confined.launch.argv


def test_what_is_only_declared_is_started_as_it_is() -> None:
    launch = bare("true")
    confined = confine(launch, Effects(enforce=False), ask=lambda: SandboxSupport(0, False, False))
    assert (confined.launch, confined.level) == (launch, "declared")


async def test_a_start_that_is_refused_is_a_failure_that_no_retry_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "landlock_abi", lambda: 0)
    monkeypatch.setattr(sandbox, "confine", lambda launch, effects, **more: confine(launch, effects, ask=probe, **more))
    with pytest.raises(GatewayFailure) as caught:
        async with opened("echo", effects=Effects()):
            pass
    assert caught.value.kind is Kind.CONNECTION_FAILED
    assert caught.value.details["permanent"] is True
    assert "files" in caught.value.message


def test_a_probe_says_what_this_kernel_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "landlock_abi", lambda: 3)
    monkeypatch.setattr(launcher, "syscall_numbers", lambda: None)
    support = probe()
    assert (support.abi, support.landlock, support.seccomp) == (3, True, False)
    assert [detail.split(":")[0] for detail in support.details] == [
        "Landlock ABI 3",
        "Landlock ABI 3",
        "no seccomp filter for this machine",
    ]


# What is asked for that isn't there.


@pytest.mark.parametrize(
    ("command", "words"), [("no-such-program", "not found on PATH"), ("/no/such", "does not exist")]
)
async def test_a_program_that_is_not_there_is_named_and_not_the_launcher(command: str, words: str) -> None:
    with pytest.raises(GatewayFailure, match=words):
        async with dialed(ServerConfig(id="gone", command=command, effects=Effects(best_effort=True))):
            pass


def test_a_listed_program_that_is_not_there_is_said() -> None:
    with pytest.raises(SpawnError, match="no-such-program"):
        confine(bare("true"), Effects(run=("ls", "no-such-program")), ask=lambda: FULL)


def test_the_rules_hold_what_is_declared_and_what_no_program_starts_without() -> None:
    rules = rules_of(Effects(read=("/a",), write=("/b",), connect=(1,), bind=(2,)), ALONE)
    assert {"/a", "/opt/tool", "/usr", "/etc/resolv.conf"} <= set(rules.read)
    assert not {"/etc/passwd", "/tmp", "/", "/proc", "/etc", "/dev"} & set(rules.read)
    assert (rules.write, rules.connect, rules.bind, rules.run, rules.execute) == (("/b",), (1,), (2,), "none", ())
    assert "/etc/resolv.conf" not in rules_of(Effects(), ALONE).read


def test_listed_programs_may_be_started_with_what_loads_them() -> None:
    other = Executable(("x",), ("/opt/x",), ("/opt/x/x", "/lib/ld.so"))
    rules = rules_of(Effects(run=("x",)), ALONE, (other,))
    assert rules.execute == ("/opt/tool/tool", "/opt/x/x", "/lib/ld.so")
    assert rules.run == "listed"


def test_rules_travel_as_one_argument_and_nowhere_else() -> None:
    argv = sandbox.command_line(SandboxRules(read=("/a b",)), ALONE)
    assert argv[:4] == (sys.executable, "-I", "-S", sandbox.LAUNCHER)
    assert msgspec.json.decode(argv[4], type=SandboxRules) == SandboxRules(read=("/a b",))
    assert argv[5:] == ("--", "tool")


@needs_kernel
@pytest.mark.timing
async def test_the_sandbox_costs_a_fraction_of_a_second_once() -> None:
    loop = asyncio.get_running_loop()
    times = []
    for effects in (None, Effects()):
        best = 10.0
        for _ in range(3):
            began = loop.time()
            async with opened("echo", effects=effects) as (_, inbox):
                await inbox.wait_frames(1)
                best = min(best, loop.time() - began)
        times.append(best)
    free, held = times
    print(f"start to first line: {free * 1000:.0f} ms free, {held * 1000:.0f} ms confined")
    assert held - free < 0.5
