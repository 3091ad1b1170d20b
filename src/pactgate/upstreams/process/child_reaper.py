"""The child reaper: one small process that ends the children if the gateway dies without ending them, and finds what they left behind.

It holds the read end of a pipe; the gateway holds the only write end. However the gateway dies, SIGKILL included, the pipe closes, and the
reaper ends every group it was told of. It starts with the first child, runs in a session of its own, where no signal of a terminal or a
group reaches it, and ends with `close`. Must not: be given anything but numbers
and marks. Enforces S1/XC-003 when no code of the gateway runs.

A process that detaches (`setsid`, fork twice) is in no group of ours. It is found in two other ways: by the mark that every child has in
its environment and all its descendants inherit, and by its cgroup, where the gateway may make one (`cgroup.py`). The mark works without
any privilege; a free process that clears its environment escapes it, but not its cgroup, and a gateway that is a program of its own adopts
it (`adopted.py`). A confined one can't detach at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
from collections.abc import Callable
from typing import IO, Final

from pactgate.upstreams.process.adopted import AdoptedProcesses
from pactgate.upstreams.process.cgroup import ChildCgroups, own_cgroup
from pactgate.upstreams.process.child import MARK_NAME, ChildProcess, Launch, ShutdownSteps, SpawnError

RESTART_DELAY_S: Final = 1.0
SWEEP_DELAY_S: Final = 0.1
"""Children that end at the same time are looked for together."""
NOTE_S: Final = 1.0
MAX_ROUNDS: Final = 20
"""How often adopted orphans are looked for after a server has ended: each may leave others when it is ended."""

# A shell takes about 1 MiB, a Python interpreter 10. The script is constant; group numbers and marks reach it on its stdin.
SCRIPT: Final = """\
trap '' HUP INT QUIT TERM
name=$1 run=$2 cgroup=$3
sweep() {
  marks=$1
  set --
  for mark in $marks; do set -- "$@" -e "$name=$mark"; done
  for round in 1 2 3 4 5 6; do
    left=$(grep -lsF "$@" /proc/[0-9]*/environ)
    [ "$left" ] || return 0
    for file in $left; do file=${file#/proc/}; kill -s KILL "${file%/environ}"; done
    sleep 0.1
  done
}
groups=' '
while read -r line; do
  rest=${line#?}
  case $line in
    +*) groups="$groups$rest " ;;
    -*) case $groups in *" $rest "*) groups="${groups%%" $rest "*} ${groups#*" $rest "}" ;; esac ;;
    s*) sweep "$rest" ;;
  esac
done
if [ "$groups" != ' ' ]; then
  for group in $groups; do kill -s TERM -- "-$group"; done
  sleep 0.2
  for group in $groups; do kill -s KILL -- "-$group"; done
