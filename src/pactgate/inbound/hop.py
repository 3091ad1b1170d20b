"""Requests that another replica owns: handed over to it, and taken from it.

What is owned is a legacy session, a suspended call, a result in pages, or a task; its id names the owner. `HopSender` finds out whose a
request is and relays the owner's answer, a stream as it comes. `HopReceiver` serves requests of other replicas on an address of its own.
A request makes one hop at most. Must not: take anything without a signature, or hand over credentials.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from itertools import count
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind, Reply, Verdict, http_status
from pactgate.core.principal import Principal
from pactgate.core.values import Responder
from pactgate.inbound.error_data import encode_refusal
from pactgate.inbound.hop_message import HopClaims, HopError, HopVerifier, encode_hop
from pactgate.inbound.http_exchange import JSON_HEAD, EventStream, HttpExchange
from pactgate.inbound.http_grammar import EncodedClaims
from pactgate.inbound.replies import MAX_WAITING_BYTES, STOPPING, body_rejection, refuse
from pactgate.policy.result_pages import PREFIX, read_uri
from pactgate.policy.state_tokens import owner_of_state
from pactgate.protocol import messages
from pactgate.protocol.framing import encode_event
from pactgate.protocol.messages import Rejection
from pactgate.protocol.unread import id_of

HOP_PATH: Final = "/internal/hop"
_LEFT_OUT: Final = frozenset(
    {"authorization", "connection", "content-length", "cookie", "host", "proxy-authorization", "transfer-encoding"}
)
_PASSED_BACK: Final = (b"content-type", b"allow", b"retry-after", b"cache-control")
_STATE: Final = b"requestState"
_PAGES: Final = PREFIX.encode()
_TASK: Final = b"taskId"
_CALL: Final = ["tools/call"]
_DRAINING_S: Final = 0.05
_EVENT_END: Final = b"\n\n"
_MISDIRECTED: Final = 421
"""The address has another replica by now, or the two do not agree on key or time: the request was not served."""


class HopStream(Protocol):
    """The body of a streamed answer."""

    async def read(self) -> bytes: ...

    def close(self) -> None: ...


class HopResponse(Protocol):
    """The answer of another replica: a body, or a stream."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[bytes, bytes]: ...

    @property
    def body(self) -> bytes: ...

    @property
    def stream(self) -> HopStream | None: ...


class HopTransport(Protocol):
    """Sends a signed message to the address of a replica. Raises GatewayFailure, whose verdict says whether it can have arrived."""

    def __call__(self, address: str, message: bytes) -> Awaitable[HopResponse]: ...


class RunningHop(Protocol):
    """A coroutine on its way, which is a task only while it really waits (`pipeline/running_request.py`)."""

    def step(self) -> None:
        """Begin. The coroutine may have ended then."""

    def cancel(self) -> None: ...


Drive = Callable[[Responder, Coroutine[Any, Any, None]], RunningHop]
"""The responder is told None at the end, or a reply in place of an exception."""


class _Params(Struct, frozen=True, gc=False):
    requestState: str = ""  # noqa: N815 - the wire's spelling
    uri: str = ""
    taskId: str = ""  # noqa: N815 - the wire's spelling


class _Message(Struct, gc=False):
    params: _Params = _Params()


_message: Final = msgspec.json.Decoder(_Message)


