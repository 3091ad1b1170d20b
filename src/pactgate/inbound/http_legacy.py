"""Legacy requests over HTTP: a handshake opens a session, everything later names it.

A request is answered with one JSON body, unless something has to be said before it: then its exchange becomes a stream of numbered
events that a client can come back to. Going away is not cancelling, but an answer nobody can fetch any more is not worked for.
Must not: know methods beyond the lifecycle's. Enforces S3/INV-001 and S3/INV-002 on callers by the table in `protocol.legacy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import Kind, Reply
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, CallerChannel, Silence
from pactgate.inbound.batch import BatchAnswers, needs_answer, read_batch
from pactgate.inbound.error_data import data_of, encode_refusal
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange, Work
from pactgate.inbound.replies import (
    CANCELLED,
    STOPPING,
    DroppedNotifications,
    Kernel,
    answer,
    cancelled_answer,
    cancelled_key,
    refuse,
    status_of,
)
from pactgate.inbound.request_head import McpRequestHead
from pactgate.inbound.response_channel import ResponseChannel
from pactgate.inbound.sessions import MAX_RUNNING, LegacySession, SessionTable
from pactgate.protocol import legacy, messages, versions
from pactgate.protocol.messages import ErrorReply, Message, Notification, Rejection, Request, Response
from pactgate.protocol.versions import LEGACY

_MAX_INITIALIZE_BYTES: Final = 16 * 1024
_CALL: Final = b"Allow: POST\r\n"
_LATER: Final = b"Retry-After: 5\r\n"
_NO_CHANNEL: Final = Silence()
_NO_BATCHES: Final = Rejection(messages.INVALID_REQUEST, "Batches exist only in revision 2025-03-26; send one message.")
_UNKNOWN_SESSION: Final = "There is no such session; send initialize to open one."


class LegacyHttpHandler:
    def __init__(
        self,
        kernel: Kernel,
        sessions: SessionTable,
        emit: Emit,
        clock: Callable[[], float],
        dropped: DroppedNotifications,
    ) -> None:
        self._kernel = kernel
        self._sessions = sessions
        self._emit = emit
        self._clock = clock
        self._dropped = dropped

    # -- the four things a client can do

    def post(self, exchange: HttpExchange, head: McpRequestHead, message: Message) -> None:
        """One message of a session, or the one that opens it."""
        if isinstance(message, Request) and not head.has_session and message.method == "initialize":
            self._initialize(exchange, head, message)
            return
        session = self._session_of(exchange, head, message.id if isinstance(message, Request) else None)
        if session is None:
            return
        if not isinstance(message, Request):
            self._take_notice(session, head, message)
            exchange.respond(202)
            return
        rejection = _admit(session, message)
        if rejection is not None:
            refuse(exchange, self._emit, 400, rejection)
            return
        responder = _LegacyResponder(exchange, session, self._dropped, head.accepts.stream, request=message)
        exchange.on_disconnect = responder.client_gone
        self._start(session, head, message, responder, responder)

    def post_batch(self, exchange: HttpExchange, head: McpRequestHead, body: bytes) -> None:
        """An array of messages, for the one revision that has them."""
        session = self._session_of(exchange, head, None)
        if session is None:
            return
        elements = read_batch(body) if session.version == versions.BATCHING_VERSION else _NO_BATCHES
        if isinstance(elements, Rejection):
            refuse(exchange, self._emit, 400, elements)
            return
        for element in elements:
            if not isinstance(element, Request | Rejection):
                self._take_notice(session, head, element)
        if not needs_answer(elements):
            exchange.respond(202)
            return
        channel = ResponseChannel(exchange, session, self._dropped, head.accepts.stream)
        exchange.on_disconnect = channel.client_gone
        batch = _Batch(channel)
        exchange.work = batch
        for element in elements:
            if isinstance(element, Request):
                element = _admit(session, element) or element
            if isinstance(element, Request):
                responder = _BatchElement(batch, session, element)
                self._start(session, head, element, channel, responder)
            elif isinstance(element, Rejection):
                batch.answers.put(batch.answers.expect(), encode_refusal(element))
        batch.answers.close()

    def get(self, exchange: HttpExchange, principal: Principal, path: str | None, *, may_stream: bool) -> None:
        """The standing stream of a session, or a lost one taken up again."""
        if "mcp-session-id" not in exchange.headers:
            self._refuse(exchange, 405, "Only a session has a stream to read; send POST requests.", _CALL)
            return
        if not may_stream:
            self._refuse(exchange, 406, "Accept text/event-stream.")
            return
        session = self._session(exchange, principal, path, None)
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

    def delete(self, exchange: HttpExchange, principal: Principal, path: str | None) -> None:
        """End a session and everything that runs in it."""
        if "mcp-session-id" not in exchange.headers:
            self._refuse(exchange, 405, "Only a session can be deleted; send POST requests.", _CALL)
            return
        session = self._session(exchange, principal, path, None)
        if session is not None:
            self._sessions.end(session)
            exchange.respond(200)

    # -- the handshake

    def _initialize(self, exchange: HttpExchange, head: McpRequestHead, request: Request) -> None:
        principal = head.principal
        offer = _read_offer(request)
        if isinstance(offer, Rejection):
            refuse(exchange, self._emit, 400, offer)
            return
        if not self._sessions.make_room(principal.key):
            self._refuse_for_now(exchange)
            return
        caller = Caller(
            principal=principal,
            peer=head.peer,
            era=LEGACY,
            version=versions.negotiate(offer.version),
            channel=_NO_CHANNEL,
            scope=head.scope,
            view=head.view,
            client=offer.client,
            capabilities=offer.capabilities,
            trace_parent=head.trace_parent,
        )
        exchange.on_disconnect = exchange.cancel

        def open_session() -> LegacySession | None:
            if not self._sessions.make_room(principal.key):
                self._refuse_for_now(exchange)
                return None
            return self._sessions.open(principal, head.path, caller.version, offer)

        responder = _Handshake(exchange, request, open_session)
        work = self._kernel.start(ExecutionContext(request.method, caller, self._clock()), request, responder)
        if not responder.is_done:
            exchange.work = work

    def _refuse_for_now(self, exchange: HttpExchange) -> None:
        self._refuse(exchange, 503, "There are as many busy sessions as there may be; try again.", _LATER)

    # -- what happens in a session

    def _session_of(self, exchange: HttpExchange, head: McpRequestHead, id_: bytes | None) -> LegacySession | None:
        """The session a POST names, or None after the refusal has been sent."""
        if head.session_id is not None:
            session = self._sessions.find(head.session_id, head.principal.key, head.path)
            if session is not None:
                return session
        return self._session(exchange, head.principal, head.path, id_)

    def _session(
        self, exchange: HttpExchange, principal: Principal, path: str | None, id_: bytes | None
    ) -> LegacySession | None:
        """The session this request names, or None after the refusal has been sent."""
        ids = exchange.headers.get("mcp-session-id", [])
        spoken = exchange.headers.get("mcp-protocol-version", [])
        if len(ids) != 1:
            self._refuse(exchange, 400, "Send initialize first, then its Mcp-Session-Id with every request.", id_=id_)
            return None
        if len(spoken) > 1 or (spoken and spoken[0] not in versions.LEGACY_VERSIONS):
            why = "Sessions speak one of " + ", ".join(versions.LEGACY_VERSIONS) + "."
            self._refuse(exchange, 400, why, id_=id_, kind=Kind.UNSUPPORTED_VERSION)
            return None
        session = self._sessions.find(ids[0], principal.key, path)
        if session is None:
            self._refuse(exchange, 404, _UNKNOWN_SESSION, id_=id_, kind=Kind.UNKNOWN_SESSION)
        return session

    def _start(
        self,
        session: LegacySession,
        head: McpRequestHead,
        request: Request,
        channel: ResponseChannel,
        responder: _SessionResponder,
    ) -> None:
        session.running[request.key] = responder
        responder.ctx = ctx = ExecutionContext(request.method, _caller(session, head, channel), self._clock())
        work = self._kernel.start(ctx, request, responder)
        if not responder.is_done:
            responder.started(work)

    def _take_notice(self, session: LegacySession, head: McpRequestHead, message: Message) -> None:
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
            self._kernel.notice(_caller(session, head, _NO_CHANNEL), message)

    def _refuse(
        self,
        exchange: HttpExchange,
        status: int,
        message: str,
        head: bytes = b"",
        *,
        id_: bytes | None = None,
        kind: Kind | None = None,
    ) -> None:
        data = None if kind is None else data_of(kind)
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message, id_, data), head)


def _read_offer(request: Request) -> legacy.InitializeParams | Rejection:
    if request.params is not None and len(request.params) > _MAX_INITIALIZE_BYTES:
        return Rejection(
            messages.INVALID_PARAMS, f"initialize takes at most {_MAX_INITIALIZE_BYTES} bytes.", request.id
        )
    return legacy.read_initialize(request)


def _admit(session: LegacySession, request: Request) -> Rejection | None:
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


def _caller(session: LegacySession, head: McpRequestHead, channel: CallerChannel) -> Caller:
    return Caller(
        principal=head.principal,
        peer=head.peer,
        era=LEGACY,
        version=session.version,
        channel=channel,
        scope=session.scope,
        view=session.view,
        session=session.handle,
        client=session.client,
        capabilities=session.capabilities,
        standing=session,
        trace_parent=head.trace_parent,
    )


class _Handshake:
    """Answers `initialize`; a session is opened when the reply is there."""

    __slots__ = ("_exchange", "_open_session", "_request", "is_done")

    def __init__(
        self, exchange: HttpExchange, request: Request, open_session: Callable[[], LegacySession | None]
    ) -> None:
        self._exchange = exchange
        self._request = request
        self._open_session = open_session
        self.is_done = False

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        exchange, request = self._exchange, self._request
        exchange.work = None
        if reply is None:
            why = exchange.ended_because
            exchange.respond(401 if why else 503, JSON_HEAD, cancelled_answer(request, why or STOPPING))
        elif reply.error is not None:
            exchange.respond(200, JSON_HEAD, answer(request, reply))
        elif exchange.is_connected:
            session = self._open_session()
            if session is not None:
                head = JSON_HEAD + b"Mcp-Session-Id: %b\r\n" % session.id.encode()
                exchange.respond(200, head, answer(request, reply))

    def broken(self) -> None:
        self._exchange.fail(self._request.id)


class _SessionResponder(Protocol):
    """Answers one request of a session, which may be stopped (`sessions.RunningWork`)."""

    ctx: ExecutionContext | None
    is_done: bool

    def started(self, work: Work) -> None:
        """What to cancel when the request is stopped."""

    def stop(self, reason: str) -> None: ...

    def done(self, reply: Reply | None) -> None: ...

    def broken(self) -> None: ...


class _LegacyResponder(ResponseChannel, kw_only=True, eq=False):
    """Answers the one request of a POST."""

    request: Request
    reason: str = STOPPING
    ctx: ExecutionContext | None = None
    is_done: bool = False

    def started(self, work: Work) -> None:
        self.exchange.work = work

    def stop(self, reason: str) -> None:
        self.reason = reason
        self.exchange.cancel()

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        exchange, request, ctx = self.exchange, self.request, self.ctx
        exchange.work = None
        del self.session.running[request.key]
        self.ctx = None  # it points back here: nothing should wait for the garbage collector
        if reply is not None:
            status = 200
            if ctx is not None and ctx.failure is not None:
                status = status_of(exchange, ctx.failure, status)
            if reply.result and self.stream is None:
                exchange.respond_result(request.id, reply.result)
            else:
                self.finish(answer(request, reply), status)
        elif self.reason == CANCELLED and self.stream is not None:
            self.end(200, b"")  # the caller asked for silence
        else:
            self.finish(cancelled_answer(request, exchange.ended_because or self.reason))

    def broken(self) -> None:
        self.fail(self.request.id)


class _Batch:
    """The requests of one array, which are answered together (`http_exchange.Work`)."""

    def __init__(self, channel: ResponseChannel) -> None:
        self._channel = channel
        self._is_cancelled = False
        self.answers = BatchAnswers(self._complete)
        self.running: set[_BatchElement] = set()

    def cancel(self) -> None:
        self._is_cancelled = True
        for element in tuple(self.running):
            element.cancel()

    def _complete(self, body: bytes | None) -> None:
        self._channel.exchange.work = None
        if self._is_cancelled:
            self._channel.end(503, b"")
        elif body is not None:
            self._channel.finish(body)
        else:
            self._channel.end(202, b"")

    def broken(self) -> None:
        self._channel.fail(None)


class _BatchElement:
    """Answers one request of a batch."""

    def __init__(self, batch: _Batch, session: LegacySession, request: Request) -> None:
        self._batch = batch
        self._place = batch.answers.expect()
        self._session = session
        self._request = request
        self._work: Work | None = None
        self.ctx: ExecutionContext | None = None
        self.is_done = False

    def started(self, work: Work) -> None:
        self._work = work
        self._batch.running.add(self)

    def stop(self, reason: str) -> None:
        self.cancel()

    def cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        self.ctx = None
        del self._session.running[self._request.key]
        self._batch.running.discard(self)
        self._batch.answers.put(self._place, None if reply is None else answer(self._request, reply))

    def broken(self) -> None:
        self._batch.broken()
