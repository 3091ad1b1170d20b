"""One worker's stream in the owner: lines in order, back-pressure, and an end that is told once."""

from __future__ import annotations

import asyncio
import socket

import pytest

from pactgate.workers import seat as family
from pactgate.workers.seat import Seat
from tests.support.children import descriptors
from tests.support.loops import on_both_loops


class Sitting:
    def __init__(self, max_frame_bytes: int = 1000) -> None:
        ours, self.worker = socket.socketpair()
        self.worker.setblocking(False)
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.seat = Seat(ours, max_frame_bytes=max_frame_bytes, on_line=self._line, on_end=self.ended.set)

    async def _line(self, line: bytes) -> None:
        await self.may_go_on.wait()
        self.lines.put_nowait(line)

    async def close(self) -> None:
        self.seat.close()
        await self.seat.ended()
        self.worker.close()


@on_both_loops
async def test_lines_go_both_ways_and_the_end_is_told_once() -> None:
    before = descriptors()
    sitting, loop = Sitting(), asyncio.get_running_loop()
    await loop.sock_sendall(sitting.worker, b'{"a":1}\n{"b"')
    assert await asyncio.wait_for(sitting.lines.get(), 5) == b'{"a":1}'
    await loop.sock_sendall(sitting.worker, b":2}\n")
    assert await asyncio.wait_for(sitting.lines.get(), 5) == b'{"b":2}'
    sitting.seat.write(b"one")
    sitting.seat.write(b"two")
    assert await loop.sock_recv(sitting.worker, 100) == b"one\ntwo\n"
    sitting.worker.shutdown(socket.SHUT_WR)
    await asyncio.wait_for(sitting.ended.wait(), 5)
    sitting.seat.write(b"to nobody")
    sitting.seat.close()
    assert await loop.sock_recv(sitting.worker, 100) == b""
    await sitting.close()
    assert descriptors() == before


@on_both_loops
async def test_the_last_word_is_sent_whole_before_the_stream_ends() -> None:
    sitting, loop = Sitting(), asyncio.get_running_loop()
    sitting.seat.write(b"x" * 3_000_000)
    sitting.seat.write(b"!the end", is_last=True)
    received = b""
    while chunk := await asyncio.wait_for(loop.sock_recv(sitting.worker, 1_000_000), 5):
        received += chunk
    assert received == b"x" * 3_000_000 + b"\n!the end\n"
    assert not sitting.ended.is_set()
    await sitting.close()


@on_both_loops
async def test_a_worker_that_takes_nothing_is_given_up() -> None:
    sitting = Sitting()
    while not sitting.ended.is_set():
        sitting.seat.write(b"x" * 8_000_000)
    await sitting.close()


async def test_a_worker_has_to_wait_while_the_child_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "_READ_BYTES", 1024)
    sitting, loop = Sitting(), asyncio.get_running_loop()
    sitting.may_go_on.clear()
    sending = asyncio.create_task(loop.sock_sendall(sitting.worker, b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 100_000))
    done, _ = await asyncio.wait({sending}, timeout=0.1)
    assert not done, "ten megabytes are not held here"
    sitting.may_go_on.set()
    await asyncio.wait_for(sending, 10)
    await sitting.close()


async def test_a_line_beyond_its_bound_ends_the_seat() -> None:
    sitting = Sitting(max_frame_bytes=10)
    await asyncio.get_running_loop().sock_sendall(sitting.worker, b"x" * 100)
    await asyncio.wait_for(sitting.ended.wait(), 5)
    await sitting.close()
