"""CPU time, memory and file descriptors of whole process trees, read from /proc (Linux).

CPU time comes from the scheduler, in nanoseconds for each living thread, so other work on the machine changes it little.
The time of a thread or child that ends between two readings is lost; no process measured here starts one per call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


def tree(root: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, open_ends = [], [root]
    while open_ends:
        pid = open_ends.pop()
        found.append(pid)
        open_ends.extend(children.get(pid, ()))
    return found


def cpu_us(root: int) -> float:
    """CPU time so far in microseconds, of all threads of the tree."""
    total_ns = 0
    for pid in tree(root):
        try:
            for thread in (PROC / str(pid) / "task").iterdir():
                total_ns += int((thread / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total_ns / 1000


def rss_bytes(root: int) -> int:
    """Resident memory, added up over the tree."""
    return sum(_kib(pid, "status", "VmRSS:") for pid in tree(root)) * 1024


def own_rss_bytes(pid: int) -> int:
    """Resident memory of one process, without its children."""
    return _kib(pid, "status", "VmRSS:") * 1024


def pss_bytes(root: int) -> int:
    """Resident memory of the tree; pages that several processes share count once."""
    return sum(_kib(pid, "smaps_rollup", "Pss:") for pid in tree(root)) * 1024


def descriptors(root: int) -> int:
    """Open file descriptors, added up over the tree."""
    return sum(map(own_descriptors, tree(root)))


def own_descriptors(pid: int) -> int:
    """Open file descriptors of one process; none where it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        return sum(1 for _ in (PROC / str(pid) / "fd").iterdir())
    return 0


def _parents() -> Iterator[tuple[int, int]]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def _kib(pid: int, file: str, label: str) -> int:
    try:
        lines = (PROC / str(pid) / file).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(label)), 0)
