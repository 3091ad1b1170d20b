"""The children all workers share, run once, in the owner: started when the first worker asks, ended when the last one lets go.

Two workers that ask for the same settings get the same child; other settings are another child. A child that dies is told to all who
borrowed it, and whoever asks again first has it started again for all. Must not: read what passes beyond whose it is (`sharing`).
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pactgate.config.sections.limits import Limits
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.channel import Outgoing
from pactgate.upstreams.dialer import child_channel
from pactgate.upstreams.lent import FRAME_ROOM_BYTES, LAST_WORD, LastWord
from pactgate.upstreams.process.child_reaper import Guardian
from pactgate.upstreams.process.stdio import StdioChannel
from pactgate.workers.seat import Seat
from pactgate.workers.sharing import Out, Sharing

MAX_LATER: Final = 256
_PATIENCE_S: Final = 2.0


class LentChild:
    """One child and everybody who borrowed it. The `Receiver` of its channel."""

    def __init__(self, config: ServerConfig, channel: StdioChannel, max_line_bytes: int) -> None:
        self.config = config
        self.sharing = Sharing(time.monotonic)
        self.is_over = False
        self._channel = channel
        self._max_line_bytes = max_line_bytes
        self._seats: dict[int, Seat] = {}
        self._count = 0
        self._later: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._last: Seat | None = None
        self._parting: set[Seat] = set()
        """Seats that are no more, as far as something of them may be left."""

    async def open(self) -> None:
        """Raises GatewayFailure."""
        await self._channel.open(self)

    @property
    def facts(self) -> dict[str, Any]:
        return {"pid": self._channel.pid, "sandbox": self._channel.sandbox_level}

    def join(self) -> int:
        """A seat for one worker: the descriptor of its end, which whoever asked passes on and closes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._count += 1
        number = self._count
        self.sharing.join(number)
        self._seats[number] = Seat(
            ours,
            max_frame_bytes=self._max_line_bytes + FRAME_ROOM_BYTES,
            on_line=lambda line: self._from_seat(number, line),
            on_end=lambda: self._left(number),
        )
        return theirs.detach()

    async def close(self) -> None:
        """End the child, for everybody."""
        self._end()
        assert self._closing is not None
        await asyncio.wait({self._closing})
        for seat in self._parting:
            seat.close()
            await seat.ended()

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of it."""
        return self._closing is not None and self._closing.done() and all(seat.is_gone for seat in self._parting)

    async def _close(self) -> None:
        seats, self._seats = self._seats, {}
        self._parting.update(seats.values())
        for seat in seats.values():
            seat.close()
        for task in tuple(self._later):
            task.cancel()
        await self._channel.close()
        if self._last is not None:
            self._last.close()  # whoever let go last learns that the child has ended

    # What the channel brings (port.Receiver).

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        out = self.sharing.from_child(frame)
        self._spread(out)
        return out.is_answer

    def lost(self, failure: GatewayFailure) -> None:
        self.is_over = True
        details = msgspec.to_builtins(failure.details, enc_hook=str)
        word = LAST_WORD + msgspec.json.encode(LastWord(failure.kind.value, failure.message, details))
        seats, self._seats = self._seats, {}
        self._parting.update(seats.values())
        for seat in seats.values():
            seat.write(word, is_last=True)
        self._end()

    # Inside.

    async def _from_seat(self, number: int, line: bytes) -> None:
        out = self.sharing.from_seat(number, line)
        for seat, frame in out.to_seats:
            self._write(seat, frame)
        for frame in out.to_child:
            await self._send(frame)

    async def _send(self, frame: bytes) -> None:
        sending = Outgoing(frame)
        if self._channel.send_soon(sending):
            return
        try:
            await self._channel.send(sending)
        except GatewayFailure:
            return  # it has ended, and `lost` says so to everybody

    def _left(self, number: int) -> None:
        seat = self._seats.pop(number, None)
        if seat is None:
            return
        self._spread(self.sharing.leave(number))
        self._parting = {one for one in (*self._parting, seat) if not one.is_gone}
        if self._seats or self.is_over:
            seat.close()
            return
        self._last = seat
        self._end()

    def _end(self) -> None:
        self.is_over = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name=f"end {self.config.id}")

    def _spread(self, out: Out) -> None:
        for seat, frame in out.to_seats:
            self._write(seat, frame)
        for frame in out.to_child:
            if len(self._later) < MAX_LATER and not self.is_over:
                task = asyncio.get_running_loop().create_task(self._send_soon(frame))
                self._later.add(task)
                task.add_done_callback(self._later.discard)

    async def _send_soon(self, frame: bytes) -> None:
        """A courtesy the child may miss."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._send(frame)
        except TimeoutError:
            return

    def _write(self, number: int, frame: bytes) -> None:
        seat = self._seats.get(number)
        if seat is not None:
            seat.write(frame)


class Lending:
    """Every lent child, by the settings that make it what it is."""

    def __init__(self, emit: Emit, limits: Limits) -> None:
        self._emit = emit
        self._max_frame_bytes = limits.max_upstream_frame_bytes
        self._max_line_bytes = max(limits.max_request_bytes, limits.max_upstream_frame_bytes)
        self._guardian = Guardian()
        self._children: dict[bytes, LentChild] = {}
        self._leaving: set[LentChild] = set()
        """Children that are being ended, while others may already run in their place."""

    def __len__(self) -> int:
        return sum(not child.is_over for child in self._children.values())

    @property
    def unattributed_count(self) -> int:
        """Log messages nobody was given, as it was not certain whose they are."""
        return sum(child.sharing.unattributed_count for child in self._children.values())

    async def lend(self, config: ServerConfig) -> tuple[dict[str, Any], tuple[int, ...]]:
        """What is to be known of the child, and the descriptor of a seat. Raises GatewayFailure where it can't be started."""
        key = _key(config)
        child = self._children.get(key)
        if child is None or child.is_over:
            child = await self._start(key, config)
        return child.facts, (child.join(),)

    async def close(self) -> None:
        await asyncio.gather(*(child.close() for child in {*self._children.values(), *self._leaving}))
        await self._guardian.close()

    async def _start(self, key: bytes, config: ServerConfig) -> LentChild:
        over = {one for one in (*self._children.values(), *self._leaving) if one.is_over}
        self._leaving = {one for one in over if not one.is_gone}
        self._children = {one: child for one, child in self._children.items() if not child.is_over}
        channel = child_channel(config, self._emit, self._guardian, self._max_frame_bytes)
        child = self._children[key] = LentChild(config, channel, self._max_line_bytes)
        try:
            await child.open()
        except GatewayFailure:
            del self._children[key]
            raise
        return child


def _key(config: ServerConfig) -> bytes:
    """What a running child can't change: the rest is looked up elsewhere, each time it is needed."""
    return msgspec.msgpack.encode(replace(config, enabled=True, request_timeout_ms=60000, max_retries=0))