fi
[ "$cgroup" ] && echo 1 >"$cgroup/cgroup.kill"
sweep "$run"
for round in 1 2 3 4 5 6 7 8 9 10; do
  [ "$cgroup" ] && [ -d "$cgroup" ] || break
  rmdir "$cgroup"/*/ "$cgroup" && break
  sleep 0.1
done
exit 0
"""

_LAUNCH: Final = Launch(("/bin/sh", "-c", SCRIPT, "pactgate-child-reaper"), {"PATH": os.defpath}, "/")
_ENDING: Final = ShutdownSteps(eof_s=2.0, term_s=0.0, kill_s=1.0)


class ChildReaper:
    """Knows the process groups of all children. `problem` says why nothing ends them after a SIGKILL, or is None."""

    def __init__(self, *, find_cgroup: Callable[[], str | None] = own_cgroup, adopts: bool = False) -> None:
        """`adopts`: this process is the gateway's own, so orphans of its children may be adopted and ended."""
        self.problem: str | None = None
        self._run = secrets.token_hex(8)
        self._count = 0
        self._find_cgroup = find_cgroup
        self._cgroups: ChildCgroups | None = None
        self._groups: dict[int, str] = {}
        self._to_sweep: list[str] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._adopted = AdoptedProcesses() if adopts else None
        self._rounds = 0
        self._note: asyncio.TimerHandle | None = None
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
        if self._cgroups is None:
            self._cgroups = ChildCgroups(f"pactgate-{self._run}", parent=self._find_cgroup())
            if self._adopted is not None:
                self._adopted.start()
                self._note_orphans()
        self._started_at = asyncio.get_running_loop().time()
        argv = (*_LAUNCH.argv, MARK_NAME, f"{self._run}-", self._cgroups.folder or "")
        try:
            launch = Launch(argv, _LAUNCH.env, _LAUNCH.cwd)
            child = ChildProcess.spawn(launch, self._on_exit, guard=None, output=subprocess.DEVNULL)
        except SpawnError as problem:
            self.problem = f"the child reaper can't run: {problem}"
            return
        pipe = child.pipes[0]
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._child, self._pipe, self.problem = child, pipe, None
        if self._groups:
            self._tell(b"".join(b"+%d\n" % group for group in self._groups))

    def __len__(self) -> int:
        """Children that run."""
        return len(self._groups)

    def new_mark(self) -> str:
        """The mark of the next child. It ends with a dot, so that no mark is the beginning of another."""
        self._count += 1
        return f"{self._run}-{self._count}."

    def watch(self, pgid: int, mark: str) -> None:
        """End this group when the gateway ends, and everything with its mark when the group does."""
        if pgid <= 1:
            raise ValueError(f"{pgid} is no group of a child: signalling it would reach every process")
        self._groups[pgid] = mark
        if self._child is None:
            self.start()
        else:
            self._tell(b"+%d\n" % pgid)
        if self._cgroups is not None:
            self._cgroups.add(pgid, orphans=self._orphans)

    def members(self, pgid: int) -> list[int] | None:
        """The processes of a child, if it is in a cgroup."""
        return None if self._cgroups is None else self._cgroups.members(pgid)

    def release(self, pgid: int) -> None:
        """End what has detached from a group that was killed, and forget the group.

        Its leader is reaped next, and the kernel may then reuse the number.
        """
        mark = self._groups.pop(pgid, None)
        if mark is None:
            return
        self._tell(b"-%d\n" % pgid)
        if self._cgroups is not None:
            self._cgroups.kill(pgid)
        self._to_sweep.append(mark)
        self._rounds = 0
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_DELAY_S, self._sweep_now)

    async def close(self) -> None:
        """End the process, and with it every group that is still registered. Bounded; concurrent callers share it."""
        for timer in (self._restart, self._sweep, self._note):
            if timer is not None:
                timer.cancel()
        self._restart = self._sweep = self._note = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._child is not None:
            await self._child.end(_ENDING)
        if self._adopted is not None:
            for _ in range(MAX_ROUNDS):
                if not self._adopted.end_all(self._known()):
                    break
                await asyncio.sleep(SWEEP_DELAY_S / 2)
            self._adopted.stop()
        if self._cgroups is not None:
            self._cgroups.close()
            self._cgroups = None

    def _sweep_now(self) -> None:
        self._sweep = None
        marks, self._to_sweep = self._to_sweep, []
        if marks:
            self._tell(f"s{' '.join(marks)}\n".encode())
        if self._cgroups is not None:
            self._cgroups.sweep()
        self._rounds += 1
        if self._adopted is None:
            return
        living = {f"{MARK_NAME}={mark}".encode() for mark in self._groups.values()}
        if self._adopted.end_new(self._known(), living) and self._rounds < MAX_ROUNDS:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_DELAY_S, self._sweep_now)

    def _note_orphans(self) -> None:
        """Not while a server is ending: its orphans are not those of a living one."""
        assert self._adopted is not None
        if self._sweep is None:
            self._adopted.note(self._known())
        self._note = asyncio.get_running_loop().call_later(NOTE_S, self._note_orphans)

    def _orphans(self) -> list[int]:
        return [] if self._adopted is None else self._adopted.living(self._known())

    def _known(self) -> set[int]:
        return {*self._groups, *([self._child.pid] if self._child is not None else [])}

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
