"""Modern requests over HTTP: one POST, one exchange, nothing kept.

The answer is one JSON body, unless something has to be said before it: then the exchange becomes an event stream that ends with the
answer. A client that goes away cancels its request at once (streamable HTTP: closing the stream is cancellation). Must not: open
sessions or look at headers of other eras.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit
from pactgate.core.failures import Reply, http_status
from pactgate.core.unanswered import CannotAsk
from pactgate.core.values import Caller
from pactgate.inbound.http_exchange import JSON_HEAD, EventStream, Exchange
from pactgate.inbound.replies import (
    MAX_WAITING_BYTES,
    STOPPING,
    Drops,
    Kernel,
    answer,
    ask_to_wait,
    cancelled_answer,
    refuse,
)
from pactgate.inbound.request_head import Accepts, Post
from pactgate.protocol import messages, modern
from pactgate.protocol.framing import encode_event
from pactgate.protocol.messages import Message, Notification, Rejection, Request
from pactgate.protocol.versions import MODERN

_NEEDS_STREAM: Final = "Accept text/event-stream: what is listened to comes as events."


class ModernFace:
    def __init__(self, kernel: Kernel, emit: Emit, clock: Callable[[], float], drops: Drops) -> None:
        self._kernel = kernel
        self._emit = emit
        self._clock = clock
        self._drops = drops

    async def post(self, exchange: Exchange, post: Post, message: Message) -> None:
        """Answer one message of a client that speaks the modern era."""
        if isinstance(message, Request):
            if message.method == modern.LISTEN and not post.accepts.stream:
                refuse(exchange, self._emit, 406, Rejection(messages.INVALID_REQUEST, _NEEDS_STREAM, message.id))
                return
            await self._request(exchange, post, message)
        elif isinstance(message, Notification):
            exchange.respond(202)  # over HTTP a modern client has nothing to notify us of
        else:
            refuse(
                exchange,
                self._emit,
                400,
                Rejection(messages.INVALID_REQUEST, "Send requests; answers are not expected."),
            )

    def start(self, exchange: Exchange, post: Post, request: Request) -> None:
        """Begin a request; it is answered when its reply is there."""
        call = _Started(exchange, self._drops, post.accepts, request)
        ctx = self._open(exchange, post, request, call)
        if ctx is not None:
            call.ctx = ctx
            exchange.on_disconnect = exchange.cancel
            work = self._kernel.start(ctx, request, call.done)
            if not call.is_done:
                exchange.work = work

    async def _request(self, exchange: Exchange, post: Post, request: Request) -> None:
        channel = _Channel(exchange, self._drops, post.accepts)
        ctx = self._open(exchange, post, request, channel)
        if ctx is None:
            return
        exchange.on_disconnect = exchange.cancel
        try:
            reply = await self._kernel.handle(ctx, request)
        except asyncio.CancelledError:
            channel.finish(503, cancelled_answer(request, STOPPING))
            raise
        ask_to_wait(exchange, ctx.failure)
        channel.answer(request, reply)

    def _open(self, exchange: Exchange, post: Post, request: Request, channel: _Channel) -> ExecutionContext | None:
        """The context of a request, or None after it has been refused."""
        route = modern.classify(request, exchange.headers, is_open=post.scope is not None)
        if isinstance(route, Rejection):
            refuse(exchange, self._emit, http_status(route.code), route)
            return None
        # In the order of the fields: by their names it would cost three times as much.
        caller = Caller(
            post.admitted.subject,
            MODERN,
            route.version,
            channel,
            post.admitted.roles,
            post.scope,
            None,
            route.client,
            route.capabilities,
            exchange.headers,
            None,
            route.log_level,
        )
        return ExecutionContext(request.method, caller, self._clock())


class _Channel(CannotAsk):
    """The way back of one exchange. Turns it into a stream when something is said before the answer."""

    __slots__ = ("_accepts", "_drops", "_exchange", "_stream")

    def __init__(self, exchange: Exchange, drops: Drops, accepts: Accepts) -> None:
        self._exchange = exchange
        self._drops = drops
        self._accepts = accepts
        self._stream: EventStream | None = None

    def notify(self, method: str, params: bytes) -> None:
        if not self._accepts.stream:
            self._drops.count += 1
            return
        stream = self._stream
        if stream is None:
            stream = self._stream = self._exchange.open_stream()
        is_deliverable = stream.unsent_bytes <= MAX_WAITING_BYTES
        if not (is_deliverable and stream.write(encode_event(messages.encode_notification(method, params)))):
            self._drops.count += 1

    def answer(self, request: Request, reply: Reply) -> None:
        self.finish(200 if reply.error is None else http_status(reply.error.code), answer(request, reply))

    def finish(self, status: int, body: bytes) -> None:
        if self._stream is None:
            if self._accepts.json or status != 200:
                self._exchange.respond(status, JSON_HEAD, body)
                return
            self._stream = self._exchange.open_stream()
        self._stream.write(encode_event(body))
        self._stream.close()


class _Started(_Channel):
    """A request on its way to its answer."""

    __slots__ = ("_request", "ctx", "is_done")

    ctx: ExecutionContext

    def __init__(self, exchange: Exchange, drops: Drops, accepts: Accepts, request: Request) -> None:
        self._exchange = exchange  # what the channel sets, without a call for it: every request pays it
        self._drops = drops
        self._accepts = accepts
        self._stream = None
        self._request = request
        self.is_done = False

    def done(self, reply: Reply | None) -> None:
        self.is_done = True
        exchange, failure = self._exchange, self.ctx.failure
        exchange.work = None
        del self.ctx  # which points back here: nothing should wait for the garbage collector
        if reply is None:
            self.finish(503, cancelled_answer(self._request, STOPPING))
        else:
            if failure is not None:
                ask_to_wait(exchange, failure)
            if self._stream is None and reply.result and self._accepts.json:
                exchange.respond_result(self._request.id, reply.result)
            else:
                self.answer(self._request, reply)
