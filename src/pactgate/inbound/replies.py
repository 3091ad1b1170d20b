"""What an endpoint asks of the pipeline, how it frames what comes back, and what it says itself: refusals, cancellations.

Must not: decide anything about a request.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from pactgate.core.context import ExecutionContext
from pactgate.core.events import Emit, RequestRefused
from pactgate.core.failures import GatewayFailure, Kind, Reply, Verdict
from pactgate.core.values import Caller, ClientGroup, Responder
from pactgate.inbound.error_data import encode_refusal
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange, Work
from pactgate.policy.scopes import SCOPES
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Rejection, Request

STOPPING: Final = "The gateway is stopping."
CANCELLED: Final = "The request was cancelled."
REVOKED: Final = "The credentials of this request are no longer valid."
SESSION_ENDED: Final = "The session has ended."

_TOO_SOON: Final = frozenset({Kind.RATE_LIMITED, Kind.OVERLOADED})
MAX_WAITING_BYTES: Final = 256 * 1024
"""Notifications are dropped while a client has this much left to take; answers never are."""


class Kernel(Protocol):
    """The only entry of the pipeline."""

    def start(self, ctx: ExecutionContext, request: Request, responder: Responder) -> Work:
        """Begin to answer a request. The responder is told once, perhaps at once."""

    def check_body(self, subject: str, body: bytes) -> GatewayFailure | None:
        """Why a large body is refused before it is decoded. Bodies up to `LARGE_BYTES` need no check."""

    def count_refused(self, subject: str, size: int) -> None:
        """An endpoint has refused a body of this size by itself."""

    def notice(self, caller: Caller, notification: Notification) -> None:
        """A client's notification that is not about one of its requests."""

    def join(self, audience: ClientGroup) -> None:
        """This endpoint has callers that can be told things outside their requests."""

    def leave(self, audience: ClientGroup) -> None:
        """It has none any more."""

    def left(self, session: str) -> None:
        """A legacy session has ended; `session` is what its callers went by."""


class DroppedNotifications:
    """Notifications that could not be delivered within bounds."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def answer(request: Request, reply: Reply) -> bytes:
    """The response that carries this reply."""
    error = reply.error
    if error is not None:
        return messages.encode_error(request.id, error.code, error.message, error.data)
    return messages.encode_result(request.id, reply.result or b"{}")


def status_of(exchange: HttpExchange, failure: GatewayFailure | None, otherwise: int) -> int:
    """The HTTP status of a failure, and header lines for it, unless the answer has begun.

    A call that came too soon says so also where HTTP says it (S2/MCP-007), and so does one whose token lacks a scope (RFC 6750, 3.1).
    """
    if failure is None:
        return otherwise
    if failure.retry_after_ms is not None and failure.kind in _TOO_SOON:
        exchange.extra_head += b"Retry-After: %d\r\n" % max(1, -(-failure.retry_after_ms // 1000))
    head = exchange.head.mcp if failure.kind is Kind.INSUFFICIENT_SCOPE else None
    if head is None:
        return otherwise
    is_bound = exchange.headers.get("authorization", [""])[0][:5].lower() == "dpop "
    scopes = " ".join(failure.details[SCOPES]).encode()
    exchange.extra_head += b'WWW-Authenticate: %b error="insufficient_scope", scope="%b", %b\r\n' % (
        b"DPoP" if is_bound else b"Bearer",
        scopes,
        head.resource_metadata,
    )
    return 403


def cancelled_answer(request: Request, reason: str) -> bytes:
    """What is said instead of an answer to a request that was stopped."""
    kind = Kind.OVERLOADED if reason == STOPPING else Kind.CANCELLED  # whoever stops it is who has to act
    facts: dict[str, Any] = GatewayFailure(kind, reason, verdict=Verdict.MAY_HAVE_RUN).record()
    return messages.encode_error(request.id, messages.INTERNAL_ERROR, reason, facts)


def cancelled_key(notification: Notification) -> str | int | None:
    """Which request `notifications/cancelled` means, if it says so in a readable way."""
    if notification.params is None:
        return None
    try:
        raw = messages.members(notification.params).get("requestId")
    except msgspec.DecodeError:
        return None
    return None if raw is None else messages.id_key(bytes(raw))


def body_rejection(failure: GatewayFailure, id_: bytes | None) -> Rejection:
    """What a client is told whose body was refused before it was decoded."""
    return Rejection(failure.number, failure.message, id_, failure.record())


def refuse(
    exchange: HttpExchange, emit: Emit, status: int, rejection: Rejection, head: bytes = b"", *, reason: str = ""
) -> None:
    """Answer with a JSON-RPC error and say so to whoever listens, who may be told a `reason` that the client is not."""
    target = f"{exchange.method} {exchange.path}"
    emit(RequestRefused(status, rejection.code, reason or rejection.message, exchange.peer, target))
    exchange.is_refused = True
    exchange.respond(status, JSON_HEAD + head, encode_refusal(rejection, status))
