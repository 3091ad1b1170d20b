"""Calls that wait at a legacy server while their modern caller is asked: the call stays open there, its caller comes back with answers.

A suspended call belongs to one subject and is continued once per round. Its waiting is bounded by the time it has for input, their number
by caller, by server and in all; no caller can take all of a server's. One that nobody comes back for is ended, and the server told. If the
server finishes meanwhile, the outcome is kept for the caller. Must not: know seals or names of tools; in-process only, so a restart ends
every one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, Final

from msgspec import Raw

from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.fair_share import is_fair
from pactgate.core.unanswered import UnansweredError
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol.era_bridge import Question, why_not
from pactgate.protocol.messages import Notification, Response
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.notification_router import OnNotice, OnProgress

MAX_SUSPENDED: Final = 256
MAX_AT_SERVER: Final = 128
MAX_OF_ONE: Final = 64
"""Of one caller."""
TOGETHER_S: Final = 0.01
"""Questions that follow each other this closely are put in one round."""


class SuspendedCall:
    """One call at a legacy server, and what the server has asked about it (`upstreams.server_request_router.Asker`)."""

    def __init__(self, request: UpstreamRequest, session: Session, input_s: float) -> None:
        self.owner: str | None = None  # two modern callers of one subject can't be told apart, so nothing is guessed
        self.id = token_hex(16)
        self.caller = request.caller
        self.subject = request.caller.principal.key
        self.method = request.method
        self.name = request.name
        """The server's own name of the tool or prompt, or the URI of the resource."""
        self.session = session
        self.input_s = input_s
        """How long the caller may still be waited for."""
        self.capabilities: Mapping[str, Any] = {}
        self.on_progress: OnProgress | None = None
        self.on_log: OnNotice | None = None
        self.questions: dict[str, Question] = {}
        self.round = 0
        self.expiry: asyncio.TimerHandle | None = None
        self.suspended_at = 0.0
        self.was_asked = False
        self._answers: dict[str, asyncio.Future[bytes]] = {}
        self._count = 0
        self._news = asyncio.Event()
        self._call: asyncio.Task[Response] | None = None

    @property
    def mark(self) -> str:
        """Names this call in this round, and no other."""
        return f"{self.id}.{self.round}"

    def begin(self, call: asyncio.Task[Response]) -> None:
        self._call = call
        call.add_done_callback(self._finished)

    async def ask(self, question: Question) -> bytes:
        refusal = why_not(question, self.capabilities)
        if refusal is not None:
            raise UnansweredError(refusal[1], code=refusal[0])
        self._count += 1
        key = f"input-{self._count}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.questions[key], self._answers[key] = question, answer
        self.was_asked = True
        self._news.set()
        try:
            return await answer
        finally:
            self.questions.pop(key, None)
            self._answers.pop(key, None)

    def tell(self, method: str, params: bytes) -> None:
        """Modern callers have no such notices: they come back when they are done."""

    def progress(self, members: dict[str, Raw]) -> None:
        if self.on_progress is not None:
            self.on_progress(members)

    def log(self, notification: Notification) -> None:
        if self.on_log is not None:
            self.on_log(notification)

    def answer(self, answers: Mapping[str, bytes]) -> None:
        """Hand the caller's answers over; keys nobody asked under are passed over."""
        for key, text in answers.items():
            waiting = self._answers.get(key)
            if waiting is not None and not waiting.done():
                waiting.set_result(text)
                self.questions.pop(key, None)
        self._news.clear()
        if self.questions:
            self._news.set()

    async def outcome(self) -> Response | None:
        """What the server answered, or None when it asks instead. Raises what ended the call."""
        call = self._call
        assert call is not None, "begun before it is waited for"
        news = asyncio.ensure_future(self._news.wait())
        try:
            while not call.done() and not self.questions:
                if news.done():  # the question was withdrawn
                    self._news.clear()
                    news = asyncio.ensure_future(self._news.wait())
                await asyncio.wait({call, news}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                await asyncio.wait({call}, timeout=TOGETHER_S)
        finally:
            news.cancel()
        return call.result() if call.done() else None

    def end(self) -> None:
        """Nobody waits any more; the server is told by the end of its request."""
        if self._call is not None:
            self._call.cancel()

    async def ended(self) -> None:
        self.end()
        if self._call is not None:
            await asyncio.wait({self._call})

    def _finished(self, call: asyncio.Task[Response]) -> None:
        self._news.set()
        if not call.cancelled():
            call.exception()  # kept for whoever comes back; nobody need be warned that it was not looked at


class SuspendedCalls:
    """All suspended calls, by the mark of the round their callers are to answer."""

    def __init__(self) -> None:
        self._suspended: dict[str, SuspendedCall] = {}

    def __len__(self) -> int:
        return len(self._suspended)

    def suspend(self, suspended: SuspendedCall) -> str:
        """Keep the call until its caller comes back; the mark to come back with."""
        if not self._has_room(suspended):
            suspended.end()
            raise GatewayFailure(
                Kind.OVERLOADED,
                "Too many calls wait for answers of their clients; answer those, or try again later.",
                server=suspended.session.peer.server,
                verdict=Verdict.MAY_HAVE_RUN,
            )
        loop = asyncio.get_running_loop()
        suspended.round += 1
        suspended.suspended_at = loop.time()
        mark = suspended.mark
        self._suspended[mark] = suspended
        suspended.expiry = loop.call_later(suspended.input_s, self._expire, mark)
        return mark

    def find(self, mark: str, subject: str) -> SuspendedCall | None:
        """The call that waits for this mark, if it is this subject's."""
        suspended = self._suspended.get(mark)
        return suspended if suspended is not None and suspended.subject == subject else None

    def take(self, mark: str) -> SuspendedCall:
        """The caller has come back: from now on the mark opens nothing."""
        suspended = self._remove(mark)
        suspended.input_s -= asyncio.get_running_loop().time() - suspended.suspended_at
        return suspended

    def forget(self, is_over: Callable[[SuspendedCall], bool]) -> None:
        """End calls whose callers may no longer make them."""
        for mark in [mark for mark, suspended in self._suspended.items() if is_over(suspended)]:
            self._remove(mark).end()

    async def close(self) -> None:
        while self._suspended:
            await self._remove(next(iter(self._suspended))).ended()

    def _has_room(self, suspended: SuspendedCall) -> bool:
        others, server = list(self._suspended.values()), suspended.session.peer.server
        own = [other for other in others if other.subject == suspended.subject]
        at_server = [other for other in others if other.session.peer.server == server]
        own_at_server = sum(other.session.peer.server == server for other in own)
        return (
            len(own) < MAX_OF_ONE
            and is_fair(own_at_server, MAX_AT_SERVER - len(at_server))
            and is_fair(len(own), MAX_SUSPENDED - len(others))
        )

    def _remove(self, mark: str) -> SuspendedCall:
        suspended = self._suspended.pop(mark)
        if suspended.expiry is not None:
            suspended.expiry.cancel()
        return suspended

    def _expire(self, mark: str) -> None:
        self._remove(mark).end()
