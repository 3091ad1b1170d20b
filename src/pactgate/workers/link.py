"""The conversation between the owner and one worker: notices, and questions that are answered once. Both ends are our own code.

Every question has a time limit, and what waits to be sent is bounded: an end that does not read is given up. Descriptors may go along
with notices and answers. Must not: know what is said.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.workers import packets
from pactgate.workers.packets import EndedError, Packet

MAX_UNSENT: Final = 1000
MAX_QUESTIONS: Final = 1000
_PACKETS_A_TURN: Final = 64
_NOTICE, _QUESTION, _ANSWER, _FAILURE = range(4)

Fds = tuple[int, ...]
OnNotice = Callable[[str, Any, Fds], None]
OnQuestion = Callable[[str, Any], Awaitable[tuple[Any, Fds]]]
"""What a question is answered with. The descriptors are closed here once they are sent. Raises GatewayFailure."""


def failed(failure: GatewayFailure) -> dict[str, Any]:
    """A failure as it is told to the other process."""
    return {
        "kind": failure.kind.value,
        "message": failure.message,
        "server": failure.server,
        "details": msgspec.to_builtins(failure.details, enc_hook=str),
    }


def as_failure(told: dict[str, Any]) -> GatewayFailure:
    return GatewayFailure(Kind(told["kind"]), told["message"], server=told["server"], details=told["details"])


class Link:
    """One end. `on_end` is called once if the other end goes away or does not read; after `close` nothing is called."""

    def __init__(
        self, end: socket.socket, on_notice: OnNotice, on_question: OnQuestion, on_end: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = end
        self._on_notice = on_notice
        self._on_question = on_question
        self._on_end = on_end
        self._unsent: deque[Packet] = deque()
        self._open: dict[int, asyncio.Future[tuple[Any, Fds]]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._count = 0
        self.is_open = True
        end.setblocking(False)
        self._loop.add_reader(end.fileno(), self._read)

    def tell(self, name: str, body: Any = None, descriptors: Fds = ()) -> None:
        self._send(_NOTICE, 0, name, body, descriptors)

    async def ask(self, name: str, body: Any = None, *, timeout_s: float) -> tuple[Any, Fds]:
        """The answer, and descriptors that are the caller's now. Raises GatewayFailure: what the other end raised, or that it is gone."""
        self._count += 1
        number = self._count
        answer: asyncio.Future[tuple[Any, Fds]] = self._loop.create_future()
        self._open[number] = answer
        is_taken = False
        try:
            self._send(_QUESTION, number, name, body, ())
            async with asyncio.timeout(timeout_s):
                said = await answer
            is_taken = True
            return said
        except TimeoutError:
            raise _silent(f"no answer to {name} within {timeout_s} s") from None
        finally:
            del self._open[number]
            if not is_taken and answer.done() and not answer.cancelled() and answer.exception() is None:
                Packet(b"", answer.result()[1]).close()  # it came in the moment nobody wanted it any more

    def close(self) -> None:
        """End it from this side."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._end.fileno())
        self._loop.remove_writer(self._end.fileno())
        self._end.close()
        for packet in self._unsent:
            packet.close()
        self._unsent.clear()
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(_silent("the other process is gone"))
        for task in self._answering:
            task.cancel()

    def _lost(self) -> None:
        if self.is_open:
            self.close()
            self._on_end()

    # sending

    def _send(self, kind: int, number: int, name: str, body: Any, descriptors: Fds) -> None:
        if not self.is_open:
            raise _silent("the other process is gone")
        text = msgspec.msgpack.encode((kind, number, name, body))
        try:
            if not self._unsent and packets.send(self._end, text, descriptors):
                return
        except EndedError:
            return  # the reader notices, and says so once
        if len(self._unsent) >= MAX_UNSENT:
            self._lost()
            return
        if not self._unsent:
            self._loop.add_writer(self._end.fileno(), self._write)
        self._unsent.append(Packet(text, tuple(os.dup(one) for one in descriptors)))

    def _write(self) -> None:
        try:
            while self._unsent and packets.send(self._end, *self._unsent[0]):
                self._unsent.popleft().close()
        except EndedError:
            self._loop.remove_writer(self._end.fileno())
            return
        if not self._unsent:
            self._loop.remove_writer(self._end.fileno())

    # receiving

    def _read(self) -> None:
        try:
            for _ in range(_PACKETS_A_TURN):
                packet = packets.receive(self._end) if self.is_open else None
                if packet is None:
                    return
                self._take(packet)
        except EndedError:
            self._lost()

    def _take(self, packet: Packet) -> None:
        kind, number, name, body = msgspec.msgpack.decode(packet.text)
        if kind == _NOTICE:
            self._on_notice(name, body, packet.descriptors)
        elif kind == _QUESTION:
            packet.close()
            self._answer_later(number, name, body)
        else:
            self._answered(kind, number, body, packet)

    def _answered(self, kind: int, number: int, body: Any, packet: Packet) -> None:
        answer = self._open.get(number)
        if answer is None or answer.done():
            packet.close()  # nobody waits any more
        elif kind == _FAILURE:
            packet.close()
            answer.set_exception(as_failure(body))
        else:
            answer.set_result((body, packet.descriptors))

    def _answer_later(self, number: int, name: str, body: Any) -> None:
        if len(self._answering) >= MAX_QUESTIONS:
            self._send(_FAILURE, number, name, failed(_silent("too many questions are open")), ())
            return
        task = self._loop.create_task(self._answer(number, name, body), name=f"answer to {name}")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, number: int, name: str, body: Any) -> None:
        try:
            said, descriptors = await self._on_question(name, body)
        except (GatewayFailure, OSError) as problem:
            failure = problem if isinstance(problem, GatewayFailure) else _silent(str(problem))
            with suppress(GatewayFailure):
                self._send(_FAILURE, number, name, failed(failure), ())
            return
        try:
            with suppress(GatewayFailure):
                self._send(_ANSWER, number, name, said, descriptors)
        finally:
            Packet(b"", descriptors).close()


def _silent(why: str) -> GatewayFailure:
    return GatewayFailure(Kind.CONNECTION_LOST, f"another process of this gateway can't be asked: {why}")
