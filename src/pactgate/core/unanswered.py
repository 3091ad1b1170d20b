"""What becomes of a question a server asks its caller, when there is no answer.

Must not: know transports; a frontend raises it, the peer tells the server.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from msgspec import Raw

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.protocol.messages import ErrorReply


class UnansweredError(GatewayFailure):
    """The caller gave no answer. `reply` is what the server is told: the caller's own error, or why there is none."""

    def __init__(self, message: str, reply: ErrorReply | None = None, *, code: int = messages.INTERNAL_ERROR) -> None:
        details: dict[str, Any] = {}
        if reply is not None:
            said: dict[str, Any] = {"code": reply.code, "message": reply.message}
            if reply.data is not None:
                said["data"] = Raw(reply.data)
            details["caller"] = said
        super().__init__(Kind.INPUT_UNANSWERED, message, details=details)
        self.reply = reply or ErrorReply(None, code, message)


class CannotAsk:
    """The asking side of a channel that has none."""

    __slots__ = ()
    can_ask = False

    def ask(self, method: str, params: bytes) -> Awaitable[bytes]:
        raise UnansweredError("This caller can't be asked anything before its answer.")
