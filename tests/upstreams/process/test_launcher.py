"""The launcher as the program it is, on this kernel and on ones it takes for older, and its filter on every machine it knows."""

from __future__ import annotations

import ast
import errno
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process import launcher
from pactgate.upstreams.process.executable import resolve_executable
from pactgate.upstreams.process.launcher import (
    ALLOW,
    DENY,
    DENY_NEVER,
    KILL_PROCESS,
    SYSCALL_NUMBERS,
    SyscallNumbers,
    filter_program,
)
from pactgate.upstreams.process.sandbox import LAUNCHER, SandboxRules, confine, rules_of
from tests.upstreams.confinement import LIAR, bare, environment, needs_kernel, run, world

SECRET = (0x1122334455667788, 0x99AABBCCDDEEFF00, 0xFFFFFFFFFFFFFFFF)
NO_SUCH_CALL = launcher._ERRNO | errno.ENOSYS
each_machine = pytest.mark.parametrize("machine", SYSCALL_NUMBERS.values(), ids=SYSCALL_NUMBERS)


def launched(
    rules: SandboxRules | str, *argv: str, abi: int | None = None, seccomp: bool = True
) -> subprocess.CompletedProcess[str]:
    """The launcher with these rules; with `abi` or without `seccomp` it takes the kernel for a lesser one."""
    text = rules if isinstance(rules, str) else msgspec.json.encode(rules).decode()
    start: tuple[str, ...] = (LAUNCHER,)
    if abi is not None or not seccomp:
        changes = f"launcher.landlock_abi = lambda: {abi}\n" if abi is not None else ""
        changes += "" if seccomp else "launcher.syscall_numbers = lambda: None\n"
        folder = str(Path(LAUNCHER).parent)
        start = (
            "-c",
            f"import sys\nsys.path.insert(0, {folder!r})\nimport launcher\n{changes}launcher.main(sys.argv[1:])",
        )
    return run(bare(sys.executable, "-I", "-S", *start, text, "--", *argv))


def rules_for(effects: Effects, *argv: str) -> SandboxRules:
    program = resolve_executable(argv, "/", environment())
    assert program is not None
    return rules_of(effects, program)


def lie(effects: Effects, at: dict[str, Any], *only: str, **kernel: Any) -> tuple[dict[str, str], str]:
    argv = (sys.executable, "-I", "-S", LIAR, json.dumps(at | {"only": only}))
    done = launched(rules_for(effects, *argv), *argv, **kernel)
    return json.loads(done.stdout)["params"] if done.stdout else {}, done.stderr


# What it refuses.


@pytest.mark.parametrize("words", [(), ("{}",), ("{}", "true"), ("{}", "--"), ("{", "--", "true")])
def test_words_it_does_not_understand_start_nothing(words: tuple[str, ...]) -> None:
    done = run(bare(sys.executable, "-I", "-S", LAUNCHER, *words))
    assert done.returncode == 126
    assert done.stderr.startswith("pactgate launcher: refused: ")
    assert done.stderr.count("\n") == 1


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(
    ("kernel", "missing"),
    [
        ({"abi": 0}, "files, signals to other programs"),
        ({"abi": 5}, "signals to other programs"),
        ({"seccomp": False}, "kinds of sockets, starting programs, modes, owners and times of files"),
    ],
)
def test_a_kernel_that_can_not_hold_the_rules_starts_nothing(
    kernel: dict[str, Any], missing: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    done = launched(rules_for(Effects(), "touch"), "touch", str(made), **kernel)
    assert (done.returncode, done.stderr) == (
        126,
        f"pactgate launcher: refused: this kernel can't enforce: {missing}\n",
    )
    assert not made.exists()


@needs_kernel
def test_rules_the_kernel_does_not_take_start_nothing() -> None:
    rules = SandboxRules(connect=(70_000,))
    done = launched(rules, "/bin/true")
    assert done.returncode == 126
    assert "refused: the rules could not be applied: Invalid argument" in done.stderr


@needs_kernel
@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ("/no/such/program", 127, "No such file or directory"),
        ("no-such-program", 127, "No such file"),
        ("/usr", 126, "Permission denied"),
    ],
)
def test_a_program_that_can_not_be_started_is_said(command: str, code: int, why: str) -> None:
    done = launched(rules_for(Effects(), "true"), command)
    assert done.returncode == code
    assert f"pactgate launcher: {command} could not be started: {why}" in done.stderr