class HopSender:
    """`owner_of` reads the owner out of an id; `addresses` gives where the other replicas are now."""

    def __init__(
        self,
        *,
        replica: str,
        key: bytes,
        owner_of: Callable[[str], str | None],
        addresses: Callable[[], Mapping[str, str]],
        send: HopTransport,
        drive: Drive,
        has_session: Callable[[str], bool],
        emit: Emit,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._replica = replica
        self._key = key
        self._owner_of = owner_of
        self._addresses = addresses
        self._send = send
        self._has_session = has_session
        self._drive = drive
        self._emit = emit
        self._wall = wall
        self._serials = count()
        self.sent = 0

    def forward(self, exchange: HttpExchange, principal: Principal, body: bytes) -> bool:
        """Hand a request over to the replica that owns what it is about. False where it is to be served here."""
        headers = exchange.head.headers
        ids = headers.get("mcp-session-id")
        if ids is None:
            # A tool call can name an owner in one place only. Searching the body for the others takes 0.5 us, and a head that says
            # something else than the body is refused here.
            if _STATE not in body and (
                headers.get("mcp-method") == _CALL or (_PAGES not in body and _TASK not in body)
            ):
                return False
            owner = self._owner_in(body)
        elif len(ids) != 1 or self._has_session(ids[0]):
            return False
        else:
            owner = self._owner_of(ids[0])
        if owner is None or owner == self._replica:
            return False
        address = self._addresses().get(owner)
        if address is None:
            return False  # whoever serves it here says that it is gone
        self.sent += 1
        known = exchange.head.forwarded
        if known is None or known.owner != owner or known.principal is not principal:
            known = exchange.head.forwarded = self._encode(exchange, principal, owner)
        relay = _Relay(exchange, self._emit, body)
        message = encode_hop(self._key, known.data, body, sent_at=self._wall(), serial=next(self._serials))
        running = self._drive(relay, relay.run(self._send, address, message))
        exchange.work = running
        exchange.on_disconnect = running.cancel
        running.step()
        return True

    def _encode(self, exchange: HttpExchange, principal: Principal, owner: str) -> EncodedClaims:
        claims = HopClaims(
            sender=self._replica,
            receiver=owner,
            method=exchange.method,
            path=exchange.path,
            headers={name: values for name, values in exchange.headers.items() if name not in _LEFT_OUT},
            principal=principal,
            peer=exchange.peer,
        )
        return EncodedClaims(principal, owner, msgspec.json.encode(claims))

    def _owner_in(self, body: bytes) -> str | None:
        try:
            params = _message.decode(body).params
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        if params.requestState:
            return owner_of_state(params.requestState)
        if params.taskId:
            return self._owner_of(params.taskId)
        address = read_uri(params.uri)
        return None if address is None else self._owner_of(address.handle)


class _Relay:
    """One request under way at another replica, and its client here."""

    def __init__(self, exchange: HttpExchange, emit: Emit, body: bytes) -> None:
        self._exchange = exchange
        self._emit = emit
        self._body = body
        self._stream: EventStream | None = None

    async def run(self, send: HopTransport, address: str, message: bytes) -> None:
        exchange = self._exchange
        try:
            response = await send(address, message)
            if response.status == _MISDIRECTED:
                raise GatewayFailure(Kind.REPLICA_LOST, "", verdict=Verdict.DID_NOT_RUN)
            if response.stream is None:
                exchange.work = None
                head = b"".join(
                    b"%b: %b\r\n" % (name, response.headers[name]) for name in _PASSED_BACK if name in response.headers
                )
                exchange.respond(response.status, head, response.body)
                return
            try:
                await self._pass_on(response.stream)
            finally:
                response.stream.close()
        except GatewayFailure as failure:
            self._fail(failure)
        except asyncio.CancelledError:
            self._cancelled()
            raise

    def done(self, reply: Reply | None) -> None:
        if reply is not None:
            self.broken()

    def _cancelled(self) -> None:
        """Nobody waits for the owner's answer any more."""
        why = self._exchange.ended_because
        kind = Kind.CANCELLED if why else Kind.OVERLOADED  # whoever stops it is who has to act
        self._answer(401 if why else 503, GatewayFailure(kind, why or STOPPING, verdict=Verdict.MAY_HAVE_RUN))

    def broken(self) -> None:
        self._exchange.fail(id_of(self._body))

    async def _pass_on(self, source: HopStream) -> None:
        """Whole events only: what this replica writes itself, to keep the connection, must not stand inside one."""
        self._stream = stream = self._exchange.open_stream()
        if self._exchange.method == "GET":
            self._exchange.work = None  # as of a stream of our own: the end of the gateway need not wait for it
        held = bytearray()
        while data := await source.read():
            unseen = max(0, len(held) - len(_EVENT_END))
            held += data
            end = held.rfind(_EVENT_END, unseen) + len(_EVENT_END)
            if end >= len(_EVENT_END):
                stream.write(bytes(held[:end]))
                del held[:end]
            while stream.is_open and stream.unsent_bytes > MAX_WAITING_BYTES:  # noqa: ASYNC110 - transports tell no one but their protocol
                await asyncio.sleep(_DRAINING_S)
            if not stream.is_open:
                return
        self._exchange.work = None
        stream.close()

    def _fail(self, failure: GatewayFailure) -> None:
        """The owner has gone. A session that can't be reached does not exist any more: its client opens another."""
        exchange = self._exchange
        exchange.work = None
        if failure.kind is Kind.OVERLOADED:
            self._answer(503, failure)
            return
        if failure.verdict is Verdict.DID_NOT_RUN and "mcp-session-id" in exchange.headers and self._stream is None:
            record = GatewayFailure(Kind.UNKNOWN_SESSION, "").record()
            message = "The gateway replica that had this session has gone; send initialize to open another."
            rejection = Rejection(messages.INVALID_REQUEST, message, id_of(self._body), record)
            refuse(exchange, self._emit, 404, rejection)
            return
        is_continued = _STATE in self._body  # what it continues has begun, whether or not this request arrived
        verdict = Verdict.MAY_HAVE_RUN if is_continued else failure.verdict
        executed = "no" if verdict is Verdict.DID_NOT_RUN else "unknown"
        self._answer(0, _lost(f"The gateway replica that served this request has gone. Executed: {executed}.", verdict))

    def _answer(self, status: int, failure: GatewayFailure) -> None:
        exchange = self._exchange
        exchange.work = None
        rejection = body_rejection(failure, id_of(self._body))
        if self._stream is not None:
            if rejection.id is not None:
                self._stream.write(encode_event(encode_refusal(rejection)))
            self._stream.close()
        else:
            is_legacy = "mcp-session-id" in exchange.headers
            status = status or (200 if is_legacy and rejection.id is not None else http_status(failure.number))
            exchange.respond(status, JSON_HEAD, encode_refusal(rejection))


class HopReceiver:
    """The handler of the address for other replicas. `serve` answers a request whose principal another replica has admitted."""

    def __init__(
        self, verifier: HopVerifier, serve: Callable[[HttpExchange, HopClaims, bytes], None], emit: Emit
    ) -> None:
        self._verifier = verifier
        self._serve = serve
        self._emit = emit
        self.received = 0

    def admit(self, exchange: HttpExchange) -> bool:
        """Only the body shows whether a replica sent it. A GET asks whether this one still answers."""
        if exchange.path == HOP_PATH and exchange.method == "POST":
            return True
        if exchange.path == HOP_PATH and exchange.method == "GET":
            exchange.respond(200)
            return False
        self._refuse(exchange, 404, "There is nothing here for clients.")
        return False

    def handle(self, exchange: HttpExchange) -> None:
        if not self.admit(exchange):
            return
        data, exchange.body = exchange.body, b""
        try:
            forwarded, body = self._verifier.open(data)
        except HopError as problem:
            self._refuse(exchange, _MISDIRECTED, f"This request of a replica is refused: {problem}.")
            return
        self.received += 1
        exchange.head = forwarded.head
        exchange.is_forwarded = True
        self._serve(exchange, forwarded.claims, body)

    def _refuse(self, exchange: HttpExchange, status: int, why: str) -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, why))


def _lost(message: str, verdict: Verdict) -> GatewayFailure:
    return GatewayFailure(Kind.REPLICA_LOST, message, verdict=verdict)
