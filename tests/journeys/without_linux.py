"""Runs the command line without what only Linux has, as far as that can be taken away on Linux: see `test_without_linux.py`.

Taken away: the name of the system, pidfd, epoll, memfd, eventfd, sendfile and splice, flags of sockets, the identity of the peer of a Unix
socket, and /proc and /sys, which can't be opened or listed. Not simulated: another kernel, its file system and its libc.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

sys.platform = "darwin"
for module, names in (
    (os, ("pidfd_open", "memfd_create", "eventfd", "sched_getaffinity", "splice", "copy_file_range", "sendfile")),
    (signal, ("pidfd_send_signal",)),
    (socket, ("SO_PEERCRED", "SOCK_CLOEXEC", "SOCK_NONBLOCK")),
    (select, ("epoll",)),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def deny(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str | bytes):
        path = os.fsdecode(arguments[0])
        if path.startswith(("/proc", "/sys/")):
            raise FileNotFoundError(2, "No such file or directory", path)


sys.addaudithook(deny)

from pactgate.cli.main import run  # noqa: E402 - what is imported now finds another system

sys.exit(run(sys.argv[1:]))
