"""The thread that touches the disk for a recorder. It does its jobs in their order, and nobody waits for it but who closes it.

Few jobs come, each with much to write: whoever records gathers first. Where there is no event loop, the thread also does what must
happen a little later. Must not: know what it writes. A job may not raise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Job = tuple[int, Callable[..., None], tuple[Any, ...]]


class WriterThread:
    """Its thread begins with the first job and ends with `close`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._put_bytes = 0
        self._done_bytes = 0

    @property
    def backlog_bytes(self) -> int:
        return self._put_bytes - self._done_bytes

    def put(self, size_bytes: int, act: Callable[..., None], *details: Any) -> None:
        """One more job; `size_bytes` is what it keeps in memory until it is done. Sized jobs come from one thread at a time."""
        if self._thread is None:
            self._start()
        self._put_bytes += size_bytes
        self._jobs.put((size_bytes, act, details))

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do it on the thread after a while. Other jobs wait as long; there is no hurry when it closes."""
        self.put(0, self._wait, delay_s, act)

    def close(self, timeout_s: float) -> None:
        """Do what is left and end. Blocks, bounded."""
        self._is_ending.set()
        thread = self._thread
        if thread is not None:
            self._jobs.put(None)
            thread.join(timeout_s)

    def _wait(self, delay_s: float, act: Callable[[], None]) -> None:
        self._is_ending.wait(delay_s)
        act()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pactgate-recorder", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            size_bytes, act, details = job
            act(*details)
            self._done_bytes += size_bytes
