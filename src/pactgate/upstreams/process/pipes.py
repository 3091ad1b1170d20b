"""The gateway's ends of a child's pipes, bounded: a writer of whole frames, and a reader.

Plain descriptors instead of asyncio's transports: they cost the same, behave the same on every loop and buffer nothing, and the rest in a
pipe can still be read after its writer is dead. Must not: know what the bytes mean, raise towards the loop, or hold more than one frame
beside those gathered for one write.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import IO, Final

READ_BYTES: Final = 64 * 1024  # what a pipe holds
GATHERED_BYTES: Final = READ_BYTES  # what a pipe takes at once if its reader keeps up
LAST_READS: Final = 16  # a pipe can be made to hold 1 MiB; all of that is still read after its writer's death


class PipeWriter:
    """Writes frames whole and in order. A frame is in the pipe when `write` returns True."""

    def __init__(self, pipe: IO[bytes], on_broken: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._on_broken = on_broken
        self._turn = asyncio.Lock()
        self._clear = asyncio.Event()
        self._clear.set()
        self._rest = memoryview(b"")
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._begun_bytes = 0
        self._written_bytes = 0
        os.set_blocking(self._fd, False)

    @property
    def held_bytes(self) -> int:
        return len(self._rest) + self._gathered_bytes

    async def write(self, frame: bytes) -> bool:
        """True when all of it is in the pipe, False when the pipe ended before.

        Cancelled before its turn, a frame is not sent; once begun it is finished, as half a frame would spoil the next.
        """
        self._flush()
        if self._rest or self._turn.locked():
            async with self._turn:
                await self._clear.wait()
                return await self._write_through(frame)
        return await self._write_through(frame)

    def write_soon(self, frame: bytes) -> bool:
        """Put a frame into the pipe together with all others of this turn of the loop. False: it would have to wait, and was not taken.

        Many callers at once cost one write, and wake the child once.
        """
        if self._rest or self._pipe.closed or self._turn.locked():
            return False
        if self._gathered_bytes + len(frame) > GATHERED_BYTES:
            return False
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(frame)
        self._gathered_bytes += len(frame)
        return True

    def _flush(self) -> None:
        if not self._gathered:
            return
        data = b"".join(self._gathered)
        self._forget_gathered()
        self._begin(data)

    def _forget_gathered(self) -> None:
        self._gathered.clear()
        self._gathered_bytes = 0

    def close(self) -> None:
        """Close the pipe. Frames that were not written are dropped, and their writers get False."""
        if not self._pipe.closed:
            self._loop.remove_writer(self._fd)
            self._rest = memoryview(b"")
            self._forget_gathered()
            self._pipe.close()
            self._clear.set()

    async def _write_through(self, frame: bytes) -> bool:
        if self._pipe.closed:
            return False
        end_bytes = self._begin(frame)
        await self._clear.wait()
        return self._written_bytes >= end_bytes

    def _begin(self, data: bytes) -> int:
        """Write what the pipe takes now, the rest later. Returns how many bytes are written when all of it is."""
        self._begun_bytes += len(data)
        self._rest = memoryview(data)
        self._put()
        if self._rest:
            self._clear.clear()
            self._loop.add_writer(self._fd, self._on_writable)
        return self._begun_bytes

    def _put(self) -> None:
        try:
            count = os.write(self._fd, self._rest)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            self._on_broken()
            return
        self._written_bytes += count
        self._rest = self._rest[count:]

    def _on_writable(self) -> None:
        self._put()
        if not self._rest and not self._pipe.closed:
            self._loop.remove_writer(self._fd)
            self._clear.set()


class PipeReader:
    """Hands over data as it arrives, one read per turn of the loop. `on_end` is called once when the child closes the pipe."""

    def __init__(self, pipe: IO[bytes], on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._on_data = on_data
        self._on_end = on_end
        self._resting: asyncio.TimerHandle | None = None
        self.read_bytes = READ_BYTES
        """Bytes read in one turn of the loop, at most."""
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._read)

    def drain(self) -> None:
        """Read what is left now. Bounded, because somebody else may still hold the other end and write."""
        for _ in range(LAST_READS):
            self.read_bytes = READ_BYTES
            if not self._read():
                return

    def rest(self, seconds: float) -> None:
        """Stop reading for a while. A child that writes too much has to wait."""
        if self._resting is None and not self._pipe.closed:
            self._loop.remove_reader(self._fd)
            self._resting = self._loop.call_later(seconds, self._go_on)

    def close(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        if not self._pipe.closed:
            self._loop.remove_reader(self._fd)
            self._pipe.close()

    def _go_on(self) -> None:
        self._resting = None
        if not self._pipe.closed:
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> bool:
        if self._pipe.closed:
            return False
        try:
            data = os.read(self._fd, self.read_bytes)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            self._on_end()
            return False
        self._on_data(data)
        return True
