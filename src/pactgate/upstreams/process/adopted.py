"""Orphans of the children: the gateway adopts them (PR_SET_CHILD_SUBREAPER), so that it can end those whose server has ended.

A process that has left its group and cleared its environment is found by nothing else where there are no cgroups. The kernel gives it to
the gateway when its parent ends. Orphans that appear when a server ends are the server's, and are ended; those that appeared before, or
have the mark of a server that lives, are ended with the gateway at the latest. Must not: be used in a process that has other children in
sessions of their own: it reaps and ends every child of another session that it does not know.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36


class AdoptedProcesses:
    """The orphans this process has adopted. Without effect where the kernel does not know subreapers."""

    def __init__(self) -> None:
        self._standing: set[int] = set()

    def start(self) -> None:
        _be_subreaper(True)

    def stop(self) -> None:
        _be_subreaper(False)

    def note(self, known: Collection[int]) -> None:
        """Reap the dead, and remember the living, while no server is ending: any server may have left them."""
        self._standing = set(_living_orphans(known))

    def living(self, known: Collection[int]) -> list[int]:
        return _living_orphans(known)

    def end_new(self, known: Collection[int], living_marks: Collection[bytes]) -> bool:
        """End the orphans that were not there at the last `note`. Returns whether there were any: their children come next.

        `living_marks` are entries of the environment by which the descendants of living servers are known.
        """
        new = (pid for pid in _living_orphans(known) if pid not in self._standing)
        return _kill(pid for pid in new if _environment(pid).isdisjoint(living_marks))

    def end_all(self, known: Collection[int]) -> bool:
        return _kill(_living_orphans(known))


def _kill(pids: Iterable[int]) -> bool:
    found = list(pids)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def _living_orphans(known: Collection[int]) -> list[int]:
    """The children of this process that were a server's. Those that are dead are reaped.

    Every server leads a session, so none of its descendants is in the session of the gateway.
    """
    ours = os.getsid(0)
    return [
        pid
        for pid in children_of(os.getpid())
        if pid not in known and _session(pid) not in (ours, 0) and not _is_reaped(pid)
    ]


def _environment(pid: int) -> set[bytes]:
    """The entries of its environment; none if they can't be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return set(file.read().split(b"\0"))
    except OSError:
        return set()


def _session(pid: int) -> int:
    """0 if there is no such process."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _be_subreaper(is_one: bool) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # only a gateway that is a program of its own needs it

    arguments = [ctypes.c_ulong(value) for value in (int(is_one), 0, 0, 0)]
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, *arguments)
