"""Modern requests over HTTP: one POST, one exchange, nothing kept.

The answer is one JSON body, unless something has to be said before it: then the exchange becomes an event stream that ends with the
answer. A client that goes away cancels its request at once (streamable HTTP: closing the stream is cancellation). Must not: open
sessions or look at headers of other eras.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pactgate.core.asking import CannotAsk
from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import Reply, http_status
from pactgate.core.model import Caller
from pactgate.faces.answering import (
    MAX_WAITING_BYTES,
    STOPPING,
    Drops,
    Kernel,
    answer,
    ask_to_wait,
    cancelled_answer,
    refuse,
)
from pactgate.faces.exchange import JSON_HEAD, EventStream, Exchange
from pactgate.faces.guard import Admitted
from pactgate.protocol import messages, modern
from pactgate.protocol.framing import encode_event
from pactgate.protocol.messages import Message, Notification, Rejection, Request
from pactgate.protocol.versions import Era

_LISTEN: Final = "subscriptions/listen"
_NEEDS_STREAM: Final = "Accept text/event-stream: what is listened to comes as events."


class ModernFace:
    def __init__(self, kernel: Kernel, emit: Emit, clock: Callable[[], float], drops: Drops) -> None:
        self._kernel = kernel
        self._emit = emit
        self._clock = clock
        self._drops = drops

    async def post(
        self,
        exchange: Exchange,
        admitted: Admitted,
        scope: str | None,
        message: Message,
        *,
        may_stream: bool,
        may_json: bool,
    ) -> None:
        """Answer one message of a client that speaks the modern era."""
        if isinstance(message, Request):
            channel = _Channel(exchange, self._drops, may_stream=may_stream, may_json=may_json)
            if message.method == _LISTEN and not may_stream:
                refuse(exchange, self._emit, 406, Rejection(messages.INVALID_REQUEST, _NEEDS_STREAM, message.id))
                return
            await self._request(exchange, admitted, scope, message, channel)
        elif isinstance(message, Notification):
            exchange.respond(202)  # over HTTP a modern client has nothing to notify us of
        else:
            refuse(
                exchange,
                self._emit,
                400,
                Rejection(messages.INVALID_REQUEST, "Send requests; answers are not expected."),
            )

    def start(
        self,
        exchange: Exchange,
        admitted: Admitted,
        scope: str | None,
        request: Request,
        may_stream: bool,
        may_json: bool,
    ) -> None:
        """Begin a request; it is answered when its reply is there."""
        channel = _Channel(exchange, self._drops, may_stream=may_stream, may_json=may_json)
        ctx = self._open(exchange, admitted, scope, request, channel)
        if ctx is not None:
            call = _Call(exchange, request, ctx, channel)
            exchange.on_disconnect = exchange.cancel
            work = self._kernel.start(ctx, request, call.done)
            if not call.is_done:
                exchange.work = work

    async def _request(
        self, exchange: Exchange, admitted: Admitted, scope: str | None, request: Request, channel: _Channel
    ) -> None:
        ctx = self._open(exchange, admitted, scope, request, channel)
        if ctx is None:
            return
        exchange.on_disconnect = exchange.cancel
        try:
            reply = await self._kernel.handle(ctx, request)
        except asyncio.CancelledError:
            channel.finish(503, cancelled_answer(request, STOPPING))
            raise
        _finish(exchange, request, ctx, channel, reply)

    def _open(
        self, exchange: Exchange, admitted: Admitted, scope: str | None, request: Request, channel: _Channel
    ) -> ExecutionContext | None:
        """The context of a request, or None after it has been refused."""
        route = modern.classify(request, exchange.headers, is_open=scope is not None)
        if isinstance(route, Rejection):
            refuse(exchange, self._emit, http_status(route.code), route)
            return None
        caller = Caller(
            subject=admitted.subject,
            era=Era.MODERN,
            version=route.version,
            channel=channel,
            roles=admitted.roles,
            scope=scope,
            client=route.client,
            capabilities=route.capabilities,
            headers=exchange.headers,
            log_level=route.log_level,
        )
        return ExecutionContext(request.method, caller, self._clock())


def _finish(exchange: Exchange, request: Request, ctx: ExecutionContext, channel: _Channel, reply: Reply) -> None:
    ask_to_wait(exchange, ctx.failure)
    channel.finish(200 if reply.error is None else http_status(reply.error.code), answer(request, reply))


class _Call:
    """A request on its way to its answer."""

    __slots__ = ("_channel", "_ctx", "_exchange", "_request", "is_done")

    def __init__(self, exchange: Exchange, request: Request, ctx: ExecutionContext, channel: _Channel) -> None:
        self._exchange = exchange
        self._request = request
        self._ctx = ctx
        self._channel = channel
        self.is_done = False

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        self._exchange.work = None
        if reply is None:
            self._channel.finish(503, cancelled_answer(self._request, STOPPING))
        else:
            _finish(self._exchange, self._request, self._ctx, self._channel, reply)


class _Channel(CannotAsk):
    """The way back of one exchange. Turns it into a stream when something is said before the answer."""

    __slots__ = ("_drops", "_exchange", "_may_json", "_may_stream", "_stream")

    def __init__(self, exchange: Exchange, drops: Drops, *, may_stream: bool, may_json: bool) -> None:
        self._exchange = exchange
        self._drops = drops
        self._may_stream = may_stream
        self._may_json = may_json
        self._stream: EventStream | None = None

    def notify(self, method: str, params: bytes) -> None:
        if not self._may_stream:
            self._drops.count += 1
            return
        stream = self._stream
        if stream is None:
            stream = self._stream = self._exchange.open_stream()
        is_deliverable = stream.unsent_bytes <= MAX_WAITING_BYTES
        if not (is_deliverable and stream.write(encode_event(messages.encode_notification(method, params)))):
            self._drops.count += 1

    def finish(self, status: int, body: bytes) -> None:
        if self._stream is None:
            if self._may_json or status != 200:
                self._exchange.respond(status, JSON_HEAD, body)
                return
            self._stream = self._exchange.open_stream()
        self._stream.write(encode_event(body))
        self._stream.close()
