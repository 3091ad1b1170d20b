"""The stdio face: one caller, one conversation, lines of JSON both ways.

The first request that is admitted decides the era for the rest. Requests run side by side, bounded; reading pauses beyond the bound.
Answers and notifications are whole lines in the order they are ready; a cancelled request is never answered. When the caller closes its
side, what is in flight may finish, for a while. Must not: write anything but messages to the caller.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Final

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, InternalFailure, RequestRefused
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.recording import ConnectionRecorder
from pactgate.core.values import Caller
from pactgate.inbound.batch import is_batch, join, read_batch
from pactgate.inbound.client_requests import Questions
from pactgate.inbound.replies import MAX_WAITING_BYTES, Kernel, answer, cancelled_key
from pactgate.inbound.server_limits import MIB
from pactgate.inbound.stdio_session import STDIO, Conversation
from pactgate.protocol import messages, modern, versions
from pactgate.protocol.framing import LineDecoder, Oversized
from pactgate.protocol.messages import ErrorReply, Message, Notification, Rejection, Request, Response
from pactgate.protocol.versions import Era

MAX_RUNNING: Final = 256
FINISH_S: Final = 5.0

_READ_BYTES: Final = 64 * 1024


async def open_stdio() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """This process's standard input and output. From now on, what is printed by mistake goes to standard error."""
    loop = asyncio.get_running_loop()
    reader, unread = asyncio.StreamReader(), asyncio.StreamReader()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb"))
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unread), os.fdopen(ours, "wb")
        )
    except ValueError:
        raise GatewayFailure(Kind.INVALID_CONFIG, "stdin and stdout must be pipes to serve MCP on them.") from None
    return reader, asyncio.StreamWriter(transport, protocol, unread, loop)


async def serve_stdio(
    kernel: Kernel,
    reader: asyncio.StreamReader | None = None,
    writer: asyncio.StreamWriter | None = None,
    *,
    emit: Emit,
    subject: str = "local",
    roles: frozenset[str] = frozenset(),
    scope: str | None = None,
    max_message_bytes: int = 10 * MIB,
    finish_s: float = FINISH_S,
    clock: Callable[[], float] = time.monotonic,
    tap: ConnectionRecorder | None = None,
) -> None:
    """Serve one caller until it closes its side. Without streams, the caller is at this process's stdin and stdout.

    `scope` is the one server it sees, under that server's own names.
    """
    if reader is None or writer is None:
        reader, writer = await open_stdio()
    face = StdioFace(kernel, reader, writer, Conversation(subject, roles, scope), emit, clock, tap)
    reading = asyncio.get_running_loop().create_task(face.read(max_message_bytes))
    face.on_gone = reading.cancel
    kernel.join(face)
    try:
        await asyncio.wait((reading,))
        if not reading.cancelled():
            reading.result()
            await face.finish(finish_s)
    finally:
        kernel.leave(face)
        kernel.left(STDIO)
        reading.cancel()
        face.abandon()
        writer.close()
        if tap is not None:
            tap.closed()