@needs_kernel
def test_a_declared_path_that_is_missing_is_said_and_no_obstacle(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    done = run(confine(bare("true"), Effects(read=(gone,))).launch)
    assert (done.returncode, done.stderr) == (
        0,
        f"pactgate launcher: nothing is allowed in {gone}: No such file or directory\n",
    )


# Lesser kernels, as far as they go.


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_an_older_landlock_still_holds_files_and_connections(abi: int, tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = (
            "read a file",
            "write a file",
            "rename a file",
            "connect",
            "listen",
            "send a datagram",
            "start a program",
        )
        ends, said = lie(Effects(best_effort=True), at, *deeds, abi=abi)
    assert set(ends.values()) == {"EACCES"}, ends
    assert "not enforced by this kernel: " in said
    assert "signals to other programs" in said


@needs_kernel
def test_without_landlock_the_filter_still_holds_sockets_and_programs(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = (
            "read a file",
            "connect",
            "send a datagram",
            "start a program",
            "connect to a Unix socket",
            "change a mode",
        )
        ends, _ = lie(Effects(best_effort=True), at, *deeds, abi=0)
    assert ends.pop("read a file") == "done"
    assert set(ends.values()) == {"EACCES"}, ends


@needs_kernel
def test_without_a_filter_landlock_still_holds_files_ports_and_signals(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = ("read a file", "connect", "signal the parent", "connect to an abstract socket", "send a datagram")
        ends, _ = lie(Effects(best_effort=True), at, *deeds, seccomp=False)
    assert ends.pop("send a datagram") == "done"
    assert set(ends.values()) <= {"EACCES", "EPERM"}, ends


# What everything it starts inherits.


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_grandchildren_are_held_like_the_program_itself(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    script = f"sh -c 'cat {tmp_path}/secret; echo x > {tmp_path}/new' & wait; (setsid sh -c 'cat {tmp_path}/secret')"
    done = run(confine(bare("sh", "-c", script), Effects(run=True)).launch)
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()
    assert done.stderr.count("Permission denied") == 2 + 1


@needs_kernel
def test_no_privilege_can_be_gained_and_no_descriptor_is_left() -> None:
    code = "import os\nprint([line for line in open('/proc/self/status') if 'NoNewPrivs' in line], len(os.listdir('/proc/self/fd')))"
    done = run(confine(bare(sys.executable, "-I", "-S", "-c", code), Effects()).launch)
    assert done.stdout == "['NoNewPrivs:\\t1\\n'] 4\n", done.stderr


# The filter, judged without a kernel: so for machines this is not.


def judge(
    program: list[tuple[int, int, int, int]],
    machine: SyscallNumbers,
    number: int,
    *arguments: int,
    audit: int | None = None,
) -> int:
    """What a kernel would answer: classic BPF, as far as the filter uses it."""
    full = [*arguments, *[0] * (6 - len(arguments))]
    words = [number, machine.audit if audit is None else audit, 0, 0]
    for argument in full:
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    held = place = 0
    while True:
        code, then, otherwise, value = program[place]
        place += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = words[value // 4]
        elif code == 0x54:
            held &= value
        else:
            is_so = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            place += then if is_so else otherwise


def filtered(machine: SyscallNumbers, effects: Effects, abi: int = 7) -> list[tuple[int, int, int, int]]:
    listed = (resolve_executable(("true",), "/", environment()),) if isinstance(effects.run, tuple) else ()
    program = resolve_executable(("true",), "/", environment())
    assert program is not None
    rules = rules_of(effects, program, tuple(one for one in listed if one))
    return filter_program(msgspec.to_builtins(rules), machine, abi, SECRET)


@each_machine
@pytest.mark.requirement("S2/MCP-002")
@given(
    family=st.one_of(st.sampled_from([1, 2, 10, 16, 40, 43]), st.integers(0, 2**32 - 1)),
    kind=st.integers(0, 15),
    flags=st.sampled_from([0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC]),
    protocol=st.one_of(st.sampled_from([0, 6, 17, 132, 262]), st.integers(0, 2**32 - 1)),
    junk=st.sampled_from([0, 2**32, 2**63]),
    sockets=st.booleans(),
)
def test_only_declared_kinds_of_sockets_pass(
    machine: SyscallNumbers, family: int, kind: int, flags: int, protocol: int, junk: int, sockets: bool
) -> None:
    internet = family in (socket.AF_INET, socket.AF_INET6)
    stream = internet and kind == 1 and protocol in (0, 6)
    more = family == socket.AF_UNIX or (internet and kind == 2 and protocol in (0, 17))
    program = filtered(machine, Effects(sockets=sockets))
    answer = judge(program, machine, machine.socket, family | junk, kind | flags | junk, protocol | junk)
    assert answer == (ALLOW if stream or (sockets and more) else DENY)


@each_machine
def test_where_landlock_knows_no_ports_there_is_no_tcp_unless_ports_are_declared(machine: SyscallNumbers) -> None:
    for effects, expected in ((Effects(), DENY), (Effects(sockets=True), DENY), (Effects(connect=(443,)), ALLOW)):
        assert judge(filtered(machine, effects, abi=3), machine, machine.socket, socket.AF_INET, 1, 0) == expected


@each_machine
def test_programs_are_started_only_by_who_knows_the_secret(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects())
    assert judge(program, machine, machine.execve, 1, 2, 3, *SECRET) == ALLOW
    for place in range(3):
        for bit in (0, 31, 32, 63):
            wrong = [word ^ (1 << bit if index == place else 0) for index, word in enumerate(SECRET)]
            assert judge(program, machine, machine.execve, 1, 2, 3, *wrong) == DENY
    assert judge(program, machine, machine.execve, 1, 2, 3) == DENY
    assert judge(program, machine, machine.execveat, 1, 2, 3, *SECRET) == DENY


@each_machine
def test_programs_may_be_started_where_that_is_declared(machine: SyscallNumbers) -> None:
    for run_what in (True, ("true",)):
        assert judge(filtered(machine, Effects(run=run_what)), machine, machine.execve, 1, 2, 3) == ALLOW
    listed = filtered(machine, Effects(run=("true",)))
    assert judge(listed, machine, machine.memfd_create, 1, 1) == DENY
    assert judge(listed, machine, machine.memfd_create, 1, 9) == ALLOW
    assert judge(filtered(machine, Effects(run=True)), machine, machine.memfd_create, 1, 1) == ALLOW


@each_machine
def test_the_machine_itself_is_never_touched_and_metadata_only_by_who_may_write(machine: SyscallNumbers) -> None:
    everything = filtered(machine, Effects(write=("/",), run=True, sockets=True, bind=(0,)))
    for number in (*machine.privileged, 425):
        assert judge(everything, machine, number) == DENY_NEVER
    for number in machine.metadata:
        assert judge(everything, machine, number) == ALLOW
        assert judge(filtered(machine, Effects()), machine, number) == DENY


@each_machine
def test_sending_does_not_connect_and_a_pair_does_not_reach_out(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects(connect=(443,)))
    for number, place in machine.sends:
        flags = [0] * place
        assert judge(program, machine, number, *flags, 0x4000) == ALLOW
        assert judge(program, machine, number, *flags, 0x20004000) == DENY
    assert judge(program, machine, machine.socketpair, 1, 1 | socket.SOCK_CLOEXEC) == ALLOW
    assert judge(program, machine, machine.socketpair, 1, 2 | socket.SOCK_CLOEXEC) == DENY
    assert judge(program, machine, machine.listen, 3, 5) == DENY
    assert judge(filtered(machine, Effects(bind=(80,))), machine, machine.listen, 3, 5) == ALLOW


@each_machine
def test_calls_of_another_architecture_do_not_slip_through(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects())
    assert judge(program, machine, 1, audit=0x40000003) == KILL_PROCESS
    if machine is SYSCALL_NUMBERS["x86_64"]:
        assert judge(program, machine, 0x40000000 | machine.socket, 1, 1) == NO_SUCH_CALL
    assert judge(program, machine, 1) == ALLOW


@each_machine
def test_a_filter_is_one_the_kernel_takes(machine: SyscallNumbers) -> None:
    for effects in (
        Effects(),
        Effects(sockets=True),
        Effects(run=("true",)),
        Effects(write=("/",), bind=(0,), run=True),
    ):
        program = filtered(machine, effects)
        assert len(program) < 4096
        for place, (code, then, otherwise, _) in enumerate(program):
            assert max(then, otherwise) <= 255
            assert code == 0x06 or place + 1 + max(then, otherwise) < len(program)


def test_a_device_node_is_never_within_the_rights() -> None:
    for right in (launcher.MAKE_CHAR, launcher.MAKE_BLOCK):
        assert not launcher.WRITING & right
        assert launcher.handled_rights({"run": "any"}, 1) & right


def test_the_launcher_stands_alone() -> None:
    imports = [
        node
        for node in ast.walk(ast.parse(Path(LAUNCHER).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {name.name for node in imports if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
