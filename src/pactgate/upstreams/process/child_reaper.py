"""The child reaper: one small process that ends the children's process groups if the gateway dies without ending them.

It holds the read end of a pipe; the gateway holds the only write end. However the gateway dies, SIGKILL included, the pipe closes, and the
reaper ends every group it was told of. It starts with the first child, runs in a session of its own, where no signal of a terminal or a
group reaches it, and ends with `close`. Must not: be given anything but numbers. Enforces S1/XC-003 when no code of the gateway runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import IO, Final

from pactgate.upstreams.process.child import ChildProcess, Launch, ShutdownSteps, SpawnError

RESTART_DELAY_S: Final = 1.0

# A shell takes about 1 MiB, a Python interpreter 10. The script is constant; group numbers reach it on its stdin.
SCRIPT: Final = """\
trap '' HUP INT QUIT TERM
groups=' '
while read -r line; do
  number=${line#?}
  case $line in
    +*) groups="$groups$number " ;;
    -*) case $groups in *" $number "*) groups="${groups%%" $number "*} ${groups#*" $number "}" ;; esac ;;
  esac
done
[ "$groups" = ' ' ] && exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 0.2
for group in $groups; do kill -s KILL -- "-$group"; done
exit 0
"""

_LAUNCH: Final = Launch(("/bin/sh", "-c", SCRIPT, "pactgate-child-reaper"), {"PATH": os.defpath}, "/")
_ENDING: Final = ShutdownSteps(eof_s=1.0, term_s=0.0, kill_s=1.0)


class ChildReaper:
    """Knows the process groups of all children. `problem` says why nothing ends them after a SIGKILL, or is None."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._groups: set[int] = set()
        self._child: ChildProcess | None = None
        self._pipe: IO[bytes] | None = None
        self._started_at = -RESTART_DELAY_S
        self._restart: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the process unless it runs. If it can't be started, the gateway works without it and `problem` says why."""
        if self._child is not None or self._restart is not None:
            return
        self._started_at = asyncio.get_running_loop().time()
        try:
            child = ChildProcess.spawn(_LAUNCH, self._on_exit, guard=None, output=subprocess.DEVNULL)
        except SpawnError as problem:
            self.problem = f"the child reaper can't run: {problem}"
            return
        pipe = child.pipes[0]
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._child, self._pipe, self.problem = child, pipe, None
        if self._groups:
            self._tell(b"".join(b"+%d\n" % group for group in self._groups))

    def watch(self, pgid: int) -> None:
        """End this group when the gateway ends."""
        if pgid <= 1:
            raise ValueError(f"{pgid} is no group of a child: signalling it would reach every process")
        self._groups.add(pgid)
        if self._child is None:
            self.start()
        else:
            self._tell(b"+%d\n" % pgid)

    def release(self, pgid: int) -> None:
        """Forget a group that was killed. Its leader is reaped next, and the kernel may then reuse the number."""
        if pgid in self._groups:
            self._groups.discard(pgid)
            self._tell(b"-%d\n" % pgid)

    async def close(self) -> None:
        """End the process, and with it every group that is still registered. Bounded; concurrent callers share it."""
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._child is not None:
            await self._child.end(_ENDING)

    def _tell(self, lines: bytes) -> None:
        if self._child is None or self._pipe is None:
            return  # not started, or being closed; a new process is told every group when it starts
        try:
            os.write(self._pipe.fileno(), lines)
        except (BlockingIOError, BrokenPipeError):
            # It is dead or does not read. It is killed first, because closing the pipe would make it end healthy groups.
            self._child.signal_group(signal.SIGKILL)

    def _on_exit(self, _returncode: int) -> None:
        """Start another one unless it was closed, at most one a second."""
        self._child = None
        if self._pipe is None:
            return
        self._pipe.close()
        self._pipe = None
        self._restart = asyncio.get_running_loop().call_at(self._started_at + RESTART_DELAY_S, self._start_again)

    def _start_again(self) -> None:
        self._restart = None
        if self._groups:
            self.start()
