"""Puts this process into a sandbox and becomes the program: `python -I -S launcher.py RULES -- program arguments`.

RULES is one JSON object with the fields of `SandboxRules` in `sandbox.py`. The launcher applies in this order: no new privileges, fewer
capabilities, the bound of memory, Landlock (files, TCP ports, signals), a seccomp filter (`syscall_filter.py`), execve.
Everything the program starts inherits them. If a required rule can't be enforced, it exits with code 126 and one line on stderr.

Stands alone: the standard library, this file and the filter. Must not: start anything before all rules are in force, read rules from the
environment, or leave a descriptor or a changed signal behind. Enforces S2/MCP-002 for child processes.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

if __name__ == "__main__":  # started with -I, which keeps our own package off the path
    sys.path.append(os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)))

from pactgate.upstreams.process.syscall_filter import (
    ERRNO,
    SYSCALL_NUMBERS,
    Instruction,
    SyscallNumbers,
    filter_program,
)

REFUSED: Final = 126
NOT_FOUND: Final = 127

# Landlock: rights on files, and the version that brought each.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = (1 << bit for bit in range(8))
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(8, 16))
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1, 2
ABI_REFER, ABI_TRUNCATE, ABI_TCP, ABI_IOCTL, ABI_SCOPE = 2, 3, 4, 5, 6

LISTING: Final = READ_DIR
READING: Final = READ_FILE | READ_DIR
WRITING: Final = (
    READING | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
) | (REFER | TRUNCATE | IOCTL_DEV)
"""Without MAKE_CHAR and MAKE_BLOCK: a device node made by root bypasses every rule about files."""
OF_A_FILE: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule about a file, not a folder, may have."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH, _RULE_PORT = 1, 2
_ASK_VERSION = 1
_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _ACTION_AVAILABLE = 1, 2
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

_CAPABILITY_VERSION_3 = 0x20080522
KEPT_CAPABILITIES: Final = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 10))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: what programs of root need for their own files and ports.
Without the others, root can't raise its own limits or priority again."""


class LaunchError(Exception):
    """Why the program is not started."""


class _Kernel:
    """System calls by number, with the error as an exception."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long

    def __call__(self, number: int, *arguments: Any) -> int:
        wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
        result: int = self._libc.syscall(ctypes.c_long(number), *wide)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result

    def forbid_new_privileges(self) -> None:
        one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
        if self._libc.prctl(_PR_SET_NO_NEW_PRIVS, one, none, none, none):
            raise OSError(ctypes.get_errno(), "no_new_privs")

    def drop_capabilities(self, numbers: SyscallNumbers) -> None:
        """Keep those in `KEPT_CAPABILITIES`, as far as this process has them. With no new privileges, execve gives none back."""
        header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
        data = ctypes.create_string_buffer(24)
        self(numbers.call["capget"], header, data)
        words = struct.unpack("=6I", data.raw)
        self(
            numbers.call["capset"],
            header,
            struct.pack("=6I", *(word & KEPT_CAPABILITIES for word in words[:3]), 0, 0, 0),
        )

    def execve(self, file: bytes, arguments: Any, environment: Any) -> int:
        self._libc.execve(file, arguments, environment)
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def landlock_abi() -> int:
    """The Landlock version of this kernel; 0 if there is none, it is off, or asking is not allowed."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _Kernel()(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def syscall_numbers() -> SyscallNumbers | None:
    """The numbers of this machine, if it is a known 64-bit one and its kernel can filter; None: no seccomp."""
    numbers = (
        SYSCALL_NUMBERS.get(os.uname().machine) if sys.maxsize > 2**32 and sys.platform.startswith("linux") else None
    )
    if numbers is None:
        return None
    try:
        _Kernel()(numbers.call["seccomp"], _ACTION_AVAILABLE, 0, ctypes.byref(ctypes.c_uint32(ERRNO)))
    except OSError:
        return None
    return numbers


def unenforceable_rules(rules: Mapping[str, Any], abi: int, has_seccomp: bool) -> list[str]:
    """The rules that this Landlock version and seccomp can't enforce, in words."""
    has_ports = bool(rules["connect"] or rules["bind"])
    held = {
        "files": abi >= 1,
        "cutting files short": abi >= ABI_TRUNCATE or abi == 0,  # with no Landlock at all, "files" says it
        "TCP ports": abi >= ABI_TCP or (has_seccomp and not has_ports),
        "signals to other programs": abi >= ABI_SCOPE,
        "kinds of sockets": has_seccomp,
        "starting programs": {"any": True, "listed": abi >= 1, "none": has_seccomp}[rules["run"]],
        "modes, owners and times of files": has_seccomp or bool(rules["write"]),
        "limits and priorities of other programs": has_seccomp,
    }
    return [what for what, is_held in held.items() if not is_held]


# Landlock.


