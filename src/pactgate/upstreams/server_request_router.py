"""What one server asks back: which of our requests a question belongs to, and the tasks that wait for the answers.

A question on the stream of a request belongs to that request. One that comes beside any request belongs to the only
call under way that can be asked, or to any of several of one owner; otherwise nobody is asked, because guessing could
hand one caller's answer to another's call. Bounded: questions open at once, and questions of one call. Must not: know
eras, capabilities or frontends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from pactgate.core.failures import GatewayFailure
from pactgate.core.unanswered import UnansweredError
from pactgate.protocol import messages
from pactgate.protocol.era_bridge import CANCELLED_BY_CALLER, COMPLETED, ELICIT, QUESTIONS, Question
from pactgate.protocol.messages import Request

MAX_OPEN: Final = 64
"""Questions of one server waiting for answers."""
MAX_OF_A_CALL: Final = 100
MAX_QUESTION_BYTES: Final = 1024 * 1024
STRAY_S: Final = 30.0
MAX_STRAYS: Final = 256
MAX_URLS: Final = 256
"""Visits to a URL whose end is remembered to be told."""


class Asker(Protocol):
    """Who answers for one call."""

    owner: str | None
    """Calls of the same owner have the same caller; None where nobody can say so."""

    async def ask(self, question: Question) -> bytes:
        """The answer, an encoded object. Raises why there is none; cancelled when the question is moot."""

    def tell(self, method: str, params: bytes) -> None:
        """Pass a notice about a question on."""


class _Visit(Struct):
    elicitationId: str | None = None  # noqa: N815 - the wire's spelling


_visit: Final = Decoder(_Visit)


class _Calling:
    __slots__ = ("asked", "asker", "open")

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.asked = 0
        self.open: dict[asyncio.Task[None], Request] = {}


class ServerRequestRouter:
    """The questions of one server. `reply` sends one frame, quietly; `reply_later` does so in its own time."""

    def __init__(self, reply: Callable[[bytes], Awaitable[None]], reply_later: Callable[[bytes], None]) -> None:
        self._reply = reply
        self._reply_later = reply_later
        self.calls: dict[str | int, _Calling] = {}
        self._open: dict[str | int, asyncio.Task[None]] = {}
        self._urls: dict[str, Asker] = {}
        self.strays: dict[str | int, tuple[float, str | None]] = {}
        """Calls nobody waits for that the server has not answered: until when they count, and whose they were."""

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, id_: int, asker: Asker) -> None:
        """A request that may be asked about is under way."""
        self.calls[id_] = _Calling(asker)

    def answered(self, id_: str | int) -> None:
        """The server has answered it, perhaps late: nothing more can be asked about it."""
        self.strays.pop(id_, None)
        self._end(id_)

    def given_up(self, id_: int) -> None:
        """Nobody waits for it any more, but the server may not know yet: for a while it may still ask about it."""
        call = self._end(id_)
        if call is not None:
            self.strays[id_] = (asyncio.get_running_loop().time() + STRAY_S, call.asker.owner)
            if len(self.strays) > MAX_STRAYS:
                del self.strays[next(iter(self.strays))]

    def _end(self, id_: str | int) -> _Calling | None:
        """What is still asked for it is moot, and the server is told so."""
        call = self.calls.pop(id_, None)
        if call is not None:
            for task, request in tuple(call.open.items()):
                task.cancel()
                self._reply_later(_moot(request))
        return call

    def take(self, request: Request, for_request: int | None) -> bytes | None:
        """A request of the server's. The reply where it can be given at once; None where somebody is being asked."""
        if request.method == "ping":
            return messages.encode_result(request.id, b"{}")
        if request.method not in QUESTIONS:
            return _refusal(request, messages.METHOD_NOT_FOUND, f"{request.method} is not offered by this client")
        call = self._calling(for_request)
        if isinstance(call, str):
            code = messages.INVALID_REQUEST if self.calls else messages.METHOD_NOT_FOUND
            return _refusal(request, code, f"{request.method} can't be answered: {call}")
        excess = self._excess(request, call)
        if excess is not None:
            return _refusal(request, *excess)
        call.asked += 1
        self._remember_url(request, call.asker)
        task = asyncio.get_running_loop().create_task(self._ask(call, request))
        self._open[request.key] = task
        call.open[task] = request
        task.add_done_callback(lambda done: self._closed(request.key, call, done))
        return None

    def _excess(self, request: Request, call: _Calling) -> tuple[int, str] | None:
        if request.key in self._open:
            return messages.INVALID_REQUEST, "a request with this id is still open"
        if len(request.params or b"") > MAX_QUESTION_BYTES:
            return messages.INVALID_PARAMS, f"a question may have {MAX_QUESTION_BYTES} bytes at most"
        if len(self._open) >= MAX_OPEN:
            return messages.INTERNAL_ERROR, f"{MAX_OPEN} questions are open; wait for their answers"
        if call.asked >= MAX_OF_A_CALL:
            return messages.INTERNAL_ERROR, f"one call may ask {MAX_OF_A_CALL} questions at most"
        return None

    def completed(self, params: bytes) -> None:
        """A visit to a URL has ended, says the server: so is its caller told, if its call is still under way."""
        id_ = _elicitation_id(params)
        asker = None if id_ is None else self._urls.pop(id_, None)
        if asker is not None:
            asker.tell(COMPLETED, params)

    def _remember_url(self, request: Request, asker: Asker) -> None:
        id_ = _elicitation_id(request.params or b"{}") if request.method == ELICIT else None
        if id_ is not None:
            self._urls[id_] = asker
            if len(self._urls) > MAX_URLS:
                del self._urls[next(iter(self._urls))]

    def withdraw(self, key: str | int) -> None:
        """The server no longer wants to know."""
        task = self._open.get(key)
        if task is not None:
            for call in self.calls.values():
                call.open.pop(task, None)
            task.cancel()

    async def close(self) -> None:
        tasks = tuple(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _calling(self, for_request: int | None) -> _Calling | str:
        """The call a question belongs to, or why there is none."""
        if for_request is not None:
            return self.calls.get(for_request) or "the client of this request can't be asked"
        if not self.calls:
            return "no call is under way whose client could be asked"
        now = asyncio.get_running_loop().time()
        strays = [owner for until, owner in self.strays.values() if now < until]
        owners = {*strays, *(call.asker.owner for call in self.calls.values())}
        if len(self.calls) + len(strays) > 1 and (len(owners) > 1 or None in owners):
            return "several calls are under way, and it does not say which one it belongs to"
        return next(reversed(self.calls.values()))

    async def _ask(self, call: _Calling, request: Request) -> None:
        try:
            answer = await call.asker.ask(Question(request.method, request.params))
            text = messages.encode_result(request.id, answer)
        except UnansweredError as failure:
            reply = failure.reply
            data = None if reply.data is None else Raw(reply.data)
            text = messages.encode_error(request.id, reply.code, reply.message, data)
        except GatewayFailure as failure:
            text = _refusal(request, messages.INTERNAL_ERROR, failure.message)
        task = asyncio.current_task()
        assert task is not None
        call.open.pop(task, None)  # it is no longer asked but answered: the end of the call must not cut that off
        await self._reply(text)

    def _closed(self, key: str | int, call: _Calling, task: asyncio.Task[None]) -> None:
        del self._open[key]
        call.open.pop(task, None)


def _refusal(request: Request, code: int, why: str) -> bytes:
    return messages.encode_error(request.id, code, why)


def _elicitation_id(params: bytes) -> str | None:
    try:
        return _visit.decode(params).elicitationId
    except DecodeError:
        return None


def _moot(request: Request) -> bytes:
    if request.method == ELICIT:
        return messages.encode_result(request.id, CANCELLED_BY_CALLER)
    return _refusal(request, messages.INTERNAL_ERROR, "the call has ended without an answer to this")
