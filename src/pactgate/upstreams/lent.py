"""The channel to a child process that another process of this gateway runs for all of them: lines over a Unix stream.

To whoever uses it, it is a stdio server of its own. The process that runs the child gives it ids nobody else has, and says why it ended
in a line that is no message. Bounded as the pipes of a child are. Must not: end the child; it ends when the last one lets go of it, who is
told when it has.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.recording import Tap
from pactgate.protocol.framing import LineDecoder, Oversized
from pactgate.protocol.messages import one_line
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Outgoing, Receiver
from pactgate.upstreams.pending import Ledger, Sent, Sink
from pactgate.upstreams.process.pipes import PipeReader, PipeWriter

FRAME_ROOM_BYTES: Final = 4096
"""An id of ours may be longer than the one it stands for."""
LETTING_GO_S: Final = 6.0
"""A little more than the ending of a child may take."""
LAST_WORD: Final = b"!"
"""Begins the line that says why nothing more will come."""


class Loan(Struct):
    """A way to a child that runs elsewhere. The descriptor is a stream of lines, and the borrower's to close."""

    descriptor: int
    pid: int | None
    sandbox_level: str | None


class LastWord(Struct):
    """Why a child can't be used any more, as it is told to those who borrowed it."""

    kind: str
    message: str
    details: dict[str, object] = {}

    def failure(self, server: str) -> GatewayFailure:
        return GatewayFailure(Kind(self.kind), self.message, server=server, details=dict(self.details))


Lend = Callable[[ServerConfig], Awaitable[Loan]]
"""Borrows the child of a server. Raises GatewayFailure where it can't be started."""

_last_word: Final = msgspec.json.Decoder(LastWord)


class LentChannel:
    """A `Channel` to one lent child. Used once: open, send, close."""

    closing_cancels = False
    answers_in_send = False

    def __init__(self, config: ServerConfig, lend: Lend, *, max_frame_bytes: int, tap: Tap | None = None) -> None:
        self._config = config
        self._lend = lend
        self._tap = tap
        self._decoder = LineDecoder(max_frame_bytes + FRAME_ROOM_BYTES)
        self._receiver: Receiver | None = None
        self._reader: PipeReader | None = None
        self._writer: PipeWriter | None = None
        self._last_word: GatewayFailure | None = None
        self._stream: socket.socket | None = None
        self._has_ended = asyncio.Event()
        self.pid: int | None = None
        self.sandbox_level: str | None = None

    async def open(self, receiver: Receiver) -> None:
        loan = await self._lend(self._config)
        self._receiver = receiver
        self.pid, self.sandbox_level = loan.pid, loan.sandbox_level
        self._stream = socket.socket(fileno=loan.descriptor)
        # The end is told by the reader alone: it comes with the reason, and never in the middle of a write.
        self._writer = PipeWriter(io.FileIO(os.dup(loan.descriptor), "wb"), lambda: None)
        self._reader = PipeReader(io.FileIO(os.dup(loan.descriptor), "rb"), self._on_data, self._ended)

    def settle(self, era: Era, version: str) -> None:
        """Lines carry nothing beside the message."""

    async def send(self, frame: Outgoing) -> None:
        if self._tap is not None:
            self._tap.passed(frame.text, from_client=True)
        if self._writer is None or not await self._writer.write(one_line(frame.text) + b"\n"):
            raise GatewayFailure(
                Kind.CONNECTION_LOST,
                f"{self._config.id} does not run or does not listen any more; the message was not sent",
                server=self._config.id,
                verdict=Verdict.DID_NOT_RUN,
            )

    def begin(self, frame: Outgoing, id_: int, ledger: Ledger, sink: Sink) -> Sent | None:
        """A request into a stream that has room."""
        if self._writer is None or not self._writer.write_soon(one_line(frame.text) + b"\n"):
            return None
        if self._tap is not None:
            self._tap.passed(frame.text, from_client=True)
        return Sent(ledger, sink, id_)

    async def close(self) -> None:
        self._receiver = None
        if self._stream is not None and not self._has_ended.is_set():
            with suppress(OSError, TimeoutError):
                self._stream.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(LETTING_GO_S):
                    await self._has_ended.wait()
        self._release()

    def _on_data(self, data: bytes) -> None:
        try:
            lines = self._decoder.feed(data)
        except Oversized:
            self._last_word = self._lost("sent a message that is too long")
            self._ended()
            return
        for line in lines:
            if line.startswith(LAST_WORD):
                self._last_word = _last_word.decode(line[len(LAST_WORD) :]).failure(self._config.id)
            elif self._receiver is not None:
                if self._tap is not None:
                    self._tap.passed(line, from_client=False)
                self._receiver.receive(line)

    def _ended(self) -> None:
        receiver, self._receiver = self._receiver, None
        self._has_ended.set()
        self._release()
        if receiver is not None:
            receiver.lost(self._last_word or self._lost("is out of reach: the process that runs it has ended"))

    def _lost(self, what: str) -> GatewayFailure:
        return GatewayFailure(Kind.CONNECTION_LOST, f"{self._config.id} {what}", server=self._config.id)

    def _release(self) -> None:
        self.pid = None
        if self._tap is not None:
            self._tap.closed()
            self._tap = None
        if self._writer is not None:
            self._writer.close()
        if self._reader is not None:
            self._reader.close()
        if self._stream is not None:
            self._stream.close()
