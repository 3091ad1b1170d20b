"""The owner's end of the stream on which one worker borrows one child.

Reading waits for the child to take what was read, so a worker that sends faster than the child reads has to wait. What a worker does not
take is held up to a bound; then the seat is given up, and the worker connects again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from pactgate.protocol.framing import LineDecoder, Oversized

MAX_UNTAKEN_BYTES: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 256 * 1024


class Seat:
    """`on_line` may wait. `on_end` is called once when the worker lets go, which sees the end of the stream when `close` is called."""

    def __init__(
        self,
        stream: socket.socket,
        *,
        max_frame_bytes: int,
        on_line: Callable[[bytes], Awaitable[None]],
        on_end: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._decoder = LineDecoder(max_frame_bytes)
        self._on_line = on_line
        self._on_end = on_end
        self._untaken = bytearray()
        self._is_open = True
        self._has_left = False
        self._is_last = False
        self._is_writing = False
        stream.setblocking(False)
        self._task = self._loop.create_task(self._read(), name="a borrowed child")
        self._task.add_done_callback(lambda task: self._release())

    def write(self, frame: bytes, *, is_last: bool = False) -> None:
        """One line. After the last one the stream ends."""
        if not self._is_open or self._has_left:
            return
        self._is_last = is_last
        self._untaken += frame + b"\n"
        if len(self._untaken) > MAX_UNTAKEN_BYTES:
            self._lost()
        elif not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._write)  # with all others of this turn of the loop

    def close(self) -> None:
        """Let go at once."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_writer(self._stream.fileno())
            with suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)
            if asyncio.current_task() is not self._task:
                self._task.cancel()
            self._release()

    def _release(self) -> None:
        """Not while a task waits for the descriptor, whose number the next one to open something gets."""
        if not self._is_open and self._task.done():
            self._stream.close()

    @property
    def is_gone(self) -> bool:
        return not self._is_open and self._task.done()

    async def ended(self) -> None:
        """Waits until nothing of a closed seat is left."""
        await asyncio.wait({self._task})
        await asyncio.sleep(0)

    def _write(self) -> None:
        if not self._is_open or self._has_left:
            return
        try:
            sent = self._stream.send(self._untaken)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._lost()
            return
        del self._untaken[:sent]
        if self._untaken:
            self._loop.add_writer(self._stream.fileno(), self._write)
            return
        self._is_writing = False
        self._loop.remove_writer(self._stream.fileno())
        if self._is_last:
            self.close()

    async def _read(self) -> None:
        try:
            while self._is_open and (data := await self._loop.sock_recv(self._stream, _READ_BYTES)):
                for line in self._decoder.feed(data):
                    await self._on_line(line)
        except (OSError, Oversized):
            pass
        self._lost()

    def _lost(self) -> None:
        if self._is_open and not self._has_left:
            self._has_left = True
            self._loop.remove_writer(self._stream.fileno())
            self._on_end()