class StdioFace:
    """Reads lines, runs requests, writes lines."""

    def __init__(
        self,
        kernel: Kernel,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        conversation: Conversation,
        emit: Emit,
        clock: Callable[[], float],
        tap: ConnectionRecorder | None = None,
    ) -> None:
        self._kernel = kernel
        self._reader = reader
        self._writer = writer
        self._conversation = conversation
        conversation.standing = self
        self._emit = emit
        self._clock = clock
        self._tap = tap
        self._running: dict[str | int, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listens: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._questions = Questions()
        self.on_gone: Callable[[], object] = self.abandon
        """Called when the caller no longer reads."""
        self.dropped = 0

    async def read(self, max_message_bytes: int) -> None:
        """Take messages until the caller closes its side. A line that is too long is refused and passed over."""
        decoder: LineDecoder | None = LineDecoder(max_message_bytes)
        while data := await self._reader.read(_READ_BYTES):
            if decoder is None:
                _, ended, data = data.partition(b"\n")
                if not ended:
                    continue
                decoder = LineDecoder(max_message_bytes)
            try:
                lines = decoder.feed(data)
            except Oversized as problem:
                self._refuse(
                    Rejection(messages.PARSE_ERROR, f"A message may have {problem.limit_bytes} bytes at most.")
                )
                _, ended, data = data.partition(b"\n")
                decoder = LineDecoder(max_message_bytes) if ended else None
                lines = decoder.feed(data) if decoder else []
            for line in lines:
                await self._take(line)

    async def finish(self, timeout_s: float) -> None:
        """Let what is in flight come to its end, for a while; what would never end by itself ends now. Answers can't come any more."""
        self._questions.close()
        for listen in self._listens:
            listen.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    def abandon(self) -> None:
        for task in self._tasks:
            task.cancel()

    def notify(self, method: str, params: bytes | None) -> None:
        """Write a notification, unless the caller is gone or too far behind."""
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            self.dropped += 1
        else:
            self._write(messages.encode_notification(method, params))

    def tell(self, scope: str | None, method: str) -> None:
        """Tell a legacy caller of the view it has; a modern one listens."""
        if scope is None and self._conversation.era is Era.LEGACY and self._conversation.is_ready:
            self.notify(method, None)

    @property
    def can_ask(self) -> bool:
        return self._conversation.era is Era.LEGACY and not self._writer.transport.is_closing()

    async def ask(self, method: str, params: bytes) -> bytes:
        """Ask the caller, which answers on the same pipe."""
        return await self._questions.ask(method, params, self._put)

    def _put(self, message: bytes) -> bool:
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            return False
        self._write(message)
        return True

    # -- what comes in

    async def _take(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap.passed(line, from_client=True)
        if self._conversation.version == versions.BATCHING_VERSION and is_batch(line):
            await self._take_batch(line)
            return
        message = messages.decode(line)
        if isinstance(message, Rejection):
            self._refuse(message)
        elif isinstance(message, Request):
            await self._take_request(message)
        else:
            self._take_notice(message)

    async def _take_request(self, request: Request) -> None:
        channel = _Channel(self)
        caller = self._admit(request, channel)
        if isinstance(caller, Rejection):
            self._refuse(caller)
            return
        await self._slots.acquire()
        task = self._start(self._answer_one(request, caller, channel), slots=1)
        if request.method == modern.LISTEN:
            self._listens.add(task)
            task.add_done_callback(self._listens.discard)
        if request.method != "initialize":  # which must not be cancelled (lifecycle)
            self._running[request.key] = task

    async def _take_batch(self, line: bytes) -> None:
        elements = read_batch(line)
        if isinstance(elements, Rejection):
            self._refuse(elements)
            return
        requests: list[tuple[Request, Caller, _Channel]] = []
        refused: list[bytes] = []
        for element in elements:
            if isinstance(element, Request):
                channel = _Channel(self)
                caller = self._admit(element, channel)
                if isinstance(caller, Caller):
                    requests.append((element, caller, channel))
                    continue
                element = caller
            if isinstance(element, Rejection):
                refused.append(messages.encode_rejection(element))
            else:
                self._take_notice(element)
        for _ in requests:
            await self._slots.acquire()
        if requests or refused:
            self._start(self._answer_all(requests, refused), slots=len(requests))

    def _admit(self, request: Request, channel: _Channel) -> Caller | Rejection:
        if request.key in self._running:
            return Rejection(messages.INVALID_REQUEST, "A request with this id is still running.", request.id)
        return self._conversation.admit(request, channel)

    def _take_notice(self, message: Message) -> None:
        if not isinstance(message, Notification):
            if isinstance(message, Response | ErrorReply):
                self._questions.take(message)
            return
        if message.method == "notifications/cancelled":
            key = cancelled_key(message)
            task = self._running.get(key) if key is not None else None
            if task is not None:
                task.cancel()
        elif self._conversation.take(message) and self._conversation.era is Era.LEGACY:
            self._kernel.notice(self._conversation.caller(_Channel(self)), message)

    # -- what goes out

    async def _answer_one(self, request: Request, caller: Caller, channel: _Channel) -> None:
        body = await self._ask(request, caller, channel)
        await self._send(body)

    async def _answer_all(self, requests: list[tuple[Request, Caller, _Channel]], answers: list[bytes]) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(*each)) for each in requests]
            for (request, _, _), task in zip(requests, tasks, strict=True):
                self._running[request.key] = task
        answers += [task.result() for task in tasks if not task.cancelled()]
        if answers:
            await self._send(join(answers))

    async def _ask(self, request: Request, caller: Caller, channel: _Channel) -> bytes:
        try:
            reply = await self._kernel.handle(ExecutionContext(request.method, caller, self._clock()), request)
        finally:
            channel.is_open = False
            self._running.pop(request.key, None)
        if request.method == "initialize" and reply.error is not None:
            self._conversation.reopen()
        return answer(request, reply)

    def _start(self, work: Coroutine[Any, Any, None], *, slots: int) -> asyncio.Task[None]:
        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            for _ in range(slots):
                self._slots.release()
            error = None if task.cancelled() else task.exception()
            if error is not None:
                report = "".join(traceback.format_exception(error))
                self._emit(InternalFailure("", "faces", repr(error), report))

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)
        return task

    def _refuse(self, rejection: Rejection) -> None:
        self._emit(RequestRefused(0, rejection.code, rejection.message))
        self._write(messages.encode_rejection(rejection))

    async def _send(self, body: bytes) -> None:
        """Write an answer, and wait while the caller is behind: its slot stays taken until then."""
        self._write(body)
        try:
            await self._writer.drain()
        except ConnectionError:
            self.on_gone()

    def _write(self, body: bytes) -> None:
        if not self._writer.transport.is_closing():
            if self._tap is not None:
                self._tap.passed(body, from_client=False)
            self._writer.write(messages.one_line(body) + b"\n")


class _Channel:
    """The way back of one request: silent once it is answered or cancelled."""

    __slots__ = ("_face", "is_open")

    def __init__(self, face: StdioFace) -> None:
        self._face = face
        self.is_open = True

    def notify(self, method: str, params: bytes) -> None:
        if self.is_open:
            self._face.notify(method, params)
        else:
            self._face.dropped += 1

    @property
    def can_ask(self) -> bool:
        return self.is_open and self._face.can_ask

    async def ask(self, method: str, params: bytes) -> bytes:
        return await self._face.ask(method, params)
