"""The seccomp filter, run without a kernel, so that it is tested for machines other than this one."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process.executable import resolve_executable
from pactgate.upstreams.process.sandbox import rules_of
from pactgate.upstreams.process.syscall_filter import (
    ALLOW,
    DENY,
    DENY_NEVER,
    KILL_PROCESS,
    NO_SUCH_CALL,
    SYSCALL_NUMBERS,
    SyscallNumbers,
    filter_program,
)
from tests.upstreams.confinement import environment

SECRET = (0x1122334455667788, 0x99AABBCCDDEEFF00, 0xFFFFFFFFFFFFFFFF)
OWN, OTHER = 4711, 4712
EVERYTHING = Effects(write=("/",), run=True, sockets=True, bind=(0,))
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
each_machine = pytest.mark.parametrize("machine", SYSCALL_NUMBERS.values(), ids=SYSCALL_NUMBERS)


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
    return filter_program(msgspec.to_builtins(rules), machine, has_tcp_rules=abi >= 4, secret=SECRET, pid=OWN)


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
    answer = judge(program, machine, machine.call["socket"], family | junk, kind | flags | junk, protocol | junk)
    assert answer == (ALLOW if stream or (sockets and more) else DENY)


@each_machine
def test_where_landlock_knows_no_ports_there_is_no_tcp_unless_ports_are_declared(machine: SyscallNumbers) -> None:
    for effects, expected in ((Effects(), DENY), (Effects(sockets=True), DENY), (Effects(connect=(443,)), ALLOW)):
        assert (
            judge(filtered(machine, effects, abi=3), machine, machine.call["socket"], socket.AF_INET, 1, 0) == expected
        )


@each_machine
def test_programs_are_started_only_by_who_knows_the_secret(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects())
    assert judge(program, machine, machine.call["execve"], 1, 2, 3, *SECRET) == ALLOW
    for place in range(3):
        for bit in (0, 31, 32, 63):
            wrong = [word ^ (1 << bit if index == place else 0) for index, word in enumerate(SECRET)]
            assert judge(program, machine, machine.call["execve"], 1, 2, 3, *wrong) == DENY
    assert judge(program, machine, machine.call["execve"], 1, 2, 3) == DENY
    assert judge(program, machine, machine.call["execveat"], 1, 2, 3, *SECRET) == DENY


@each_machine
def test_programs_may_be_started_where_that_is_declared(machine: SyscallNumbers) -> None:
    for run_what in (True, ("true",)):
        assert judge(filtered(machine, Effects(run=run_what)), machine, machine.call["execve"], 1, 2, 3) == ALLOW
    listed = filtered(machine, Effects(run=("true",)))
    assert judge(listed, machine, machine.call["memfd_create"], 1, 1) == DENY
    assert judge(listed, machine, machine.call["memfd_create"], 1, 9) == ALLOW
    assert judge(filtered(machine, Effects(run=True)), machine, machine.call["memfd_create"], 1, 1) == ALLOW


@each_machine
def test_the_machine_itself_is_never_touched_and_metadata_only_by_who_may_write(machine: SyscallNumbers) -> None:
    everything = filtered(machine, EVERYTHING)
    for number in machine.never:
        assert judge(everything, machine, number) == DENY_NEVER
    for number in machine.metadata:
        assert judge(everything, machine, number) == ALLOW
        assert judge(filtered(machine, Effects()), machine, number) == DENY
    set_flags, get_flags, ioctl = 0x40086602, 0x80086601, machine.call["ioctl"]
    assert judge(everything, machine, ioctl, 3, set_flags) == ALLOW
    assert judge(filtered(machine, Effects()), machine, ioctl, 3, set_flags) == DENY
    assert judge(filtered(machine, Effects()), machine, ioctl, 3, get_flags) == ALLOW


@each_machine
def test_sending_does_not_connect_and_a_pair_does_not_reach_out(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects(connect=(443,)))
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        number, flags = machine.call[name], [0] * place
        assert judge(program, machine, number, *flags, 0x4000) == ALLOW
        assert judge(program, machine, number, *flags, 0x20004000) == DENY
    assert judge(program, machine, machine.call["socketpair"], 1, 1 | socket.SOCK_CLOEXEC) == ALLOW
    assert judge(program, machine, machine.call["socketpair"], 1, 2 | socket.SOCK_CLOEXEC) == DENY
    assert judge(program, machine, machine.call["listen"], 3, 5) == DENY
    assert judge(filtered(machine, Effects(bind=(80,))), machine, machine.call["listen"], 3, 5) == ALLOW


@each_machine
def test_calls_of_another_architecture_do_not_slip_through(machine: SyscallNumbers) -> None:
    program = filtered(machine, Effects())
    assert judge(program, machine, 1, audit=0x40000003) == KILL_PROCESS
    if machine is SYSCALL_NUMBERS["x86_64"]:
        assert judge(program, machine, 0x40000000 | machine.call["socket"], 1, 1) == NO_SUCH_CALL
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


@each_machine
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(
    "name",
    [
        *("prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"),
        *("migrate_pages", "move_pages"),
    ],
)
def test_limits_scheduling_and_pages_are_changed_of_the_program_itself_only(machine: SyscallNumbers, name: str) -> None:
    program = filtered(machine, EVERYTHING)
    for pid, answer in ((0, ALLOW), (OWN, ALLOW), (OTHER, DENY_NEVER), (1, DENY_NEVER), (0xFFFFFFFF, DENY_NEVER)):
        assert judge(program, machine, machine.call[name], pid) == answer
        assert judge(program, machine, machine.call[name], pid | 1 << 32) == answer  # the kernel reads 32 bits


@each_machine
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(("name", "process", "others"), [("setpriority", 0, (1, 2)), ("ioprio_set", 1, (0, 2, 3))])
def test_priorities_of_groups_and_of_all_processes_of_a_user_are_not_changed(
    machine: SyscallNumbers, name: str, process: int, others: tuple[int, ...]
) -> None:
    program, number = filtered(machine, EVERYTHING), machine.call[name]
    assert judge(program, machine, number, process, 0) == judge(program, machine, number, process, OWN) == ALLOW
    assert judge(program, machine, number, process, OTHER) == DENY_NEVER
    for kind in others:
        assert judge(program, machine, number, kind, 0) == judge(program, machine, number, kind, OWN) == DENY_NEVER


@each_machine
@pytest.mark.requirement("S2/MCP-002")
def test_a_process_can_fork_and_have_threads_but_no_namespaces(machine: SyscallNumbers) -> None:
    program = filtered(machine, EVERYTHING)
    thread = 0x3D0F00
    for flags in (17, 0x4111, thread, 0x01200011):  # fork, vfork, a thread, fork as the C library does it
        assert judge(program, machine, machine.call["clone"], flags) == ALLOW
    assert judge(program, machine, machine.call["unshare"], 0x400) == ALLOW
    assert judge(program, machine, machine.call["unshare"], 0x80) == DENY_NEVER
    for namespace in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(program, machine, machine.call["clone"], 17 | namespace) == DENY_NEVER
        assert judge(program, machine, machine.call["unshare"], namespace) == DENY_NEVER
    assert judge(program, machine, machine.call["clone3"], 1, 88) == NO_SUCH_CALL


@pytest.mark.parametrize("name", SYSCALL_NUMBERS)
def test_the_numbers_are_those_of_the_kernels_headers(name: str) -> None:
    if not HEADERS[name].exists():
        pytest.skip(f"no kernel headers for {name}")
    pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)\n"
    listed = {found[1]: int(found[2]) for found in re.finditer(pattern, HEADERS[name].read_text())}
    compared = {call: number for call, number in SYSCALL_NUMBERS[name].call.items() if call in listed}
    assert len(compared) > 100
    assert compared == {call: listed[call] for call in compared}
    assert not {call for call in listed if call not in compared} & set(SYSCALL_NUMBERS["x86_64"].call)
