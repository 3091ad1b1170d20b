"""An MCP client over any `Channel`: its own id space, answers matched once, progress relayed, cancellation told.

Knows both eras' way of stamping a request, and nothing of transports, names or policy. What the upstream answers is
returned as the bytes it wrote; what it asks goes to the caller of the request it belongs to (`server_request_router`). Must not:
repeat a request (D6), answer for a caller, or let anything an upstream sends raise into the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from pactgate.core.events import Emit, ServerHung, UpstreamNoise
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.masking import MAX_RAW_BYTES
from pactgate.protocol import messages, modern
from pactgate.protocol.correlation import Correlation
from pactgate.protocol.era_bridge import COMPLETED
from pactgate.protocol.messages import (
    ErrorReply,
    InvalidAnswer,
    Message,
    Notification,
    Rejection,
    Request,
    Response,
    encode_json,
)
from pactgate.protocol.own_meta import decode_without_own_meta
from pactgate.protocol.versions import Era
from pactgate.upstreams.broken_answers import find_request
from pactgate.upstreams.channel import Channel, Outgoing, OutputLog
from pactgate.upstreams.liveness import ANSWER_S, LivenessCheck, RequestLimit, hung_failure
from pactgate.upstreams.notification_router import (
    LOG_MESSAGE,
    NotificationRouter,
    OnNotice,
    OnProgress,
    attributed,
    member_id,
)
from pactgate.upstreams.pending import PendingRequest
from pactgate.upstreams.server_request_router import Asker, ServerRequestRouter

_TELL_TIMEOUT_S: Final = 2.0
_MAX_BACKGROUND: Final = 64
_NEVER_RAN: Final = frozenset({messages.PARSE_ERROR, messages.INVALID_REQUEST, messages.METHOD_NOT_FOUND})


class UpstreamReplyError(GatewayFailure):
    """The upstream answered with a JSON-RPC error. Its code, message and data are kept as they came; large data is left out."""

    def __init__(self, server: str, operation: str, reply: ErrorReply, *, is_ours: bool = False) -> None:
        """`is_ours` says that the server is part of the gateway, so that everybody may read what it says."""
        said: dict[str, Any] = {"code": reply.code, "message": reply.message}
        if reply.data is not None and len(reply.data) > MAX_RAW_BYTES:
            said["dataBytes"] = len(reply.data)
            reply = ErrorReply(reply.key, reply.code, reply.message)
        elif reply.data is not None:
            said["data"] = Raw(reply.data)
        super().__init__(
            Kind.UPSTREAM_ERROR,
            f"{server} refused {operation}: {reply.message} ({reply.code})",
            server=server,
            operation=operation,
            verdict=Verdict.DID_NOT_RUN if reply.code in _NEVER_RAN else None,
            details={"upstream": said},
            public=None if is_ours else f"{server} refused {operation} ({reply.code})",
        )
        self.reply = reply


class Peer:
    """One conversation with one server. Made before the era is known; `settle` fixes how requests are stamped."""

    def __init__(
        self,
        server: str,
        channel: Channel,
        emit: Emit,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        *,
        is_ours: bool = False,
        output: OutputLog | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        """`answer_s` is how long the server may take to answer a probe."""
        self.server = server
        self.is_ours = is_ours
        """Whether the server is a part of the gateway, which may set the gateway's own members of `_meta`."""
        self.channel = channel
        self.client_info = client_info
        self.capabilities = capabilities or {}
        """What a legacy server is told at the handshake that can be asked of us. A modern one is told with each request."""
        self.era: Era | None = None
        self.is_open = True
        self.on_notice: OnNotice | None = None
        self._output = output
        self._emit = emit
        self._barrier = FaultBarrier(emit)
        self._pending: Correlation[PendingRequest] = Correlation()
        self._envelope: dict[str, Raw] = {}
        self._bare_meta: Raw | None = None
        self._loop = asyncio.get_running_loop()
        self._heard = NotificationRouter(self._end_listen, self._loop.time)
        self._background: set[asyncio.Task[None]] = set()
        self._asked = ServerRequestRouter(self._reply, self._reply_later)
        self._ended: asyncio.Future[GatewayFailure] = self._loop.create_future()
        self.received_count = 0
        self._liveness = LivenessCheck(self, self._loop, answer_s)

    async def open(self) -> None:
        await self.channel.open(self)

    def settle(self, era: Era, version: str) -> None:
        """From here on requests are stamped for this era and version."""
        self.era = era
        self.channel.settle(era, version)
        self._envelope = {} if era is Era.LEGACY else modern.envelope(version, self.client_info, self.capabilities)
        self._bare_meta = Raw(encode_json(self._envelope)) if self._envelope else None

    @property
    def unattributed_logs(self) -> int:
        return self._heard.unattributed_logs

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return not len(self._pending)

    @property
    def open_count(self) -> int:
        """Requests without an answer."""
        return len(self._pending)

    @property
    def sent_count(self) -> int:
        """Requests sent so far."""
        return self._pending.next_id - 1

    async def ended(self) -> GatewayFailure:
        """Waits until the channel has ended by itself, and says why."""
        return await asyncio.shield(self._ended)

    async def request(
        self,
        method: str,
        members: Mapping[str, Raw],
        *,
        meta: Mapping[str, Raw] | None = None,
        name: str | None = None,
        cancellable: bool = True,
        on_change: OnNotice | None = None,
    ) -> bytes:
        """As `send`, for a request without a caller: the result as the upstream wrote it."""
        response = await self.send(method, members, meta=meta, name=name, cancellable=cancellable, on_change=on_change)
        return response.result

    async def send(
        self,
        method: str,
        members: Mapping[str, Raw],
        *,
        meta: Mapping[str, Raw] | None = None,
        on_progress: OnProgress | None = None,
        name: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        cancellable: bool = True,
        owner: str | None = None,
        on_log: OnNotice | None = None,
        on_change: OnNotice | None = None,
        asker: Asker | None = None,
        capabilities: bytes | None = None,
        limit: RequestLimit | None = None,
    ) -> Response:
        """Send one request, once, and return the answer.

        `members` are the params without `_meta`; `meta` are foreign `_meta` members to pass on. `asker` answers what a legacy upstream
        asks meanwhile; `capabilities` is the encoded object a modern one is told of the caller. Raises `UpstreamReplyError` or a
        transport failure. Cancelling tells the upstream, unless `cancellable` is False (`initialize` must not be cancelled).
        `on_log` gets the log messages that are known to belong to this request, whose caller `owner` names; `on_change` is for a
        `subscriptions/listen`, and gets what is tagged with its id. A request that is cancelled at its `limit` starts a liveness check.
        """
        if not self.is_open:
            raise self._ended.result().shared(verdict=Verdict.DID_NOT_RUN, operation=method)
        pending = PendingRequest(loop=self._loop)
        pending.method, pending.limit = method, limit
        id_ = self._pending.open(pending)
        heard = self._heard
        if owner != heard.owner and owner is not None:
            heard.note_owner(owner)
        if on_progress is not None or on_log is not None or on_change is not None:
            heard.listen(id_, on_progress, on_log, on_change)
        if asker is not None:
            self._asked.begin(id_, asker)
        try:
            frame = self._encode(method, id_, members, meta, on_progress is not None, capabilities)
            attempts = await self.channel.send(Outgoing(frame, method, id_, name, headers))
            if self.channel.answers_in_send and not pending.done():
                raise self._no_answer(method)
            response = await pending
            response.attempts = attempts or 1
            return response
        except asyncio.CancelledError:
            self._give_up(id_, pending, is_told=cancellable)
            raise
        except GatewayFailure as failure:
            pending.abandon()
            self._pending.close(id_)
            failure.server = failure.server or self.server
            failure.operation = failure.operation or method
            raise
        finally:
            if heard.has_listeners:
                heard.forget(id_)
            if asker is not None:
                self._asked.given_up(id_)

    async def notify(self, method: str, members: Mapping[str, Raw] | None = None) -> None:
        params = encode_json(members) if members else None
        await self.channel.send(Outgoing(messages.encode_notification(method, params), method))

    def tell(self, method: str) -> None:
        """Send a notification in its own time, or never: a courtesy."""
        self._send_later(Outgoing(messages.encode_notification(method), method))

    async def close(self) -> None:
        """End the conversation: waiting requests fail, background sends end, the channel is released."""
        self._end(
            GatewayFailure(Kind.CONNECTION_LOST, f"the connection to {self.server} was closed", server=self.server)
        )
        await self._liveness.close()
        background = list(self._background)
        for task in background:
            task.cancel()
        await self._asked.close()
        await self.channel.close()
        if background:
            await asyncio.wait(background)

    # Whether the server still runs (`liveness.ProbedPeer`).

    @property
    def is_unanswered(self) -> bool:
        """Whether the server left a request and then a probe unanswered, so far."""
        return self._liveness.is_unanswered

    def doubt(self, id_: int | None = None, left_s: float = 0.0) -> None:
        """A request got no answer within its time. Checks whether the server hangs, where one connection serves all requests.

        Over Streamable HTTP each request has an exchange of its own, which ends with it: a new connection would change nothing.
        """
        if self.is_open and not self.channel.answers_in_send:
            self._liveness.doubt(self._pending.next_id if id_ is None else id_, left_s)

    async def probe(self) -> bytes:
        method = "server/discover" if self.era is Era.MODERN else "ping"
        return await self.request(method, {}, cancellable=False)

    def is_busy_before(self, id_: int) -> bool:
        return any(
            isinstance(key, int) and key < id_ and waiting.limit is not None and (waiting.limit.left_s() or 0) > 0
            for key, waiting in self._pending.entries()
        )

    async def end_hung(self) -> None:
        self._emit(ServerHung(self.server, self._liveness.answer_s * 1000))
        self._end(hung_failure(self.server, self._liveness.answer_s))
        await self.close()

    # What the channel brings (`channel.Receiver`).

    def receive(self, frame: bytes, for_request: int | None = None) -> bool:
        self.received_count += 1
        try:
            decode = messages.decode_from_upstream if self.is_ours else decode_without_own_meta
            message = decode(frame)
            if isinstance(message, Response):
                pending = self._take(message.key)
                if pending is not None:
                    pending.fulfil(message)
                return True
            return self._receive_other(message, frame, for_request)
        except Exception as fault:  # noqa: BLE001 - a fault stays with its message; the reader goes on with the next one
            self._barrier.report("message of a server", fault)
            return False

    def _receive_other(
        self, message: Message | InvalidAnswer | Rejection, frame: bytes, for_request: int | None
    ) -> bool:
        match message:
            case ErrorReply():
                self._refusal(message)
            case InvalidAnswer():
                self._refuse_answer(message)
            case Notification():
                self._barrier.run("notification of a server", self._notice, message, for_request)
            case Request():
                self._barrier.run("request of a server", self._answer_server, message, for_request)
            case Rejection():
                self._noise(f"invalid message: {message.message}", frame)
                self._blame(frame)
        return isinstance(message, ErrorReply | InvalidAnswer)

    def lost(self, failure: GatewayFailure) -> None:
        self._end(failure)

    # Inside.

    def _encode(
        self,
        method: str,
        id_: int,
        members: Mapping[str, Raw],
        meta: Mapping[str, Raw] | None,
        wants_progress: bool,
        capabilities: bytes | None,
    ) -> bytes:
        """One request, with what this era says in `_meta`. The id is the progress token too."""
        params: Mapping[str, Any] = members
        if meta or wants_progress or capabilities is not None:
            stamped: dict[str, Any] = {**(meta or {}), **self._envelope}
            if wants_progress:
                stamped["progressToken"] = id_
            if capabilities is not None and self._envelope:
                stamped[modern.CAPABILITIES_KEY] = Raw(capabilities)
            params = {**members, "_meta": stamped}
        elif self._bare_meta is not None:
            params = {**members, "_meta": self._bare_meta}
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
        if params:
            request["params"] = params
        return encode_json(request)

    def _give_up(self, id_: int, pending: PendingRequest, *, is_told: bool) -> None:
        """The caller waits no longer."""
        pending.abandon()
        self._pending.abandon(id_)
        if is_told and not self.channel.closing_cancels:
            self._tell_cancelled(id_)
        left_s = pending.limit.left_s() if pending.limit is not None else None
        if left_s is not None:
            self.doubt(id_, left_s)

    def _take(self, key: str | int) -> PendingRequest | None:
        """Whoever waits for this answer, once; nothing more is relayed or asked for a request that has been answered."""
        waiting = self._pending.close(key)
        if waiting is None:
            return None
        if self._heard.has_listeners:
            self._heard.forget(key)
        if self._asked.calls or self._asked.strays:
            self._asked.answered(key)
        return waiting

    def _refusal(self, reply: ErrorReply) -> None:
        if reply.key is None:
            self._noise(f"error without an id: {reply.message} ({reply.code})", b"")
            return
        waiting = self._take(reply.key)
        if waiting is not None:
            waiting.refuse(UpstreamReplyError(self.server, waiting.method, reply, is_ours=self.is_ours))

    def _blame(self, frame: bytes) -> None:
        """Fail the request whose broken answer this is: the one it names, or the only one that waits."""
        key = find_request(frame, [key for key, one in self._pending.entries() if one.method != modern.LISTEN])
        pending = self._take(key) if key is not None else None
        if pending is not None:
            pending.refuse(self._no_answer(pending.method))

    def _refuse_answer(self, answer: InvalidAnswer) -> None:
        waiting = self._take(answer.key)
        if waiting is not None:
            why = f"{self.server} answered {waiting.method} with a message that breaks the protocol: {answer.why}"
            waiting.refuse(GatewayFailure(Kind.MALFORMED_RESULT, why, server=self.server, operation=waiting.method))

    def _end_listen(self, key: str | int) -> None:
        """The server has ended a subscription."""
        waiting = self._take(key)
        if waiting is not None:
            waiting.fulfil(Response(key, b"{}"))

    def _notice(self, notification: Notification, for_request: int | None) -> None:
        if self.is_ours and notification.method == LOG_MESSAGE:
            notification, for_request = attributed(notification)
        if notification.method == LOG_MESSAGE and self._output is not None:
            self._output.said(self.server, notification.params or b"{}")
        if self._heard.take(notification, for_request, len(self._pending)):
            return
        if notification.method == "notifications/cancelled":
            self._withdraw(notification)
        elif notification.method == COMPLETED:
            self._asked.completed(notification.params or b"{}")
        elif self.on_notice is not None:
            self.on_notice(notification)

    def _answer_server(self, request: Request, for_request: int | None) -> None:
        reply = self._asked.take(request, for_request)
        if reply is not None:
            self._reply_later(reply)

    def _withdraw(self, notification: Notification) -> None:
        key = member_id(notification, "requestId")
        if key is not None:
            self._asked.withdraw(key)

    async def _reply(self, text: bytes) -> None:
        await self._send_quietly(Outgoing(text))

    def _reply_later(self, text: bytes) -> None:
        self._send_later(Outgoing(text))

    def _tell_cancelled(self, id_: int) -> None:
        params = {"requestId": id_, "reason": "the client gave up"}
        self._send_later(Outgoing(messages.encode_notification("notifications/cancelled", encode_json(params))))

    def _send_later(self, frame: Outgoing) -> None:
        if len(self._background) >= _MAX_BACKGROUND or self._ended.done():
            return
        task = self._loop.create_task(self._send_quietly(frame))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _send_quietly(self, frame: Outgoing) -> None:
        """A courtesy the upstream may miss: bounded, and its failure shows on the connection itself."""
        try:
            async with asyncio.timeout(_TELL_TIMEOUT_S):
                await self.channel.send(frame)
        except (GatewayFailure, TimeoutError) as problem:
            self._noise(f"could not be told: {problem}", b"")

    def _end(self, failure: GatewayFailure) -> None:
        self.is_open = False
        if not self._ended.done():
            self._ended.set_result(failure)
        lost = self._pending.drain()
        # Only a request that was alone with the server knows that the server's last output is about it.
        is_alone = sum(waiting.method != modern.LISTEN for waiting in lost) == 1
        for waiting in lost:
            again = failure.again if is_alone else failure.shared
            waiting.refuse(again(operation=waiting.method))

    def _no_answer(self, method: str) -> GatewayFailure:
        return GatewayFailure(
            Kind.INVALID_FRAME,
            f"{self.server} answered {method} with something that is not its answer",
            server=self.server,
        )

    def _noise(self, what: str, frame: bytes) -> None:
        self._emit(UpstreamNoise(self.server, what, frame[:200].decode("utf-8", "replace")))
