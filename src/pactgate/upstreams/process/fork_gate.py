"""Bounds the processes and threads of a confined server: the kernel asks before it makes another one, and waits for the answer.

Counting a few times a second is too late for a program that does nothing but fork: it has thousands of processes before the first look, and
they leave the gateway no time for a second one. So the filter of the sandbox hands each clone over (seccomp's user notification), and the
server stands still until the gateway has counted. Must not: end anything, answer from what the program says (the kernel counts), or leave
a question unanswered: the program would wait for ever.

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
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from pactgate.upstreams.process.syscall_filter import CLONE_THREAD, SYSCALL_NUMBERS

_RECEIVE: Final = 0xC0502100
"""SECCOMP_IOCTL_NOTIF_RECV, into a struct seccomp_notif of 80 bytes."""
_SEND: Final = 0xC0182101
"""SECCOMP_IOCTL_NOTIF_SEND of a struct seccomp_notif_resp: number, value, error, flags."""
_QUESTION: Final = struct.Struct("=Q8xi12xQ40x")
"""The number of the question, the system call and its first argument."""
_ANSWER: Final = struct.Struct("=QqiI")
_CONTINUE: Final = 1
_HANDED_OVER_WITH: Final = b"forks"
_RESTS_PER_COUNT: Final = 9
"""A count reads /proc on the event loop, and a server can make the gateway count at each fork: at most a tenth of its time is for that."""

REST_IF_BLIND_S: Final = 0.1


class CountedBound(Struct):
    """At most so many of something. `count` knows how many there are; `left` of them may be made before the next count."""

    most: int
    count: Callable[[], int]
    excess: str
    """What is said of a server that wants more."""
    left: int = 0


class ForkGate:
    """The bounds of one server. `on_excess` is called once, when the first process or thread beyond them is refused."""

    def __init__(self, *, processes: CountedBound, threads: CountedBound, on_excess: Callable[[str], None]) -> None:
        self._processes = processes
        self._threads = threads
        self._on_excess: Callable[[str], None] | None = on_excess
        self._loop = asyncio.get_running_loop()
        self._socket, self._launchers_end = socket.socketpair()
        self._queue: int | None = None
        self._poll = select.poll()
        self._asked: deque[tuple[int, int, int]] = deque()
        """Never more than the server has threads."""
        self._rest: asyncio.TimerHandle | None = None
        machine = SYSCALL_NUMBERS.get(os.uname().machine)
        self._clone = machine.call["clone"] if machine else None
        self.is_asked = False
        """Whether the kernel asks: not before the launcher has installed the filter, and never where it can't."""

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
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if self._queue is not None:
            self._loop.remove_reader(self._queue)
            os.close(self._queue)
            self._queue = None
        self._asked.clear()

    def _take_queue(self) -> None:
        found: list[int] = []
        with suppress(OSError):
            _, found, _, _ = socket.recv_fds(self._socket, len(_HANDED_OVER_WITH), 1)
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if found:
            self._queue = found[0]
            os.set_inheritable(self._queue, False)
            self._poll.register(self._queue, select.POLLIN)
            self._loop.add_reader(self._queue, self._receive)
            self.is_asked = True

    def _receive(self) -> None:
        """Take a question as soon as it is asked: until then a signal interrupts the fork, and few programs expect that."""
        assert self._queue is not None
        # Reading would wait for ever where nobody asks any more: a signal takes a question back, and no process may be left.
        events = sum(events for _, events in self._poll.poll(0))
        if not events & select.POLLIN:
            if events:
                self.stop()
            return
        found = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self._queue, _RECEIVE, found, True)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # not taken back: this kernel can't be answered, so it has to refuse
                self.stop()
            return
        self._asked.append(_QUESTION.unpack(found))
        if self._rest is None:
            self._answer()

    def _answer(self) -> None:
        number, call, flags = self._asked.popleft()
        bound = self._threads if call == self._clone and flags & CLONE_THREAD else self._processes
        rest_s, is_granted = self._grant(bound)
        error, how = (0, _CONTINUE) if is_granted else (-errno.EAGAIN, 0)
        assert self._queue is not None
        try:
            fcntl.ioctl(self._queue, _SEND, bytearray(_ANSWER.pack(number, 0, error, how)), True)
        except OSError as problem:
            if (
                problem.errno != errno.ENOENT
            ):  # not ended meanwhile: this kernel knows no such answer (Linux before 5.5)
                self.stop()
                return
        self._rest = self._loop.call_later(rest_s, self._go_on) if rest_s or self._asked else None
        if is_granted is False and self._on_excess is not None:
            report, self._on_excess = self._on_excess, None
            report(bound.excess)

    def _go_on(self) -> None:
        self._rest = None
        if self._asked:
            self._answer()

    def _grant(self, bound: CountedBound) -> tuple[float, bool | None]:
        """How long to rest afterwards, and whether it may be made; None if that can't be counted now.

        Counts only when what was left is used up: those that ended meanwhile make room.
        """
        rest_s = 0.0
        if bound.left <= 0:
            began = time.monotonic()
            try:
                bound.left = bound.most - bound.count()
            except OSError:  # the gateway has no descriptor left to look into /proc
                return REST_IF_BLIND_S, None
            rest_s = _RESTS_PER_COUNT * (time.monotonic() - began)
        if bound.left <= 0:
            return rest_s, False
        bound.left -= 1
        return rest_s, True
