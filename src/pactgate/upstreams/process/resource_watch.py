"""Holds a confined server to its bounds of memory and processes: a few times a second it looks, and reports an excess.

The launcher bounds the private memory of each process (RLIMIT_DATA); here all processes of the server are counted together. They are the
members of its process group, which a confined process can't leave. Their number and that of their threads is held by the `ForkGate`,
before each fork; both are counted here as well for kernels that can't ask. Linux counts processes per user only (RLIMIT_NPROC), which
would bound the gateway too. Must not: end anything, or look at the processes of others longer than it takes to skip them.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

CHECK_S: Final = 0.2
MAX_THREADS: Final = 4096
"""Of all processes of a server together, where their number is bounded: threads use up the machine's process numbers as well."""
MEASURE_S: Final = 1.0
"""Measuring costs about a millisecond per 100 MiB, so it is done at most once in this time."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_OWN_MEMORY: Final = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


class ResourceWatch:
    """Watches one process group until it is stopped. `on_excess` is called once, with what was too much."""

    def __init__(
        self,
        pgid: int,
        *,
        memory: int,
        processes: int,
        threads: int,
        members: Callable[[int], Sequence[int] | None],
        on_excess: Callable[[str], None],
    ) -> None:
        """A bound of 0 is none; `threads` holds where `processes` does. `members` knows the processes of the group, or returns None: then
        /proc is searched for them.
        """
        self._pgid = pgid
        self._memory = memory
        self._processes = processes
        self._threads = threads
        self._members = members
        self._on_excess = on_excess
        self._loop = asyncio.get_running_loop()
        self._measured_at = -MEASURE_S
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(CHECK_S, self._check)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        excess = None
        with suppress(OSError):  # the gateway has no descriptor left to look into /proc; it looks again
            excess = self._excess()
        if excess is None:
            self._timer = self._loop.call_later(CHECK_S, self._check)
        else:
            self._timer = None
            self._on_excess(excess)

    def _excess(self) -> str | None:
        pids = living_processes(self._pgid, self._members)
        if self._processes and len(pids) > self._processes:
            return too_many_processes(self._processes)
        if self._processes and thread_count(pids) > self._threads:
            return too_many_threads(self._threads)
        now = self._loop.time()
        if not self._memory or resident_bytes(pids) <= self._memory or now < self._measured_at + MEASURE_S:
            return None
        self._measured_at = now
        if own_bytes(pids) <= self._memory:
            return None
        return f"used more than {self._memory // 2**20} MiB of memory (effects.memory)"


def too_many_processes(bound: int) -> str:
    return f"had more than {bound} processes (effects.processes)"


def too_many_threads(bound: int) -> str:
    return f"had more than {bound} threads"


def living_processes(pgid: int, members: Callable[[int], Sequence[int] | None]) -> Sequence[int]:
    """The processes of a server, from its cgroup or, where it has none, from /proc."""
    found = members(pgid)
    return group_members(pgid) if found is None else found


def group_members(pgid: int) -> list[int]:
    """The living processes of a group."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_member(pid, pgid)]


def _is_member(pid: int, pgid: int) -> bool:
    try:
        if os.getpgid(pid) != pgid:
            return False
    except ProcessLookupError:
        return False
    # "pid (name) state ..."; a name may have spaces and brackets.
    return _read(f"/proc/{pid}/stat").rpartition(b") ")[2][:1] not in (b"", b"Z")


def thread_count(pids: Iterable[int]) -> int:
    """The threads of these processes, the first one of each not counted."""
    found = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found += len(os.listdir(f"/proc/{pid}/task")) - 1
    return found


def resident_bytes(pids: Iterable[int]) -> int:
    """Cheap, and never less than `own_bytes`: memory that processes share counts for each of them."""
    fields = (_read(f"/proc/{pid}/statm").split() for pid in pids)
    return sum(int(one[1]) for one in fields if len(one) > 1) * _PAGE


def own_bytes(pids: Iterable[int]) -> int:
    """The memory of these processes that is no file, shared memory counted once."""
    texts = (_read(f"/proc/{pid}/smaps_rollup") for pid in pids)
    return sum(int(size) for text in texts for size in _OWN_MEMORY.findall(text)) * 1024


def _read(path: str) -> bytes:
    """Nothing if the process has ended."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 8192)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
