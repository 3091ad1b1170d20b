"""A program that claims to do nothing and tries everything: run with one JSON object that says where.

Writes one line, a JSON-RPC notification whose params say of each deed "done" or the name of the error, then reads its input to
the end. Needs nothing but the standard library, so that it starts with `python -I -S`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

IO_URING_SETUP, MEMFD_CREATE = 425, {"x86_64": 319, "aarch64": 279}[os.uname().machine]
MSG_FASTOPEN, IPPROTO_MPTCP = 0x20000000, 262
CLONE_NEWUSER, IPC_PRIVATE, KEYCTL_GET_KEYRING_ID, SESSION_KEYRING, PRIO_USER = 0x10000000, 0, 0, -3, 2
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NODUMP_FL = 0x80086601, 0x40086602, 0x40
NUMBERS = {
    "x86_64": {"setpriority": 141, "ioprio_set": 251, "ioprio_get": 252, "move_pages": 279, "keyctl": 250, "kcmp": 312}
    | {"sched_setattr": 314, "sched_getattr": 315, "process_vm_readv": 310, "shmget": 29, "shmctl": 31, "ptrace": 101}
    | {
        "msgget": 68,
        "msgctl": 71,
        "perf_event_open": 298,
        "adjtimex": 159,
        "unshare": 272,
        "clone3": 435,
        "chroot": 161,
    },
    "aarch64": {"setpriority": 140, "ioprio_set": 30, "ioprio_get": 31, "move_pages": 239, "keyctl": 219, "kcmp": 272}
    | {"sched_setattr": 274, "sched_getattr": 275, "process_vm_readv": 270, "shmget": 194, "shmctl": 195, "ptrace": 117}
    | {
        "msgget": 186,
        "msgctl": 187,
        "perf_event_open": 241,
        "adjtimex": 171,
        "unshare": 97,
        "clone3": 435,
        "chroot": 51,
    },
}[os.uname().machine]


def syscall(number: int, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"x")


def in_a_child(deed: Callable[[], None]) -> None:
    """The same by a process of its own, which tells its errno by its exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            deed()
        except OSError as problem:
            os._exit(problem.errno or 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")


def connect(
    address: tuple[str, int] | str, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0
) -> None:
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(5)
        sock.connect(address)


def connect_by_sending(port: int) -> None:
    with socket.socket() as sock:
        sock.sendto(b"x", MSG_FASTOPEN, ("127.0.0.1", port))


def listen(port: int | None) -> None:
    with socket.socket() as sock:
        if port is not None:
            sock.bind(("127.0.0.1", port))
        sock.listen()


def send_udp(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"secret", ("127.0.0.1", port))


def send_by_a_pair(path: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.sendto(b"secret", path)


def start(program: str) -> None:
    in_a_child(lambda: os.execv(program, [program]))


def start_from_memory(program: str) -> None:
    descriptor = syscall(MEMFD_CREATE, b"x", 0)
    with open(program, "rb") as file:
        os.write(descriptor, file.read())
    in_a_child(lambda: os.execv(f"/proc/self/fd/{descriptor}", [program]))


def talk_to_the_kernel_behind_its_back() -> None:
    os.close(syscall(IO_URING_SETUP, 1, ctypes.byref(ctypes.create_string_buffer(mmap.PAGESIZE))))


def limit_the_parent() -> None:
    """With the limits it has already: proves that they could be others."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, limits)


def reprioritise(kind: int, who: int) -> None:
    syscall(NUMBERS["setpriority"], kind, who, os.getpriority(os.PRIO_PROCESS, os.getppid()))


def reschedule_by_attributes() -> None:
    attributes = ctypes.create_string_buffer(56)
    syscall(NUMBERS["sched_getattr"], os.getppid(), attributes, 56, 0)
    syscall(NUMBERS["sched_setattr"], os.getppid(), attributes, 0)


def reprioritise_input() -> None:
    syscall(NUMBERS["ioprio_set"], 1, os.getppid(), syscall(NUMBERS["ioprio_get"], 1, os.getppid()))


def share_memory() -> None:
    syscall(NUMBERS["shmctl"], syscall(NUMBERS["shmget"], IPC_PRIVATE, 4096, 0o600), 0, None)


def share_messages() -> None:
    syscall(NUMBERS["msgctl"], syscall(NUMBERS["msgget"], IPC_PRIVATE, 0o600), 0, None)


def read_the_clock_of_the_machine() -> None:
    syscall(NUMBERS["adjtimex"], ctypes.create_string_buffer(256))


def change_an_attribute(path: str) -> None:
    """As chattr does, with a descriptor that only reads."""
    with open(path, "rb") as file:
        flags = bytearray(8)
        fcntl.ioctl(file, FS_IOC_GETFLAGS, flags, True)
        flags[0] ^= FS_NODUMP_FL
        fcntl.ioctl(file, FS_IOC_SETFLAGS, bytes(flags))


def processes() -> dict[str, Callable[[], None]]:
    """Deeds on other processes of the same user, and on what all its processes share."""
    parent = os.getppid()
    return {
        "limit the parent": limit_the_parent,
        "reprioritise the parent": lambda: reprioritise(os.PRIO_PROCESS, parent),
        "reprioritise the group of the parent": lambda: reprioritise(os.PRIO_PGRP, os.getpgid(parent)),
        "reprioritise what a child may": lambda: in_a_child(lambda: reprioritise(os.PRIO_PROCESS, parent)),
        "reschedule the parent": lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0)),
        "reschedule the parent by parameter": lambda: os.sched_setparam(parent, os.sched_param(0)),
        "reschedule the parent by attributes": reschedule_by_attributes,
        "bind the parent to a processor": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
        "reprioritise the input of the parent": reprioritise_input,
        "compare the parent": lambda: [syscall(NUMBERS["kcmp"], parent, os.getpid(), 1, 0, 0)][:0].clear(),
        "read a keyring": lambda: [syscall(NUMBERS["keyctl"], KEYCTL_GET_KEYRING_ID, SESSION_KEYRING, 1)][:0].clear(),
        "share memory": share_memory,
        "share messages": share_messages,
        "ask the clock of the machine": read_the_clock_of_the_machine,
        "make a user namespace": lambda: in_a_child(
            lambda: [syscall(NUMBERS["unshare"], CLONE_NEWUSER)][:0].clear(),
        ),
        "leave the session": lambda: in_a_child(os.setsid),
        "leave the group": lambda: in_a_child(lambda: os.setpgid(0, 0)),
        "read the connections of the machine": lambda: read("/proc/net/tcp"),
        "read the connections by a thread": lambda: read(f"/proc/self/task/{os.getpid()}/net/tcp"),
        "read the mounts": lambda: read("/proc/mounts"),
        "read the mounts of oneself": lambda: read("/proc/self/mountinfo"),
    }


def deeds(at: dict[str, Any]) -> dict[str, Callable[[], None]]:
    folder = at["folder"]
    return {
        "read a file": lambda: read(at["secret"]),
        "read a file by a link": lambda: read(at["link"]),
        "read a file by the root of a process": lambda: read("/proc/self/root" + at["secret"]),
        "read what a child may": lambda: in_a_child(lambda: read(at["secret"])),
        "list a folder": lambda: [None for _ in os.scandir(folder)][:0].clear(),
        "write a file": lambda: append(f"{folder}/new"),
        "write into a file": lambda: append(at["secret"]),
        "write what a child may": lambda: in_a_child(lambda: append(f"{folder}/newer")),
        "cut a file short": lambda: os.truncate(at["victim"], 0),
        "rename a file": lambda: os.rename(at["victim"], f"{folder}/renamed"),
        "remove a file": lambda: os.remove(f"{folder}/removable"),
        "make a folder": lambda: os.mkdir(f"{folder}/made"),
        "make a link": lambda: os.symlink("/", f"{folder}/root"),
        "change a mode": lambda: os.chmod(at["secret"], 0o644),
        "change times": lambda: os.utime(at["secret"]),
        "change an attribute": lambda: change_an_attribute(at["secret"]),
        "connect": lambda: connect(("127.0.0.1", at["tcp"])),
        "connect by another protocol": lambda: connect(("127.0.0.1", at["tcp"]), protocol=IPPROTO_MPTCP),
        "connect by sending": lambda: connect_by_sending(at["tcp"]),
        "connect what a child may": lambda: in_a_child(lambda: connect(("127.0.0.1", at["tcp"]))),
        "listen": lambda: listen(at["free"]),
        "listen anywhere": lambda: listen(None),
        "send a datagram": lambda: send_udp(at["udp"]),
        "connect to a Unix socket": lambda: connect(at["unix"], socket.AF_UNIX),
        "send to a Unix socket": lambda: connect(at["log"], socket.AF_UNIX, socket.SOCK_DGRAM),
        "send to a Unix socket by a pair": lambda: send_by_a_pair(at["log"]),
        "connect to an abstract socket": lambda: connect("\0" + at["abstract"], socket.AF_UNIX),
        "start a program": lambda: start("/bin/true"),
        "start a program from memory": lambda: start_from_memory("/bin/true"),
        "signal the parent": lambda: os.kill(os.getppid(), signal.SIGCONT),
        "read the parent's environment": lambda: read(f"/proc/{os.getppid()}/environ"),
        "use io_uring": talk_to_the_kernel_behind_its_back,
        **processes(),
    }


def outcome(deed: Callable[[], None]) -> str:
    try:
        deed()
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, str(problem))
    return "done"


def call_all(numbers: dict[str, int]) -> dict[str, str]:
    """Each system call with arguments that mean nothing, so that none of them does anything where it is not denied."""

    def one(number: int) -> None:
        syscall(number, *[-1] * 6)

    return {name: outcome(partial(one, number)) for name, number in numbers.items()}


def main() -> None:
    at = json.loads(sys.argv[1])
    if "calls" in at:
        os.write(1, json.dumps(call_all(at["calls"])).encode() + b"\n")
        return
    only = at.get("only")
    said = {name: outcome(deed) for name, deed in deeds(at).items() if only is None or name in only}
    os.write(1, json.dumps({"jsonrpc": "2.0", "method": "deeds", "params": said}).encode() + b"\n")
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
