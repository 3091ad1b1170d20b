"""Legacy requests over HTTP: a handshake opens a session, everything later names it.

A request is answered with one JSON body, unless something has to be said before it: then its exchange becomes a stream of numbered
events that a client can come back to. Going away is not cancelling, but an answer nobody can fetch any more is not worked for.
Must not: know methods beyond the lifecycle's. Enforces S3/INV-001 and S3/INV-002 on callers by the table in `protocol.legacy`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Reply
from pactgate.core.values import Caller, CallerChannel, Silence
from pactgate.inbound.auth import Admitted
from pactgate.inbound.batch import join, needs_answer, read_batch
from pactgate.inbound.http_exchange import JSON_HEAD, Exchange, Work
from pactgate.inbound.replies import (
    CANCELLED,
    STOPPING,
    Drops,
    Kernel,
    answer,
    ask_to_wait,
    cancelled_answer,
    cancelled_key,
    refuse,
)
from pactgate.inbound.request_head import Post
from pactgate.inbound.response_channel import Delivery
from pactgate.inbound.sessions import MAX_RUNNING, Session, SessionTable
from pactgate.protocol import legacy, messages, versions
from pactgate.protocol.messages import ErrorReply, Message, Notification, Rejection, Request, Response
from pactgate.protocol.versions import LEGACY

_MAX_INITIALIZE_BYTES: Final = 16 * 1024
_CALL: Final = b"Allow: POST\r\n"
_LATER: Final = b"Retry-After: 5\r\n"
_NO_CHANNEL: Final = Silence()
_UNKNOWN_SESSION: Final = "There is no such session; send initialize to open one."


class LegacyFace:
    def __init__(
        self, kernel: Kernel, sessions: SessionTable, emit: Emit, clock: Callable[[], float], drops: Drops
    ) -> None:
        self._kernel = kernel
        self._sessions = sessions
        self._emit = emit
        self._clock = clock
        self._drops = drops

    # -- the four things a client can do

    async def post(self, exchange: Exchange, post: Post, message: Message) -> None:
        """One message of a session, or the one that opens it."""
        admitted, scope = post.admitted, post.scope
        if isinstance(message, Request) and not post.has_session and message.method == "initialize":
            await self._initialize(exchange, admitted, scope, message)
            return
        session = self._session(exchange, admitted, scope, message.id if isinstance(message, Request) else None)
        if session is None:
            return
        if isinstance(message, Request):
            await self._request(exchange, admitted, session, message, may_stream=post.accepts.stream)
        else:
            self._take_notice(session, admitted, message)
            exchange.respond(202)

    def start(self, exchange: Exchange, post: Post, request: Request) -> None:
        """Begin a request of a session; it is answered when its reply is there."""
        admitted = post.admitted
        named = post.session_id
        session = None if named is None else self._sessions.find(named, admitted.subject, post.scope)
        if session is None:
            session = self._session(exchange, admitted, post.scope, request.id)  # which says what is wrong
            if session is None:
                return
        rejection = _admit(session, request)
        if rejection is not None:
            refuse(exchange, self._emit, 400, rejection)
            return
        call = _Started(exchange, session, self._drops, post.accepts.stream, request)
        exchange.on_disconnect = call.client_gone
        session.running[request.key] = call
        ctx = call.ctx = ExecutionContext(request.method, _caller(session, admitted, call), self._clock())
        work = self._kernel.start(ctx, request, call.done)
        if not call.is_done:
            exchange.work = work

    async def post_batch(self, exchange: Exchange, post: Post, body: bytes) -> None:
        """An array of messages, for the one revision that has them."""
        admitted = post.admitted
        session = self._session(exchange, admitted, post.scope, None)
        if session is None:
            return
        elements: list[Message | Rejection] | Rejection
        if session.version == versions.BATCHING_VERSION:
            elements = read_batch(body)
        else:
            elements = Rejection(
                messages.INVALID_REQUEST, "Batches exist only in revision 2025-03-26; send one message."
            )
        if isinstance(elements, Rejection):
            refuse(exchange, self._emit, 400, elements)
            return
        for element in elements:
            if not isinstance(element, Request | Rejection):
                self._take_notice(session, admitted, element)
        if not needs_answer(elements):
            exchange.respond(202)
            return
        delivery = Delivery(exchange, session, self._drops, post.accepts.stream)
        exchange.on_disconnect = delivery.client_gone
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._element(session, admitted, element, delivery)) for element in elements]
        except asyncio.CancelledError:
            delivery.end(503, b"")
            raise
        answers = [task.result() for task in tasks if not task.cancelled()]
        wanted = [each for each in answers if each is not None]
        if wanted:
            delivery.finish(join(wanted))
        else:
            delivery.end(202, b"")

    def get(self, exchange: Exchange, admitted: Admitted, scope: str | None, *, may_stream: bool) -> None:
        """The standing stream of a session, or a lost one taken up again."""
        if "mcp-session-id" not in exchange.headers:
            self._refuse(exchange, 405, "Only a session has a stream to read; send POST requests.", _CALL)
            return
        if not may_stream:
            self._refuse(exchange, 406, "Accept text/event-stream.")
            return
        session = self._session(exchange, admitted, scope, None)
        if session is None:
            return
        last_ids = exchange.headers.get("last-event-id")
        if last_ids is None:
            standing = session.log.standing()
            stream, after = standing, standing.delivered
        else:
            found = session.log.find(last_ids[0])
            if found is None:
                self._refuse(exchange, 400, "Nothing is kept for that Last-Event-ID.")
                return
            stream, after = found
        sink = exchange.open_stream()
        exchange.on_disconnect = lambda: stream.lost(sink)
        stream.attach(sink, after)

    def delete(self, exchange: Exchange, admitted: Admitted, scope: str | None) -> None:
        """End a session and everything that runs in it."""
        if "mcp-session-id" not in exchange.headers:
            self._refuse(exchange, 405, "Only a session can be deleted; send POST requests.", _CALL)
            return
        session = self._session(exchange, admitted, scope, None)
        if session is not None:
            self._sessions.end(session)
            exchange.respond(200)

    # -- the handshake

    async def _initialize(self, exchange: Exchange, admitted: Admitted, scope: str | None, request: Request) -> None:
        offer = _read_offer(request)
        if isinstance(offer, Rejection):
            refuse(exchange, self._emit, 400, offer)
            return
        if not self._sessions.make_room(admitted.subject):
            self._refuse_for_now(exchange)
            return
        version = versions.negotiate(offer.version)
        caller = Caller(
            subject=admitted.subject,
            era=LEGACY,
            version=version,
            channel=_NO_CHANNEL,
            roles=admitted.roles,
            scope=scope,
            client=offer.client,
            capabilities=offer.capabilities,
        )
        exchange.on_disconnect = exchange.cancel
        try:
            reply = await self._kernel.handle(ExecutionContext(request.method, caller, self._clock()), request)
        except asyncio.CancelledError:
            exchange.respond(503, JSON_HEAD, cancelled_answer(request, STOPPING))
            raise
        if reply.error is not None:
            exchange.respond(200, JSON_HEAD, answer(request, reply))
        elif self._sessions.make_room(admitted.subject):
            session = self._sessions.open(admitted.subject, scope, version, offer)
            head = JSON_HEAD + b"Mcp-Session-Id: %b\r\n" % session.id.encode()
            exchange.respond(200, head, answer(request, reply))
        else:
            self._refuse_for_now(exchange)

    def _refuse_for_now(self, exchange: Exchange) -> None:
        self._refuse(exchange, 503, "There are as many busy sessions as there may be; try again.", _LATER)

    # -- what happens in a session

    def _session(self, exchange: Exchange, admitted: Admitted, scope: str | None, id_: bytes | None) -> Session | None:
        """The session this request names, or None after the refusal has been sent."""
        ids = exchange.headers.get("mcp-session-id", [])
        spoken = exchange.headers.get("mcp-protocol-version", [])
        if len(ids) != 1:
            self._refuse(exchange, 400, "Send initialize first, then its Mcp-Session-Id with every request.", id_=id_)
            return None
        if len(spoken) > 1 or (spoken and spoken[0] not in versions.LEGACY_VERSIONS):
            self._refuse(exchange, 400, "Sessions speak one of " + ", ".join(versions.LEGACY_VERSIONS) + ".", id_=id_)
            return None
        session = self._sessions.find(ids[0], admitted.subject, scope)
        if session is None:
            self._refuse(exchange, 404, _UNKNOWN_SESSION, id_=id_)
        return session

    async def _request(
        self, exchange: Exchange, admitted: Admitted, session: Session, request: Request, *, may_stream: bool
    ) -> None:
        rejection = _admit(session, request)
        if rejection is not None:
            refuse(exchange, self._emit, 400, rejection)
            return
        delivery = Delivery(exchange, session, self._drops, may_stream)
        exchange.on_disconnect = delivery.client_gone
        call = _Call(exchange.work)
        try:
            body = await self._call(session, admitted, request, delivery, call)
        except asyncio.CancelledError:
            if call.reason == CANCELLED and delivery.is_streaming:
                delivery.end(200, b"")  # the caller asked for silence
            else:
                delivery.finish(cancelled_answer(request, call.reason))
            raise
        ask_to_wait(exchange, call.failure)
        delivery.finish(body)

    async def _element(
        self, session: Session, admitted: Admitted, element: Message | Rejection, channel: CallerChannel
    ) -> bytes | None:
        """The answer to one element of a batch; None where it needs none."""
        if isinstance(element, Rejection):
            return messages.encode_rejection(element)
        if not isinstance(element, Request):
            return None
        rejection = _admit(session, element)
        if rejection is not None:
            return messages.encode_rejection(rejection)
        return await self._call(session, admitted, element, channel, _Call(asyncio.current_task()))

    async def _call(
        self, session: Session, admitted: Admitted, request: Request, channel: CallerChannel, call: _Call
    ) -> bytes:
        session.running[request.key] = call
        try:
            caller = _caller(session, admitted, channel)
            ctx = ExecutionContext(request.method, caller, self._clock())
            reply = await self._kernel.handle(ctx, request)
            call.failure = ctx.failure
            return answer(request, reply)
        finally:
            del session.running[request.key]

    def _take_notice(self, session: Session, admitted: Admitted, message: Message) -> None:
        if not isinstance(message, Notification):
            if isinstance(message, Response | ErrorReply) and session.questions is not None:
                session.questions.take(message)
            return
        outcome = legacy.step(session.phase, message)
        session.phase = outcome.phase
        if message.method == "notifications/cancelled":
            key = cancelled_key(message)
            running = session.running.get(key) if key is not None else None
            if running is not None:
                running.stop(CANCELLED)
        elif outcome.rejection is None and message.method != "notifications/initialized":
            self._kernel.notice(_caller(session, admitted, _NO_CHANNEL), message)

    def _refuse(
        self, exchange: Exchange, status: int, message: str, head: bytes = b"", *, id_: bytes | None = None
    ) -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message, id_), head)


def _read_offer(request: Request) -> legacy.InitializeParams | Rejection:
    if request.params is not None and len(request.params) > _MAX_INITIALIZE_BYTES:
        return Rejection(
            messages.INVALID_PARAMS, f"initialize takes at most {_MAX_INITIALIZE_BYTES} bytes.", request.id
        )
    return legacy.read_initialize(request)


def _admit(session: Session, request: Request) -> Rejection | None:
    if session.phase not in legacy.OPEN or request.method == legacy.INITIALIZE:
        outcome = legacy.step(session.phase, request)
        session.phase = outcome.phase
        if outcome.rejection is not None:
            return outcome.rejection
    if request.key in session.running:
        return Rejection(messages.INVALID_REQUEST, "A request with this id is still running.", request.id)
    if len(session.running) >= MAX_RUNNING:
        return Rejection(
            messages.INVALID_REQUEST, f"A session runs at most {MAX_RUNNING} requests at once.", request.id
        )
    return None


def _caller(session: Session, admitted: Admitted, channel: CallerChannel) -> Caller:
    # In the order of the fields: by their names it would cost three times as much.
    return Caller(
        session.subject,
        LEGACY,
        session.version,
        channel,
        admitted.roles,
        session.scope,
        session.handle,
        session.client,
        session.capabilities,
        None,
        session,
    )


class _Call:
    """A request in flight, and why it was stopped, if it was."""

    __slots__ = ("_work", "failure", "reason")

    def __init__(self, work: Work | None) -> None:
        self._work = work
        self.failure: GatewayFailure | None = None
        self.reason = STOPPING

    def stop(self, reason: str) -> None:
        self.reason = reason
        if self._work is not None:
            self._work.cancel()


class _Started(Delivery):
    """A request on its way to its answer."""

    __slots__ = ("_reason", "_request", "ctx", "is_done")

    ctx: ExecutionContext

    def __init__(self, exchange: Exchange, session: Session, drops: Drops, may_stream: bool, request: Request) -> None:
        self._exchange = exchange  # what the delivery sets, without a call for it: every request pays it
        self._session = session
        self._drops = drops
        self._may_stream = may_stream
        self._stream = None
        self._request = request
        self._reason = STOPPING
        self.is_done = False

    def stop(self, reason: str) -> None:
        self._reason = reason
        self._exchange.cancel()

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        exchange, request = self._exchange, self._request
        exchange.work = None
        del self._session.running[request.key]
        failure = self.ctx.failure
        del self.ctx  # which points back here: nothing should wait for the garbage collector
        if reply is not None:
            if failure is not None:
                ask_to_wait(exchange, failure)
            if self._stream is None and reply.result:
                exchange.respond_result(request.id, reply.result)
            else:
                self.finish(answer(request, reply))
        elif self._reason == CANCELLED and self.is_streaming:
            self.end(200, b"")  # the caller asked for silence
        else:
            self.finish(cancelled_answer(request, self._reason))
