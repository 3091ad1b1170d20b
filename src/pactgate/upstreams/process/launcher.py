"""Puts this process into a sandbox and becomes the program: `python -I -S launcher.py RULES -- program arguments`.

RULES is one JSON object with the fields of `SandboxRules` in `sandbox.py`. The launcher applies in this order: no new privileges, Landlock
(files, TCP ports, signals), a seccomp filter (kinds of sockets, starting programs, metadata of files, privileged calls), execve.
Everything the program starts inherits them. If a required rule can't be enforced, it exits with code 126 and one line on stderr.

Stands alone: the standard library and this file. Must not: start anything before all rules are in force, read rules from the environment,
or leave a descriptor or a changed signal behind. Enforces S2/MCP-002 for child processes.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

REFUSED: Final = 126
NOT_FOUND: Final = 127

# Landlock: rights on files, and the version that brought each.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = (1 << bit for bit in range(8))
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(8, 16))
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1, 2
ABI_REFER, ABI_TRUNCATE, ABI_TCP, ABI_IOCTL, ABI_SCOPE = 2, 3, 4, 5, 6

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

# What a filter answers.
ALLOW, KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
DENY: Final = _ERRNO | errno.EACCES
DENY_NEVER: Final = _ERRNO | errno.EPERM

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_IPPROTO_TCP, _IPPROTO_UDP = 6, 17
_MSG_FASTOPEN = 0x20000000
_MFD_NOEXEC_SEAL = 8
_X32 = 0x40000000


class SyscallNumbers(NamedTuple):
    """The numbers of one architecture. `metadata` and `privileged` are denied whole."""

    audit: int
    seccomp: int
    execve: int
    execveat: int
    socket: int
    socketpair: int
    listen: int
    memfd_create: int
    sends: tuple[tuple[int, int], ...]  # sendto, sendmsg, sendmmsg, each with the place of its flags
    metadata: tuple[int, ...]  # mode, owner, times and extended attributes of files
    privileged: tuple[int, ...]  # modules, kexec, reboot, clock, host name, swap, bpf, I/O ports, files by handle


_IO_URING_SETUP = 425  # does what the filter denies without a system call the filter sees
_EVERYWHERE = (452, 463, 466, 469)  # fchmodat2, setxattrat, removexattrat, file_setattr
SYSCALL_NUMBERS: Final = {
    "x86_64": SyscallNumbers(
        *(0xC000003E, 317, 59, 322, 41, 53, 50, 319),
        sends=((44, 3), (46, 2), (307, 3)),
        metadata=(90, 91, 92, 93, 94, 260, 268, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199, *_EVERYWHERE),
        privileged=(175, 176, 313, 246, 320, 169, 164, 227, 170, 171, 167, 168, 321, 172, 173, 304),
    ),
    "aarch64": SyscallNumbers(
        *(0xC00000B7, 277, 221, 281, 198, 199, 201, 279),
        sends=((206, 3), (211, 2), (269, 3)),
        metadata=(52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16, *_EVERYWHERE),
        privileged=(105, 106, 273, 104, 294, 142, 170, 112, 161, 162, 224, 225, 280, 265),
    ),
}

_Instruction = tuple[int, int, int, int]


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
        _Kernel()(numbers.seccomp, _ACTION_AVAILABLE, 0, ctypes.byref(ctypes.c_uint32(_ERRNO)))
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
    }
    return [what for what, is_held in held.items() if not is_held]


# Landlock.


def restrict_files_ports_and_signals(kernel: _Kernel, rules: Mapping[str, Any], abi: int) -> None:
    handled = handled_rights(rules, abi)
    ports = BIND_TCP | CONNECT_TCP if abi >= ABI_TCP else 0
    scopes = (SCOPE_SIGNAL | (0 if rules["sockets"] else SCOPE_ABSTRACT_UNIX)) if abi >= ABI_SCOPE else 0
    size = 24 if abi >= ABI_SCOPE else 16 if abi >= ABI_TCP else 8
    ruleset = kernel(_CREATE_RULESET, struct.pack("=QQQ", handled, ports, scopes), size, 0)
    rights_of = {"read": READING, "write": WRITING, "devices": WRITING, "execute": READING | EXECUTE}
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


# seccomp: a classic BPF program. Each block is about one system call and decides if it is that call.


def _load(offset: int) -> _Instruction:
    return 0x20, 0, 0, offset


def _argument(place: int, *, high: bool = False) -> _Instruction:
    return _load(16 + 8 * place + (4 if high else 0))


def _answer(value: int) -> _Instruction:
    return 0x06, 0, 0, value


def _equal(value: int, then: int, otherwise: int) -> _Instruction:
    """Skip so many instructions."""
    return 0x15, then, otherwise, value


def _any_bit(value: int, then: int, otherwise: int) -> _Instruction:
    return 0x45, then, otherwise, value


def _on_call(number: int, body: Sequence[_Instruction]) -> list[_Instruction]:
    return [_equal(number, 0, len(body)), *body]


def _deny(numbers: Sequence[int], answer: int) -> list[_Instruction]:
    return [one for number in numbers for one in _on_call(number, [_answer(answer)])]


def _one_of(
    argument: Sequence[_Instruction], values: Sequence[int], then: Sequence[_Instruction]
) -> list[_Instruction]:
    """Continue with `then` if the argument is one of these values, else after it."""
    tests = [_equal(value, len(values) - 1 - index, 0) for index, value in enumerate(values[:-1])]
    return [*argument, *tests, _equal(values[-1], 0, len(then)), *then]


def _socket_body(*, tcp: bool, more: bool) -> list[_Instruction]:
    """TCP over the internet protocols; UDP and Unix sockets too where there may be more; no other kind ever.

    The protocol counts: MPTCP and SCTP are streams as well, and Landlock's rules about ports don't reach them.
    """
    kind = [_argument(1), (0x54, 0, 0, _SOCK_TYPE_MASK)]
    allow, deny = [_answer(ALLOW)], [_answer(DENY)]
    internet: list[_Instruction] = []
    for wanted, kind_of_socket, protocol in ((tcp, _SOCK_STREAM, _IPPROTO_TCP), (more, _SOCK_DGRAM, _IPPROTO_UDP)):
        if wanted:
            internet += _one_of(kind, [kind_of_socket], [*_one_of([_argument(2)], [0, protocol], allow), *deny])
    body = _one_of([_argument(0)], [_AF_UNIX], allow) if more else []
    return [*body, *_one_of([_argument(0)], [_AF_INET, _AF_INET6], [*internet, *deny]), *deny]


def _secret_body(words: Sequence[int]) -> list[_Instruction]:
    """Allow only a caller that knows the secret, passed in arguments execve does not use: the launcher, once."""
    tests: list[_Instruction] = []
    for place, word in enumerate(words, start=3):
        for half, high in ((word & 0xFFFFFFFF, False), (word >> 32, True)):
            tests += [_argument(place, high=high), _equal(half, 1, 0), _answer(DENY)]
    return [*tests, _answer(ALLOW)]


def filter_program(
    rules: Mapping[str, Any], numbers: SyscallNumbers, abi: int, secret: Sequence[int]
) -> list[_Instruction]:
    """The filter for these rules. Programs of another word size are killed, because their system calls have other numbers."""
    program = [_load(4), _equal(numbers.audit, 1, 0), _answer(KILL_PROCESS), _load(0)]
    if numbers is SYSCALL_NUMBERS["x86_64"]:
        program += [(0x35, 0, 1, _X32), _answer(_ERRNO | errno.ENOSYS)]
    program += _deny((_IO_URING_SETUP, *numbers.privileged), DENY_NEVER)
    has_tcp = abi >= ABI_TCP or bool(rules["connect"] or rules["bind"])  # else no rule holds ports, and none is needed
    program += _on_call(numbers.socket, _socket_body(tcp=has_tcp, more=rules["sockets"]))
    for number, place in numbers.sends:  # connects without connect(), which is where Landlock looks
        program += _on_call(number, [_argument(place), _any_bit(_MSG_FASTOPEN, 0, 1), _answer(DENY), _answer(ALLOW)])
    if not rules["bind"]:
        program += _deny([numbers.listen], DENY)  # without bind() it takes a free port, and Landlock does not look
    if not rules["sockets"]:
        # A pair of datagram sockets can send to any other Unix socket; a pair of streams only to each other.
        body = [_argument(1), (0x54, 0, 0, _SOCK_TYPE_MASK), _equal(_SOCK_STREAM, 1, 0), _answer(DENY), _answer(ALLOW)]
        program += _on_call(numbers.socketpair, body)
    if not rules["write"]:
        program += _deny(numbers.metadata, DENY)
    return [*program, *_about_programs(rules, numbers, secret), _answer(ALLOW)]


def _about_programs(rules: Mapping[str, Any], numbers: SyscallNumbers, secret: Sequence[int]) -> list[_Instruction]:
    if rules["run"] == "any":
        return []
    if rules["run"] == "listed":  # files are Landlock's; memory that can be executed has no path it could look at
        sealed = [_argument(1), _any_bit(_MFD_NOEXEC_SEAL, 1, 0), _answer(DENY), _answer(ALLOW)]
        return _on_call(numbers.memfd_create, sealed)
    return [*_deny([numbers.execveat], DENY), *_on_call(numbers.execve, _secret_body(secret))]


def _install_filter(kernel: _Kernel, numbers: SyscallNumbers, program: Sequence[_Instruction]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    kernel(numbers.seccomp, _SET_MODE_FILTER, 0, header)


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
    number, proof = numbers.execve, [ctypes.c_uint64(word) for word in secret]
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
        if abi:
            restrict_files_ports_and_signals(kernel, rules, abi)
        if numbers is not None:
            _install_filter(kernel, numbers, filter_program(rules, numbers, abi, secret))
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
