"""One worker's place in the crew, as the owner sees it: the process that fills it now, the way to talk to it, how often it fell empty."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, Final

from pactgate.upstreams.process.child import describe_exit
from pactgate.workers import packets
from pactgate.workers.link import Fds, Link

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0
STEADY_S: Final = 60.0
_REAP_S: Final = 5.0

OnNotice = Callable[["Post", str, Any, Fds], None]
OnQuestion = Callable[["Post", str, Any], Any]


class Post:
    """`start` puts a new process there; `on_end` is told when it is gone."""

    def __init__(
        self,
        index: int,
        command: Sequence[str],
        *,
        on_notice: OnNotice,
        on_question: OnQuestion,
        on_end: Callable[[Post], None],
    ) -> None:
        self.index = index
        self.link: Link | None = None
        self.is_ready = False
        self.starts = 0
        self.gone = asyncio.Event()
        """Set while no process is there."""
        self.last_words: str | None = None
        self._command = tuple(command)
        self._on_notice = on_notice
        self._on_question = on_question
        self._on_end = on_end
        self._process: subprocess.Popen[bytes] | None = None
        self._began_at = 0.0
        self._quick_ends = 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self, hello: bytes, descriptors: Fds) -> None:
        """Start a process and tell it what it is. Raises OSError."""
        self.starts += 1
        ours, theirs = packets.pair()
        try:
            # A session of its own, so that what a terminal sends comes to the owner alone, which passes it on once.
            self._process = subprocess.Popen(
                [*self._command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.gone.clear()
        self._began_at = asyncio.get_running_loop().time()
        self.link = Link(
            ours,
            lambda name, body, fds: self._on_notice(self, name, body, fds),
            lambda name, body: self._on_question(self, name, body),
            self._lost,
        )
        self.link.tell("hello", hello, descriptors)

    def ask_to_stop(self) -> None:
        """By word and not by signal: whoever sends one to all processes at once has sent it, and a second one would mean at once."""
        if self.link is not None and self.link.is_open:
            self.link.tell("stop")
        else:
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    async def reap(self) -> str:
        """How the process ended. It has lost its link: if it does not end by itself now, it is ended."""
        process = self._process
        assert process is not None
        try:
            returncode = await asyncio.to_thread(process.wait, _REAP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            returncode = await asyncio.to_thread(process.wait)
        said, self.last_words = self.last_words, None
        return f"{describe_exit(returncode)}: {said}" if said else describe_exit(returncode)

    def pause_s(self) -> float:
        """How long to wait before the next start: longer each time, unless the last one lasted."""
        lasted_s = asyncio.get_running_loop().time() - self._began_at
        self._quick_ends = 0 if lasted_s >= STEADY_S else self._quick_ends + 1
        return float(min(FIRST_PAUSE_S * 2 ** max(0, self._quick_ends - 1), LONGEST_PAUSE_S))

    def close(self) -> None:
        if self.link is not None:
            self.link.close()

    def _lost(self) -> None:
        self.is_ready = False
        self.gone.set()
        self._on_end(self)


def descriptors_of(*sockets: socket.socket) -> Fds:
    return tuple(one.fileno() for one in sockets)
