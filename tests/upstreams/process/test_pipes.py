"""Pipes of our own, without a child: what is written arrives whole and in order, and a full or broken pipe costs nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.upstreams.process.pipes import GATHERED_BYTES, LAST_READS, READ_BYTES, PipeReader, PipeWriter
from tests.support.children import descriptors
from tests.support.eventually import eventually
from tests.support.loops import on_both_loops

BIG = b"x" * 1_000_000 + b"\n"


class Ends:
    """Our end and the other end of one pipe."""

    def __init__(self) -> None:
        self.other, ours = os.pipe()
        self.broken = 0
        self.writer = PipeWriter(os.fdopen(ours, "wb", buffering=0), self._on_broken)

    def _on_broken(self) -> None:
        self.broken += 1

    async def read(self, count_bytes: int) -> bytes:
        """So much from the other end, as a slow reader in another process would."""
        os.set_blocking(self.other, False)
        data = b""
        while len(data) < count_bytes:
            try:
                data += os.read(self.other, count_bytes - len(data))
            except BlockingIOError:
                await asyncio.sleep(0)
        return data

    def stop_reading(self) -> None:
        if self.other >= 0:
            os.close(self.other)
            self.other = -1


@asynccontextmanager
async def pipe() -> AsyncIterator[Ends]:
    ends = Ends()
    try:
        yield ends
    finally:
        ends.writer.close()
        ends.stop_reading()


@on_both_loops
async def test_frames_of_many_senders_arrive_whole_and_one_after_the_other() -> None:
    async with pipe() as ends:
        frames = [b"%d" % digit * 50_000 + b"\n" for digit in range(10)]
        sending = [asyncio.create_task(ends.writer.write(frame)) for frame in frames]
        received = await ends.read(sum(map(len, frames)))
        assert await asyncio.gather(*sending) == [True] * 10
        assert sorted(received.splitlines(keepends=True)) == frames


@on_both_loops
async def test_a_pipe_nobody_reads_holds_one_frame_and_lets_every_other_sender_wait() -> None:
    async with pipe() as ends:
        sending = [asyncio.create_task(ends.writer.write(BIG)) for _ in range(20)]
        await asyncio.sleep(0)
        assert 0 < ends.writer.held_bytes < len(BIG)
        assert not any(task.done() for task in sending)
        ends.writer.close()
        assert await asyncio.gather(*sending) == [False] * 20
        assert ends.writer.held_bytes == 0


@on_both_loops
async def test_a_frame_cancelled_before_its_turn_is_not_sent_and_one_that_was_begun_is_finished() -> None:
    async with pipe() as ends:
        begun = asyncio.create_task(ends.writer.write(BIG))
        waiting = asyncio.create_task(ends.writer.write(b"never\n"))
        last = asyncio.create_task(ends.writer.write(b"last\n"))
        await asyncio.sleep(0)
        begun.cancel()
        waiting.cancel()
        assert await ends.read(len(BIG) + 5) == BIG + b"last\n"
        assert await last
        assert begun.cancelled()
        assert waiting.cancelled()


@on_both_loops
async def test_a_reader_that_goes_away_fails_the_frames_it_did_not_get_and_only_those() -> None:
    async with pipe() as ends:
        assert await ends.writer.write(b"small\n")
        begun = asyncio.create_task(ends.writer.write(BIG))
        waiting = asyncio.create_task(ends.writer.write(b"next\n"))
        await asyncio.sleep(0)
        ends.stop_reading()
        assert not await begun
        assert not await waiting
        assert not await ends.writer.write(b"later\n")
        assert ends.broken == 1


@on_both_loops
async def test_a_frame_that_is_in_the_pipe_counts_as_written_though_the_pipe_ends_right_after() -> None:
    async with pipe() as ends:
        begun = asyncio.create_task(ends.writer.write(BIG))
        await asyncio.sleep(0)
        await ends.read(len(BIG))
        ends.writer.close()
        assert await begun


@on_both_loops
async def test_everything_that_is_left_is_read_before_the_end_is_told() -> None:
    ours, other = os.pipe()
    told: list[bytes] = []
    reader = PipeReader(os.fdopen(ours, "rb", buffering=0), told.append, lambda: told.append(b"end"))
    os.write(other, b"some")
    os.close(other)
    reader.drain()
    reader.drain()
    assert told == [b"some", b"end"]


@on_both_loops
async def test_what_arrives_is_handed_over_in_order() -> None:
    ours, other = os.pipe()
    told: list[bytes] = []
    ended = asyncio.Event()
    reader = PipeReader(os.fdopen(ours, "rb", buffering=0), told.append, ended.set)
    writer = PipeWriter(os.fdopen(other, "wb", buffering=0), ended.set)
    for _ in range(3):
        assert await writer.write(BIG)
    writer.close()
    await asyncio.wait_for(ended.wait(), 5)
    assert b"".join(told) == BIG * 3
    reader.close()


async def test_draining_ends_even_if_somebody_keeps_writing() -> None:
    ours, other = os.pipe()
    told: list[int] = []

    def write_more(data: bytes) -> None:
        told.append(len(data))
        os.write(other, b"x" * READ_BYTES)

    reader = PipeReader(os.fdopen(ours, "rb", buffering=0), write_more, lambda: None)
    os.write(other, b"x" * READ_BYTES)
    reader.drain()
    assert told == [READ_BYTES] * LAST_READS
    reader.close()
    os.close(other)


@pytest.mark.requirement("S1/XC-003")
async def test_a_closed_end_leaves_no_descriptor_and_may_be_closed_again() -> None:
    before = descriptors()
    async with pipe() as ends:
        ends.writer.close()
    ours, other = os.pipe()
    reader = PipeReader(os.fdopen(ours, "rb", buffering=0), lambda _: None, lambda: None)
    reader.close()
    reader.close()
    os.close(other)
    assert descriptors() == before


@on_both_loops
async def test_a_reader_that_rests_leaves_what_comes_in_the_pipe_and_then_goes_on() -> None:
    theirs, ours = os.pipe()
    got: list[bytes] = []
    reader = PipeReader(os.fdopen(theirs, "rb", buffering=0), got.append, lambda: None)
    reader.rest(0.05)
    os.write(ours, b"later")
    for _ in range(10):
        await asyncio.sleep(0)
    assert got == []
    await eventually(lambda: got)
    assert got == [b"later"]
    reader.rest(60)
    reader.close()
    os.close(ours)


# Written together.


@on_both_loops
async def test_frames_of_one_turn_of_the_loop_are_written_at_once_and_in_order() -> None:
    async with pipe() as ends:
        frames = [b"%d\n" % number for number in range(30)]
        assert all(ends.writer.write_soon(frame) for frame in frames)
        assert ends.writer.held_bytes == sum(map(len, frames))
        assert await ends.read(sum(map(len, frames))) == b"".join(frames)
        assert ends.writer.held_bytes == 0


@on_both_loops
async def test_a_frame_that_is_waited_for_comes_after_those_that_were_gathered_before_it() -> None:
    async with pipe() as ends:
        assert ends.writer.write_soon(b"first\n")
        assert await ends.writer.write(b"second\n")
        assert ends.writer.write_soon(b"third\n")
        assert await ends.read(19) == b"first\nsecond\nthird\n"


@on_both_loops
async def test_more_than_a_pipe_takes_at_once_is_not_gathered_but_left_to_who_can_wait() -> None:
    async with pipe() as ends:
        half = b"x" * (GATHERED_BYTES // 2)
        assert ends.writer.write_soon(half)
        assert ends.writer.write_soon(half)
        assert not ends.writer.write_soon(b"x")
        assert await ends.read(GATHERED_BYTES) == half * 2
        assert ends.writer.write_soon(b"x")


@on_both_loops
async def test_while_a_frame_is_being_written_nothing_is_gathered() -> None:
    async with pipe() as ends:
        sending = asyncio.create_task(ends.writer.write(BIG))
        await asyncio.sleep(0)
        assert not ends.writer.write_soon(b"x\n")
        assert await ends.read(len(BIG)) == BIG
        assert await sending


@on_both_loops
async def test_what_was_gathered_for_a_slow_reader_is_written_when_there_is_room() -> None:
    async with pipe() as ends:
        os.set_blocking(ends.other, False)
        filling = b"f" * 60_000
        assert await ends.writer.write(filling)
        assert ends.writer.write_soon(b"g" * 20_000)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not ends.writer.write_soon(b"h")
        assert await ends.read(80_000) == filling + b"g" * 20_000


@on_both_loops
async def test_a_broken_pipe_is_told_when_what_was_gathered_meets_it() -> None:
    async with pipe() as ends:
        ends.stop_reading()
        assert ends.writer.write_soon(b"x\n")
        await eventually(lambda: ends.broken)
        assert ends.writer.held_bytes == 0
        assert not ends.writer.write_soon(b"x\n")


@on_both_loops
async def test_closing_drops_what_was_gathered() -> None:
    async with pipe() as ends:
        assert ends.writer.write_soon(b"x\n")
        ends.writer.close()
        assert ends.writer.held_bytes == 0
        await asyncio.sleep(0)
        assert ends.broken == 0
