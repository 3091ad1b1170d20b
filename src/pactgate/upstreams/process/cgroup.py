"""A cgroup (version 2) per child, where the gateway may make one: all processes in it end together, also those that have detached.

A process can leave its group and its session and clear its environment, but not its cgroup. The gateway uses cgroups if it is in the root
of its hierarchy (as in a container) or if its own cgroup was delegated to it (`Delegate=yes` in a systemd unit), and if it may write there.
Must not: touch a cgroup the gateway did not make, or fail where there are none: every method is then without effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from pactgate.upstreams.process.adopted import children_of

DELEGATED: Final = ("user.delegate", "trusted.delegate")
"""The attributes by which systemd marks a cgroup it leaves to somebody else."""

MAX_ROUNDS: Final = 8
"""How often processes are looked for that were started before their parent was moved; each round is quicker than a fork."""
MAX_STRAYS: Final = 256
"""More are not looked for: a server has a few milliseconds to start them."""


class ChildCgroups:
    """The cgroups of all children of one gateway. `folder` holds them, or is None where they can't be made."""

    def __init__(self, name: str, *, parent: str | None) -> None:
        self.folder: str | None = None
        if parent is None:
            return
        folder = os.path.join(parent, name)
        try:
            os.mkdir(folder)
        except OSError:
            return
        self.folder = folder
        if not os.path.exists(os.path.join(folder, "cgroup.kill")):  # Linux before 5.14
            self.close()

    def add(self, pid: int, *, orphans: Callable[[], Iterable[int]] = tuple) -> None:
        """Move a child that was just started into a cgroup of its own, and with it what it has started meanwhile.

        The kernel waits up to 20 ms before a move, longer on a loaded machine: time enough to detach. `orphans` are processes that may be
        this child's; those that are in a cgroup of ours stay there.
        """
        if self.folder is None:
            return
        with suppress(OSError):  # no room for more cgroups, or the child has ended: its group is ended all the same
            os.mkdir(self._of(pid))
            self._move(pid, pid)
        for _ in range(MAX_ROUNDS):
            strays = [one for one in (*_descendants_of(pid), *orphans()) if not self._has(one)]
            if not strays:
                return
            for stray in strays:
                with suppress(OSError):
                    self._move(stray, pid)

    def members(self, pid: int) -> list[int] | None:
        """The processes in the cgroup of a child; None if it has none."""
        if self.folder is None:
            return None
        try:
            with open(os.path.join(self._of(pid), "cgroup.procs"), encoding="ascii") as file:
                return [int(line) for line in file]
        except OSError:
            return None

    def kill(self, pid: int) -> None:
        """End everything in the cgroup of a child."""
        if self.folder is not None:
            with suppress(OSError):
                _write(os.path.join(self._of(pid), "cgroup.kill"), 1)

    def sweep(self) -> None:
        """Remove the cgroups in which no process is left; the kernel refuses to remove the others."""
        if self.folder is None:
            return
        with suppress(OSError):
            names = [entry.name for entry in os.scandir(self.folder) if entry.is_dir()]
            for name in names:
                with suppress(OSError):
                    os.rmdir(os.path.join(self.folder, name))

    def close(self) -> None:
        self.sweep()
        if self.folder is not None:
            with suppress(OSError):
                os.rmdir(self.folder)
            self.folder = None

    def _move(self, pid: int, child: int) -> None:
        _write(os.path.join(self._of(child), "cgroup.procs"), pid)

    def _has(self, pid: int) -> bool:
        """Whether a process is in a cgroup of ours, or gone."""
        assert self.folder is not None
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
                return f"/{os.path.basename(self.folder)}/" in file.read()
        except OSError:
            return True

    def _of(self, pid: int) -> str:
        assert self.folder is not None
        return os.path.join(self.folder, str(pid))


def _descendants_of(pid: int) -> list[int]:
    found = [pid]
    for one in found:  # it grows on the way
        if len(found) > MAX_STRAYS:
            break
        found += children_of(one)
    return found[1:]


def own_cgroup() -> str | None:
    """The folder of the cgroup this process is in, if it may make others in it."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            inside = next((line[3:].strip() for line in file if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split() for line in file if " - cgroup2 " in line]
    except (OSError, ValueError):
        return None
    if inside is None or not mounts:
        return None
    root, mounted_at = mounts[0][3], mounts[0][4]
    folder = os.path.normpath(os.path.join(mounted_at, os.path.relpath(inside, root)))
    if not folder.startswith(mounted_at) or not (inside == "/" or _is_delegated(folder)):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _is_delegated(folder: str) -> bool:
    for name in DELEGATED:
        with suppress(OSError):
            return os.getxattr(folder, name) == b"1"
    return False


def _write(path: str, number: int) -> None:
    """In one write, as these files want it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, b"%d" % number)
    finally:
        os.close(descriptor)
