"""Modern requests over HTTP: one POST, one exchange, nothing kept.

The answer is one JSON body, unless something has to be said before it: then the exchange becomes an event stream that ends with the
answer. A client that goes away cancels its request at once (streamable HTTP: closing the stream is cancellation). Must not: open
sessions or look at headers of other eras.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import Reply, http_status
from pactgate.core.unanswered import CannotAsk
from pactgate.core.values import Caller
from pactgate.inbound.http_exchange import JSON_HEAD, EventStream, HttpExchange
from pactgate.inbound.replies import (
    MAX_WAITING_BYTES,
    STOPPING,
    DroppedNotifications,
    Kernel,
    answer,
    cancelled_answer,
    refuse,
    status_of,
)
from pactgate.inbound.request_head import Accepts, McpRequestHead
from pactgate.protocol import messages, modern
from pactgate.protocol.framing import encode_event
from pactgate.protocol.messages import Message, Notification, Rejection, Request
from pactgate.protocol.versions import MODERN

_NEEDS_STREAM: Final = "Accept text/event-stream: what is listened to comes as events."


class ModernHttpHandler:
    def __init__(self, kernel: Kernel, emit: Emit, clock: Callable[[], float], dropped: DroppedNotifications) -> None:
        self._kernel = kernel
        self._emit = emit
        self._clock = clock
        self._dropped = dropped

    def post(self, exchange: HttpExchange, head: McpRequestHead, message: Message) -> None:
        """Answer one message of a client that speaks the modern era."""
        if isinstance(message, Request):
            if message.method == modern.LISTEN and not head.accepts.stream:
                refuse(exchange, self._emit, 406, Rejection(messages.INVALID_REQUEST, _NEEDS_STREAM, message.id))
            else:
                self._request(exchange, head, message)
        elif isinstance(message, Notification):
            exchange.respond(202)  # over HTTP a modern client has nothing to notify us of
        else:
            rejection = Rejection(messages.INVALID_REQUEST, "Send requests; answers are not expected.")
            refuse(exchange, self._emit, 400, rejection)

    def _request(self, exchange: HttpExchange, head: McpRequestHead, request: Request) -> None:
        route = modern.classify(request, exchange.headers, is_open=head.scope is not None)
        if isinstance(route, Rejection):
            refuse(exchange, self._emit, http_status(route.code), route)
            return
        responder = _ModernResponder(exchange, self._dropped, head.accepts, request)
        caller = Caller(
            principal=head.principal,
            peer=head.peer,
            era=MODERN,
            version=route.version,
            channel=responder,
            scope=head.scope,
            view=head.view,
            client=route.client,
            capabilities=route.capabilities,
            headers=exchange.headers,
            trace_parent=head.trace_parent,
            log_level=route.log_level,
        )
        responder.ctx = ctx = ExecutionContext(request.method, caller, self._clock())
        exchange.on_disconnect = exchange.cancel
        work = self._kernel.start(ctx, request, responder)
        if not responder.is_done:
            exchange.work = work


class _ModernResponder(CannotAsk, Struct, eq=False):
    """The way back of one exchange. Turns it into a stream when something is said before the answer."""

    _exchange: HttpExchange
    _dropped: DroppedNotifications
    _accepts: Accepts
    _request: Request
    _stream: EventStream | None = None
    ctx: ExecutionContext | None = None
    is_done: bool = False

    def notify(self, method: str, params: bytes) -> None:
        if not self._accepts.stream:
            self._dropped.count += 1
            return
        stream = self._stream
        if stream is None:
            stream = self._stream = self._exchange.open_stream()
        is_deliverable = stream.unsent_bytes <= MAX_WAITING_BYTES
        if not (is_deliverable and stream.write(encode_event(messages.encode_notification(method, params)))):
            self._dropped.count += 1

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        exchange, request, ctx = self._exchange, self._request, self.ctx
        exchange.work = None
        self.ctx = None  # it points back here: nothing should wait for the garbage collector
        if reply is None:
            why = exchange.ended_because
            self._finish(401 if why else 503, cancelled_answer(request, why or STOPPING))
            return
        status = 200 if reply.error is None else http_status(reply.error.code)
        if ctx is not None and ctx.failure is not None:
            status = status_of(exchange, ctx.failure, status)
        if self._stream is None and reply.result and self._accepts.json:
            exchange.respond_result(request.id, reply.result)
        else:
            self._finish(status, answer(request, reply))

    def broken(self) -> None:
        self._exchange.fail(self._request.id)

    def _finish(self, status: int, body: bytes) -> None:
        if self._stream is None:
            if self._accepts.json or status != 200:
                self._exchange.respond(status, JSON_HEAD, body)
                return
            self._stream = self._exchange.open_stream()
        self._stream.write(encode_event(body))
        self._stream.close()
