"""Detects a blocked event loop: an `async` tool that blocks it delays every other call and can't be cancelled.

A thread schedules a callback on the loop. When the callback does not run in time, the thread prints the loop's stack to stderr and ends
the process, which is then started again. Must not: disturb a loop that runs.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

STALL_S: Final = 60.0


class Watchdog:
    """Watches the loop it is made on. `on_stall` is called once, in the watchdog's thread."""

    def __init__(self, on_stall: Callable[[], None], stall_s: float = STALL_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._on_stall = on_stall
        self._stall_s = stall_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            turned = threading.Event()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:
                return  # the loop is closed
            if not turned.wait(self._stall_s):
                if not self._ended.is_set():
                    self._tell()
                    self._on_stall()
                return
            self._ended.wait(self._stall_s / 4)

    def _tell(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        where = "".join(traceback.format_stack(frame)) if frame is not None else ""
        text = f"{where}an async tool has blocked the loop for {self._stall_s:g} s; it should be `def`, or await what it waits for"
        print(text, file=sys.stderr, flush=True)
