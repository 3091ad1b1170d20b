"""The seccomp filter of a confined program: which system calls it denies, as a classic BPF program.

One table has the numbers of all calls on both architectures. Calls that act on other processes are allowed only on the caller itself.
Pure: builds the program; `launcher.py` installs it. Stands alone: only the standard library, because the launcher starts without
site-packages. Must not: allow a call on the strength of memory it points to; a filter sees numbers only, and memory can change.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

Instruction = tuple[int, int, int, int]

# The actions of a filter.
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
DENY: Final = ERRNO | errno.EACCES
DENY_NEVER: Final = ERRNO | errno.EPERM
"""For calls that no declaration allows."""
NO_SUCH_CALL: Final = ERRNO | errno.ENOSYS
ASK: Final = 0x7FC00000
"""Hands the call to whoever holds the filter's queue (`fork_gate.py`), who answers it."""

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_IPPROTO_TCP, _IPPROTO_UDP = 6, 17
_MSG_FASTOPEN = 0x20000000
_MFD_NOEXEC_SEAL = 8
_X32 = 0x40000000
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1
_CLONE_NAMESPACES: Final = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
CLONE_THREAD: Final = 0x00010000
_CLONE_NEWTIME: Final = 0x80
"""Only for unshare: in the flags of clone, these bits are the signal of exit."""

_Numbers = dict[str, tuple[int | None, int | None]]

# Each table: the number on x86-64, the number on aarch64.
_ORDINARY: Final[_Numbers] = {
    "seccomp": (317, 277),
    "execve": (59, 221),
    "execveat": (322, 281),
    "memfd_create": (319, 279),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "listen": (50, 201),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "capget": (125, 90),
    "capset": (126, 91),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
    "unshare": (272, 97),
    "ioctl": (16, 29),
}
"""Calls that the filter or the launcher looks at one by one."""

_METADATA: Final[_Numbers] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Mode, owner, times and extended attributes of files: denied unless something may be written."""

_METADATA_IOCTLS: Final = (0x40086602, 0x401C5820, 0x40087602, 0x40806685, 0x800C6613)
"""FS_IOC_SETFLAGS, _FSSETXATTR, _SETVERSION, _ENABLE_VERITY, _SET_ENCRYPTION_POLICY: they need a descriptor that is open for reading."""

_NEVER: Final[_Numbers] = {
    # The machine: modules, kernels, clocks, names, swap, ports, accounting, the kernel's log, other people's files.
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "bpf": (321, 280),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "iopl": (172, None),
    "ioperm": (173, None),
    "acct": (163, 89),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Mounts, roots and namespaces.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "statmount": (457, 457),
    "listmount": (458, 458),
    # Other processes: their memory, descriptors and events.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # What processes of one user share: keyrings, System V memory, semaphores and messages, POSIX message queues.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    # Does what the filter denies without a system call that the filter sees.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # A process that leaves its group would outlive its server: the gateway ends the group.
    "setsid": (112, 157),
    "setpgid": (109, 154),
}
"""Calls that are always denied."""

_ON_ONESELF: Final[_Numbers] = {
    "prlimit64": (302, 261),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
"""Calls whose first argument is a process: allowed with 0 and with the number of the program itself."""

_ON_ONESELF_BY_KIND: Final[_Numbers] = {"setpriority": (141, 140), "ioprio_set": (251, 30)}
"""Calls on a process, a group or all processes of a user, by the first argument: only on the caller itself."""

_SENDS: Final = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""Each with the place of its flags."""


class SyscallNumbers(NamedTuple):
    """The numbers of one architecture: of single calls by name, and of the calls that are denied together."""

    audit: int
    call: Mapping[str, int]
    metadata: tuple[int, ...]
    never: tuple[int, ...]


def _numbers(audit: int, column: int) -> SyscallNumbers:
    def known(table: _Numbers) -> dict[str, int]:
        return {name: number for name, row in table.items() if (number := row[column]) is not None}

    tables = (_ORDINARY, _METADATA, _NEVER, _ON_ONESELF, _ON_ONESELF_BY_KIND)
    return SyscallNumbers(
        audit=audit,
        call={name: number for table in tables for name, number in known(table).items()},
        metadata=tuple(known(_METADATA).values()),
        never=tuple(known(_NEVER).values()),
    )


SYSCALL_NUMBERS: Final = {"x86_64": _numbers(0xC000003E, 0), "aarch64": _numbers(0xC00000B7, 1)}


# Each block of the program is about one system call and decides if it is that call.


def _load(offset: int) -> Instruction:
    return 0x20, 0, 0, offset


def _argument(place: int, *, high: bool = False) -> Instruction:
    return _load(16 + 8 * place + (4 if high else 0))


def _answer(value: int) -> Instruction:
    return 0x06, 0, 0, value


def _equal(value: int, then: int, otherwise: int) -> Instruction:
    """Skip so many instructions."""
    return 0x15, then, otherwise, value


def _any_bit(value: int, then: int, otherwise: int) -> Instruction:
    return 0x45, then, otherwise, value


