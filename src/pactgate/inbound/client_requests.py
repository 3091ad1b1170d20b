"""What a legacy client has been asked and not answered yet.

Ids are ours and never used twice; an answer counts once, and only from the client that was asked. Bounded in number;
how long to wait is the business of whoever asks. Must not: choose the stream a question goes out on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final

from pactgate.core.unanswered import UnansweredError
from pactgate.protocol import messages
from pactgate.protocol.messages import ErrorReply, Response, encode_json

MAX_OPEN: Final = 64
"""Questions one client has before it at one time."""

_numbers: Final = count(1)


class PendingClientRequests:
    """The open questions of one client. `send` gives False where there is no way to it."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str | int, asyncio.Future[bytes]] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def ask(self, method: str, params: bytes, send: Callable[[bytes], bool]) -> bytes:
        """Send the request and wait for its result. A question nobody waits for any more is withdrawn."""
        if len(self._open) >= MAX_OPEN:
            raise UnansweredError(
                f"The client has {MAX_OPEN} questions before it; it can be asked when it has answered some."
            )
        id_ = f"pactgate-{next(_numbers)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[id_] = answer
        try:
            if not send(messages.encode_request(encode_json(id_), method, params)):
                raise UnansweredError("The client can't be reached with a question.")
            return await answer
        except asyncio.CancelledError:
            withdrawal = {"requestId": id_, "reason": "the answer is no longer needed"}
            send(messages.encode_notification("notifications/cancelled", encode_json(withdrawal)))
            raise
        finally:
            del self._open[id_]

    def take(self, message: Response | ErrorReply) -> None:
        """The client's answer, if anybody waits for it."""
        waiting = None if message.key is None else self._open.get(message.key)
        if waiting is None or waiting.done():
            return
        if isinstance(message, ErrorReply):
            waiting.set_exception(UnansweredError(f"The client refused: {message.message} ({message.code}).", message))
        elif message.result.startswith(b"{"):
            waiting.set_result(message.result)
        else:
            waiting.set_exception(UnansweredError("The client answered with something that is no object."))

    def close(self) -> None:
        """The client has gone."""
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(UnansweredError("The client has gone."))
