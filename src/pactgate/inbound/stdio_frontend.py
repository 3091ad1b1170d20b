"""The stdio frontend: one caller, one session, lines of JSON both ways.

The first request that is admitted decides the era for the rest. Requests run side by side, bounded; reading pauses beyond the bound.
Answers and notifications are whole lines in the order they are ready; a cancelled request is never answered. When the caller closes its
side, what is in flight may finish, for a while. Must not: write anything but messages to the caller.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, RequestRefused
from pactgate.core.failures import GatewayFailure, Kind, Reply
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.recording import ConnectionRecorder
from pactgate.core.values import Caller, ListReader, Silence
from pactgate.inbound.batch import BatchAnswers, is_batch, read_batch
from pactgate.inbound.client_requests import PendingClientRequests
from pactgate.inbound.error_data import encode_internal, encode_refusal
from pactgate.inbound.http_exchange import Work
from pactgate.inbound.replies import MAX_WAITING_BYTES, Kernel, answer, body_rejection, cancelled_key
from pactgate.inbound.server_limits import MIB
from pactgate.inbound.stdio_session import STDIO, StdioSession
from pactgate.policy.refused_bytes import LARGE_BYTES
from pactgate.protocol import messages, modern, versions
from pactgate.protocol.framing import LineDecoder, OversizedError
from pactgate.protocol.messages import ErrorReply, Message, Notification, Rejection, Request, Response
from pactgate.protocol.unread import id_of
from pactgate.protocol.versions import Era

MAX_RUNNING: Final = 256
FINISH_S: Final = 5.0

_READ_BYTES: Final = 64 * 1024


def _ignore(caller: Caller) -> None:
    return


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
    roles: frozenset[str] = frozenset(),
    scope: str | None = None,
    view: str | None = None,
    max_message_bytes: int = 10 * MIB,
    finish_s: float = FINISH_S,
    clock: Callable[[], float] = time.monotonic,
    tap: ConnectionRecorder | None = None,
    on_client: Callable[[Caller], None] = _ignore,
) -> None:
    """Serve one caller until it closes its side. Without streams, the caller is at this process's stdin and stdout.

    `scope` is the one server it sees, under that server's own names; `view` the view. `on_client` is called before its first request is
    answered.
    """
    if reader is None or writer is None:
        reader, writer = await open_stdio()
    principal = Principal("local", roles, PrincipalKind.LOCAL)
    frontend = StdioFrontend(kernel, reader, writer, StdioSession(principal, scope, view), emit, clock, tap)
    reading = asyncio.get_running_loop().create_task(frontend.read(max_message_bytes))
    frontend.on_gone = reading.cancel
    frontend.on_client = on_client
    kernel.join(frontend)
    try:
        await asyncio.wait((reading,))
        if not reading.cancelled():
            reading.result()
            await frontend.finish(finish_s)
    finally:
        kernel.leave(frontend)
        kernel.left(STDIO)
        reading.cancel()
        frontend.abandon()
        writer.close()
        if tap is not None:
            tap.closed()


class StdioFrontend:
    """Reads lines, runs requests, writes lines."""

    def __init__(
        self,
        kernel: Kernel,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        conversation: StdioSession,
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
        self._running: dict[str | int, _StdioResponder] = {}
        """By the id of its request; `initialize` is not among them, because it must not be cancelled (lifecycle)."""
        self._open: set[_StdioResponder] = set()
        self._changed = asyncio.Event()
        """Set when a request ends."""
        self._questions = PendingClientRequests()
        self.on_gone: Callable[[], object] = self.abandon
        """Called when the caller no longer reads."""
        self.on_client: Callable[[Caller], None] = _ignore
        """Called with the caller once it has said what it offers: at the handshake, or with its first modern request."""
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
            except OversizedError as problem:
                self._refuse(
                    Rejection(messages.PARSE_ERROR, f"A message may have {problem.limit_bytes} bytes at most.")
                )
                _, ended, data = data.partition(b"\n")
                decoder = LineDecoder(max_message_bytes) if ended else None
                lines = decoder.feed(data) if decoder else []
            for line in lines:
                try:
                    await self._take(line)
                except Exception as fault:  # noqa: BLE001 - a fault stays with its message; the next one is read
                    FaultBarrier(self._emit).report("inbound", fault)
                    self.write(encode_internal(id_of(line)))
                await self._drain()

    async def finish(self, timeout_s: float) -> None:
        """Let what is in flight come to its end, for a while; what would never end by itself ends now. Answers can't come any more."""
        self._questions.close()
        for responder in tuple(self._open):
            if responder.request.method == modern.LISTEN:
                responder.cancel()
        try:
            async with asyncio.timeout(timeout_s):
                await self._until_open_at_most(0)
        except TimeoutError:
            pass
        await self._drain()

    def abandon(self) -> None:
        for responder in tuple(self._open):
            responder.cancel()

    def notify(self, method: str, params: bytes | None) -> None:
        """Write a notification, unless the caller is gone or too far behind."""
        transport = self._writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            self.dropped += 1
        else:
            self.write(messages.encode_notification(method, params))

    def tell(self, method: str, concerns: Callable[[ListReader], bool]) -> None:
        """Tell a legacy caller what concerns it; a modern one listens."""
        if concerns(self._conversation) and self._conversation.era is Era.LEGACY and self._conversation.is_ready:
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
        self.write(message)
        return True

    # -- what comes in

    async def _take(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap.passed(line, from_client=True)
        if len(line) > LARGE_BYTES:
            failure = self._kernel.check_body(self._conversation.principal.key, line)
            if failure is not None:
                self._kernel.count_refused(self._conversation.principal.key, 0 if failure.retry_after_ms else len(line))
                self._refuse(body_rejection(failure, id_of(line)))
                return
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
        responder = _StdioResponder(self, request)
        caller = self._admit(request, responder)
        if isinstance(caller, Rejection):
            self._refuse(caller)
            return
        await self._until_open_at_most(MAX_RUNNING - 1)
        if self._conversation.era is not None:
            self.on_client, told = _ignore, self.on_client
            told(caller)
        self._start(request, caller, responder)

    async def _take_batch(self, line: bytes) -> None:
        elements = read_batch(line)
        if isinstance(elements, Rejection):
            self._refuse(elements)
            return
        batch = BatchAnswers(self._write_batch)
        requests: list[tuple[Request, Caller, _StdioResponder]] = []
        for element in elements:
            if isinstance(element, Request):
                responder = _StdioResponder(self, element, batch)
                caller = self._admit(element, responder)
                if isinstance(caller, Caller):
                    responder.place = batch.expect()
                    requests.append((element, caller, responder))
                    continue
                element = caller
            if isinstance(element, Rejection):
                batch.put(batch.expect(), encode_refusal(element))
            else:
                self._take_notice(element)
        await self._until_open_at_most(MAX_RUNNING - len(requests))
        for request in requests:
            self._start(*request)
        batch.close()

    def _write_batch(self, body: bytes | None) -> None:
        if body is not None:
            self.write(body)

    async def _until_open_at_most(self, count: int) -> None:
        while len(self._open) > count:
            self._changed.clear()
            await self._changed.wait()

    def _start(self, request: Request, caller: Caller, responder: _StdioResponder) -> None:
        self._open.add(responder)
        if request.method != "initialize":
            self._running[request.key] = responder
        ctx = ExecutionContext(request.method, caller, self._clock())
        work = self._kernel.start(ctx, request, responder)
        if responder in self._open:
            responder.work = work

    def ended(self, responder: _StdioResponder, reply: Reply | None) -> bytes | None:
        """The answer of a request that has ended; None for one that was cancelled, which is never answered."""
        self._open.discard(responder)
        self._running.pop(responder.request.key, None)
        self._changed.set()
        if reply is None:
            return None
        if responder.request.method == "initialize" and reply.error is not None:
            self._conversation.reopen()
        return answer(responder.request, reply)

    def _admit(self, request: Request, channel: _StdioResponder) -> Caller | Rejection:
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
            running = self._running.get(key) if key is not None else None
            if running is not None:
                running.cancel()
        elif self._conversation.take(message) and self._conversation.era is Era.LEGACY:
            self._kernel.notice(self._conversation.caller(Silence()), message)

    # -- what goes out

    def _refuse(self, rejection: Rejection) -> None:
        self._emit(RequestRefused(0, rejection.code, rejection.message))
        self.write(encode_refusal(rejection))

    async def _drain(self) -> None:
        """Read no further while the caller is behind with reading."""
        try:
            await self._writer.drain()
        except ConnectionError:
            self.on_gone()

    def write(self, body: bytes) -> None:
        if not self._writer.transport.is_closing():
            if self._tap is not None:
                self._tap.passed(body, from_client=False)
            self._writer.write(messages.one_line(body) + b"\n")


class _StdioResponder:
    """The way back of one request: silent once it is answered or cancelled."""

    __slots__ = ("_batch", "_frontend", "_is_open", "place", "request", "work")

    def __init__(self, frontend: StdioFrontend, request: Request, batch: BatchAnswers | None = None) -> None:
        self._frontend = frontend
        self._batch = batch
        self.place = 0
        self._is_open = True
        self.request = request
        self.work: Work | None = None

    def notify(self, method: str, params: bytes) -> None:
        if self._is_open:
            self._frontend.notify(method, params)
        else:
            self._frontend.dropped += 1

    @property
    def can_ask(self) -> bool:
        return self._is_open and self._frontend.can_ask

    async def ask(self, method: str, params: bytes) -> bytes:
        return await self._frontend.ask(method, params)

    def cancel(self) -> None:
        if self.work is not None:
            self.work.cancel()

    def done(self, reply: Reply | None) -> None:
        self._is_open = False
        self.work = None  # it points back here: nothing should wait for the garbage collector
        body = self._frontend.ended(self, reply)
        if self._batch is not None:
            self._batch.put(self.place, body)
        elif body is not None:
            self._frontend.write(body)

    def broken(self) -> None:
        self._frontend.on_gone()