def restrict_files_ports_and_signals(kernel: _Kernel, rules: Mapping[str, Any], abi: int) -> None:
    handled = handled_rights(rules, abi)
    ports = BIND_TCP | CONNECT_TCP if abi >= ABI_TCP else 0
    scopes = (SCOPE_SIGNAL | (0 if rules["sockets"] else SCOPE_ABSTRACT_UNIX)) if abi >= ABI_SCOPE else 0
    size = 24 if abi >= ABI_SCOPE else 16 if abi >= ABI_TCP else 8
    ruleset = kernel(_CREATE_RULESET, struct.pack("=QQQ", handled, ports, scopes), size, 0)
    rights_of = {"lists": LISTING, "read": READING, "write": WRITING, "devices": WRITING, "execute": READING | EXECUTE}
    for key, rights in rights_of.items():
        for path in rules[key]:
            _allow_path(kernel, ruleset, path, rights & handled)
    if ports:
        for right, numbers in ((CONNECT_TCP, rules["connect"]), (BIND_TCP, rules["bind"])):
            for number in numbers:
                kernel(_ADD_RULE, ruleset, _RULE_PORT, struct.pack("=QQ", right, number), 0)
    kernel(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def handled_rights(rules: Mapping[str, Any], abi: int) -> int:
    """Every right on files that this version knows; EXECUTE only if programs are listed (else the filter decides)."""
    handled = (MAKE_SYM << 1) - 1
    if rules["run"] != "listed":
        handled &= ~EXECUTE
    for since, right in ((ABI_REFER, REFER), (ABI_TRUNCATE, TRUNCATE), (ABI_IOCTL, IOCTL_DEV)):
        if abi >= since:
            handled |= right
    return handled


def _allow_path(kernel: _Kernel, ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as problem:
        _say(f"nothing is allowed in {path}: {problem.strerror}")
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= OF_A_FILE
        kernel(_ADD_RULE, ruleset, _RULE_PATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


# The seccomp filter.


def _install_filter(kernel: _Kernel, numbers: SyscallNumbers, program: Sequence[Instruction], *, flags: int = 0) -> int:
    """With `_NEW_LISTENER`, returns the queue of the calls the filter asks about."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    return kernel(numbers.call["seccomp"], _SET_MODE_FILTER, flags, header)


def _install_asking_filter(kernel: _Kernel, numbers: SyscallNumbers, program: Sequence[Instruction], end: int) -> bool:
    """Also send the queue of the calls the filter asks about to the gateway, through this end of a socket.

    Returns whether it could be done: one queue is all a process may have, and a container may have taken it.
    """
    import socket  # only a server with a bound of processes waits for it

    with socket.socket(fileno=end) as gateway:
        for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # Linux before 5.19 knows the second alone
            try:
                queue = _install_filter(kernel, numbers, program, flags=flags)
                break
            except OSError as problem:
                if problem.errno != errno.EINVAL:
                    return False
        else:
            return False
        socket.send_fds(gateway, [b"forks"], [queue])
        os.close(queue)
        return True


def _restrict_calls(
    kernel: _Kernel, rules: Mapping[str, Any], numbers: SyscallNumbers, abi: int, secret: Sequence[int]
) -> None:
    def program(rules: Mapping[str, Any]) -> list[Instruction]:
        return filter_program(rules, numbers, has_tcp_rules=abi >= ABI_TCP, secret=secret, pid=os.getpid())

    if rules["forks"] < 0 or not _install_asking_filter(kernel, numbers, program(rules), rules["forks"]):
        _install_filter(kernel, numbers, program({**rules, "forks": -1}))


# Becoming the program.


def _environment() -> list[bytes]:
    """The environment as it was given: the interpreter adds to its own copy."""
    try:
        with open("/proc/self/environ", "rb") as file:
            return [entry for entry in file.read().split(b"\0") if entry]
    except OSError:
        return [name + b"=" + value for name, value in os.environb.items()]


def _texts(values: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * (len(values) + 1))(*values, None)


def _becoming(
    kernel: _Kernel, argv: Sequence[str], secret: Sequence[int], numbers: SyscallNumbers | None
) -> Callable[[], int]:
    """A prepared execve: once the rules are in force, nothing more can be looked up."""
    words = [os.fsencode(one) for one in argv]
    file, arguments, environment = words[0], _texts(words), _texts(_environment())
    if numbers is None:
        return lambda: kernel.execve(file, arguments, environment)
    number, proof = numbers.call["execve"], [ctypes.c_uint64(word) for word in secret]
    return lambda: kernel(number, file, arguments, environment, *proof)


def launch(rules: Mapping[str, Any], argv: Sequence[str]) -> NoReturn:
    """Apply the rules and become the program, whose path is whole. Raises LaunchError."""
    abi, numbers, kernel = landlock_abi(), syscall_numbers(), _Kernel()
    missing = unenforceable_rules(rules, abi, numbers is not None)
    if missing and not rules["best_effort"]:
        raise LaunchError(f"this kernel can't enforce: {', '.join(missing)}")
    if missing:
        _say(f"not enforced by this kernel: {', '.join(missing)}")
    secret = struct.unpack("=3Q", os.urandom(24))
    become = _becoming(kernel, argv, secret, numbers)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # our interpreter ignores them, and that would be inherited
        signal.signal(number, signal.SIG_DFL)
    try:
        kernel.forbid_new_privileges()
        if numbers is not None:
            kernel.drop_capabilities(numbers)
        if rules["memory"]:
            resource.setrlimit(resource.RLIMIT_DATA, (rules["memory"], rules["memory"]))
        if abi:
            restrict_files_ports_and_signals(kernel, rules, abi)
        if numbers is not None:
            _restrict_calls(kernel, rules, numbers, abi, secret)
    except OSError as problem:
        raise LaunchError(f"the rules could not be applied: {problem.strerror}") from problem
    try:
        become()
    except OSError as problem:
        _say(f"{argv[0]} could not be started: {problem.strerror}")
        sys.exit(NOT_FOUND if problem.errno == errno.ENOENT else REFUSED)
    raise LaunchError("the program did not take over")


def _say(text: str) -> None:
    os.write(2, f"pactgate launcher: {text}\n".encode("utf-8", "backslashreplace"))


def main(words: Sequence[str]) -> NoReturn:
    try:
        if len(words) < 3 or words[1] != "--":
            raise LaunchError("usage: launcher.py RULES -- program arguments")
        try:
            rules = json.loads(words[0])
        except ValueError as problem:
            raise LaunchError(f"the rules are no JSON: {problem}") from problem
        launch(rules, words[2:])
    except LaunchError as refusal:
        _say(f"refused: {refusal}")
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
