"""Runs a command as the parent of all orphans below it, and leaves none: `adopt_orphans.py COMMAND ...` exits as the command does.

Tests kill gateways and servers, so they make hundreds of orphans. In a container whose first process does not reap, each stays a zombie
that takes a process number until no test can fork any more. What still runs a while after the command has ended is named and ended.
Must not: change the exit code of the command, or fail where the kernel knows no subreapers.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 5.0
POLL_S = 0.05


def main(command: list[str]) -> int:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    child = os.posix_spawnp(command[0], command, os.environ)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command too
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    ended, status = os.wait()
    while ended != child:
        ended, status = os.wait()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    leave_none()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def leave_none() -> None:
    """Bounded: children of an ended orphan become ours, and are ended in the next round."""
    began, named = time.monotonic(), set[int]()
    while time.monotonic() < began + 2 * GRACE_S:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > began + GRACE_S:
            for pid in children():
                if pid not in named:
                    named.add(pid)
                    print(f"left behind, and ended: {pid} {command_line(pid)}", file=sys.stderr)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def children() -> list[int]:
    return [int(pid) for pid in Path("/proc/self/task").joinpath(str(os.getpid()), "children").read_text().split()]


def command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "backslashreplace")[:200]
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
