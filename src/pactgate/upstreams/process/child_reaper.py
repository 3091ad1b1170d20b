"""The guardian: one tiny process that ends our children's groups when the gateway went without ending them itself.

It holds the read end of a pipe whose only write end is ours, so that the end of the gateway, however it comes, SIGKILL
included, is the end of that pipe. It is started with the first child, sits in a session of its own where no signal of a
terminal or a group reaches it, and ends with `close`. Must not: be given anything but numbers. Enforces S1/XC-003 where
no code of ours runs any more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import IO, Final

from pactgate.upstreams.process.child import ChildProcess, Ladder, Launch, SpawnError

RESTART_DELAY_S: Final = 1.0

# A shell of about one MiB instead of an interpreter of ten. The text is constant; numbers reach it as data, on its stdin.
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

_LAUNCH: Final = Launch(("/bin/sh", "-c", SCRIPT, "pactgate-guardian"), {"PATH": os.defpath}, "/")
_ENDING: Final = Ladder(eof_s=1.0, term_s=0.0, kill_s=1.0)


class Guardian:
    """Knows the groups of all children. `problem` says why there is no protection against SIGKILL, or is None."""

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
        """Start it unless it runs. A machine that can't is served all the same: see `problem`."""
        if self._child is not None or self._restart is not None:
            return
        self._started_at = asyncio.get_running_loop().time()
        try:
            child = ChildProcess.spawn(_LAUNCH, self._on_exit, guard=None, output=subprocess.DEVNULL)
        except SpawnError as problem:
            self.problem = f"the guardian of the child processes can't run: {problem}"
            return
        pipe = child.pipes[0]
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._child, self._pipe, self.problem = child, pipe, None
        if self._groups:
            self._tell(b"".join(b"+%d\n" % group for group in self._groups))

    def watch(self, pgid: int) -> None:
        """From now on this group ends with the gateway."""
        if pgid <= 1:
            raise ValueError(f"{pgid} is no group of a child: signalling it would reach every process")
        self._groups.add(pgid)
        if self._child is None:
            self.start()
        else:
            self._tell(b"+%d\n" % pgid)

    def release(self, pgid: int) -> None:
        """The group was killed and its leader is about to be reaped: the number may soon be somebody else's."""
        if pgid in self._groups:
            self._groups.discard(pgid)
            self._tell(b"-%d\n" % pgid)

    async def close(self) -> None:
        """End the guardian, and with it every group that is still registered. Bounded; shared by all who ask."""
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
            return  # none yet, or being closed; a new one is told every group when it starts
        try:
            os.write(self._pipe.fileno(), lines)
        except (BlockingIOError, BrokenPipeError):
            # It is dead or does not read. Killed first: merely closing the pipe would make it end healthy groups.
            self._child.signal_group(signal.SIGKILL)

    def _on_exit(self, _returncode: int) -> None:
        """If nobody closed it, another one takes over; at most one a second."""
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
