"""Holds a confined server to its number of processes: the kernel asks before it makes another one, and waits for the answer.

Counting a few times a second is too late for a program that does nothing but fork: it has thousands of processes before the first look, and
they leave the gateway no time for a second one. So the filter of the sandbox hands each fork over (seccomp's user notification), and the
server stands still until the gateway has counted. Threads are no processes and are not asked about. Must not: end anything, or answer
from what the program says; the kernel counts.

A fork that was granted just before a count may not be seen by it, so a server may have up to twice its bound for a moment.

The launcher sends the end of the kernel's queue through a socket the gateway gave it. If the kernel has no such queue, none comes, and
`ResourceWatch` alone counts.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_RECEIVE: Final = 0xC0502100
"""SECCOMP_IOCTL_NOTIF_RECV, into a struct seccomp_notif of 80 bytes, which begins with the question's number."""
_SEND: Final = 0xC0182101
"""SECCOMP_IOCTL_NOTIF_SEND of a struct seccomp_notif_resp: number, value, error, flags."""
_QUESTION_BYTES: Final = 80
_ANSWER: Final = struct.Struct("=QqiI")
_CONTINUE: Final = 1
_HOW_TO_SEND: Final = b"forks"


class ForkGate:
    """The bound of one server. `on_excess` is called once, when the first process beyond it is refused."""

    def __init__(self, bound: int, *, count: Callable[[], int], on_excess: Callable[[], None]) -> None:
        """`count` knows how many processes live now."""
        self._bound = bound
        self._count = count
        self._on_excess = on_excess
        self._left = bound - 1  # the server itself is the first
        self._loop = asyncio.get_running_loop()
        self._socket, self._launchers_end = socket.socketpair()
        self._queue: int | None = None

    @property
    def launcher_fd(self) -> int:
        return self._launchers_end.fileno()

    def start(self) -> None:
        """After the launcher was started: it has its end."""
        self._launchers_end.close()
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._take_queue)

    def stop(self) -> None:
        """From now on the kernel refuses every fork. Called when the server is gone, and harmless when called again."""
        self._launchers_end.close()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
        if self._queue is not None:
            self._loop.remove_reader(self._queue)
            os.close(self._queue)
            self._queue = None

    def _take_queue(self) -> None:
        found: list[int] = []
        with suppress(OSError):
            _, found, _, _ = socket.recv_fds(self._socket, len(_HOW_TO_SEND), 1)
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if found:
            self._queue = found[0]
            os.set_inheritable(self._queue, False)
            self._loop.add_reader(self._queue, self._answer)

    def _answer(self) -> None:
        """Answer one question. Reading would wait for ever once no process is left, so the queue is looked at first."""
        assert self._queue is not None
        poll = select.poll()
        poll.register(self._queue, select.POLLIN)
        if not any(events & select.POLLIN for _, events in poll.poll(0)):
            self.stop()
            return
        question = bytearray(_QUESTION_BYTES)
        with suppress(OSError):  # whoever asked was ended meanwhile
            fcntl.ioctl(self._queue, _RECEIVE, question, True)
            (number,) = struct.unpack_from("=Q", question)
            is_granted = self._grant()
            error, flags = (0, _CONTINUE) if is_granted else (-errno.EAGAIN, 0)
            fcntl.ioctl(self._queue, _SEND, bytearray(_ANSWER.pack(number, 0, error, flags)), True)
            if not is_granted:
                self._report_once()

    def _grant(self) -> bool:
        """Count only when what was left at the last count is used up: processes that ended meanwhile make room."""
        if self._left <= 0:
            self._left = self._bound - self._count()
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    def _report_once(self) -> None:
        report, self._on_excess = self._on_excess, _nothing
        report()


def _nothing() -> None:
    """Takes the place of a report that was made."""