def _on_call(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    return [_equal(number, 0, len(body)), *body]


def _answer_all(numbers: Iterable[int], answer: int) -> list[Instruction]:
    return [one for number in numbers for one in _on_call(number, [_answer(answer)])]


def _one_of(argument: Sequence[Instruction], values: Sequence[int], then: Sequence[Instruction]) -> list[Instruction]:
    """Continue with `then` if the argument is one of these values, else after it."""
    tests = [_equal(value, len(values) - 1 - index, 0) for index, value in enumerate(values[:-1])]
    return [*argument, *tests, _equal(values[-1], 0, len(then)), *then]


def _socket_body(*, tcp: bool, more: bool) -> list[Instruction]:
    """TCP over the internet protocols; UDP and Unix sockets too where there may be more; no other kind ever.

    The protocol counts: MPTCP and SCTP are streams as well, and Landlock's rules about ports don't reach them.
    """
    kind = [_argument(1), (0x54, 0, 0, _SOCK_TYPE_MASK)]
    allow, deny = [_answer(ALLOW)], [_answer(DENY)]
    internet: list[Instruction] = []
    for wanted, kind_of_socket, protocol in ((tcp, _SOCK_STREAM, _IPPROTO_TCP), (more, _SOCK_DGRAM, _IPPROTO_UDP)):
        if wanted:
            internet += _one_of(kind, [kind_of_socket], [*_one_of([_argument(2)], [0, protocol], allow), *deny])
    body = _one_of([_argument(0)], [_AF_UNIX], allow) if more else []
    return [*body, *_one_of([_argument(0)], [_AF_INET, _AF_INET6], [*internet, *deny]), *deny]


def _secret_body(words: Sequence[int]) -> list[Instruction]:
    """Allow only a caller that knows the secret, passed in arguments execve does not use: the launcher, once."""
    tests: list[Instruction] = []
    for place, word in enumerate(words, start=3):
        for half, high in ((word & 0xFFFFFFFF, False), (word >> 32, True)):
            tests += [_argument(place, high=high), _equal(half, 1, 0), _answer(DENY)]
    return [*tests, _answer(ALLOW)]


def filter_program(
    rules: Mapping[str, Any], numbers: SyscallNumbers, *, has_tcp_rules: bool, secret: Sequence[int], pid: int
) -> list[Instruction]:
    """The filter for these rules. `has_tcp_rules`: Landlock holds the ports; `pid` is the program's own number.

    Programs of another word size are killed, because their system calls have other numbers.
    """
    call = numbers.call
    program = [_load(4), _equal(numbers.audit, 1, 0), _answer(KILL_PROCESS), _load(0)]
    if numbers is SYSCALL_NUMBERS["x86_64"]:
        program += [(0x35, 0, 1, _X32), _answer(NO_SUCH_CALL)]
    program += [*_answer_all(numbers.never, DENY_NEVER), *_about_processes(call, pid, asks=rules["forks"] >= 0)]
    has_tcp = has_tcp_rules or bool(rules["connect"] or rules["bind"])  # else no rule holds ports, and none is needed
    program += _on_call(call["socket"], _socket_body(tcp=has_tcp, more=rules["sockets"]))
    for name, place in _SENDS.items():  # connects without connect(), which is where Landlock looks
        body = [_argument(place), _any_bit(_MSG_FASTOPEN, 0, 1), _answer(DENY), _answer(ALLOW)]
        program += _on_call(call[name], body)
    if not rules["bind"]:
        # Without bind() it takes a free port, and Landlock does not look.
        program += _answer_all([call["listen"]], DENY)
    if not rules["sockets"]:
        # A pair of datagram sockets can send to any other Unix socket; a pair of streams only to each other.
        body = [_argument(1), (0x54, 0, 0, _SOCK_TYPE_MASK), _equal(_SOCK_STREAM, 1, 0), _answer(DENY), _answer(ALLOW)]
        program += _on_call(call["socketpair"], body)
    if not rules["write"]:
        program += _answer_all(numbers.metadata, DENY)
        program += _on_call(
            call["ioctl"], [*_one_of([_argument(1)], _METADATA_IOCTLS, [_answer(DENY)]), _answer(ALLOW)]
        )
    if rules["memory"]:
        program += _answer_all([call["memfd_create"]], DENY)  # memory in a file that no process need have mapped
    return [*program, *_about_programs(rules, call, secret), _answer(ALLOW)]


def _about_processes(call: Mapping[str, int], pid: int, *, asks: bool) -> list[Instruction]:
    """Limits, priorities and scheduling of the caller alone; no namespaces. `asks`: somebody counts its processes and threads.

    A process number is 32 bits wide to the kernel, so the low half of the argument decides. clone3 has its flags in memory, where a filter
    can't look: C libraries that are told it does not exist use clone.
    """
    allow, deny = [_answer(ALLOW)], [_answer(DENY_NEVER)]
    program = _answer_all([call["clone3"]], NO_SUCH_CALL)
    for name, flags, body in (
        ("clone", _CLONE_NAMESPACES, [_answer(ASK)] if asks else allow),
        ("unshare", _CLONE_NAMESPACES | _CLONE_NEWTIME, allow),
    ):
        program += _on_call(call[name], [_argument(0), _any_bit(flags, 0, 1), *deny, *body])
    if asks:
        program += _answer_all([call[name] for name in ("fork", "vfork") if name in call], ASK)
    for name in _ON_ONESELF:
        program += _on_call(call[name], [*_one_of([_argument(0)], [0, pid], allow), *deny])
    for name, kind in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        oneself = _one_of([_argument(1)], [0, pid], allow)
        program += _on_call(call[name], [*_one_of([_argument(0)], [kind], oneself), *deny])
    return program


def _about_programs(rules: Mapping[str, Any], call: Mapping[str, int], secret: Sequence[int]) -> list[Instruction]:
    if rules["run"] == "any":
        return []
    if rules["run"] == "listed":  # files are Landlock's; memory that can be executed has no path it could look at
        sealed = [_argument(1), _any_bit(_MFD_NOEXEC_SEAL, 1, 0), _answer(DENY), _answer(ALLOW)]
        return _on_call(call["memfd_create"], sealed)
    return [*_answer_all([call["execveat"]], DENY), *_on_call(call["execve"], _secret_body(secret))]
