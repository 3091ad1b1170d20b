"""Event streams of a server: read event by event within bounds, resumed where they broke, and kept open for server messages.

Must not: know sessions or decide what a message means; it only sees whether a message answers a given request.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.core.failures import GatewayFailure
from pactgate.protocol.framing import EventDecoder, OversizedError, ServerEvent
from pactgate.upstreams.http.refusals import invalid_response
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse, ResponseStream

_RETRY_MS: Final = 1000
_MIN_RETRY_MS: Final = 50
_MAX_RETRY_MS: Final = 5000
_PAUSE_S: Final = 1.0
_MAX_PAUSE_S: Final = 30.0
_SAFE_EVENT_ID: Final = re.compile(r"[\x20-\x7e]{1,1024}")


class EventStreamReader:
    """The events of one stream, each bounded in size. Leaving the `with` block ends the stream."""

    def __init__(self, stream: ResponseStream, target: HttpTarget, max_bytes: int) -> None:
        self._stream = stream
        self._target = target
        self._max_bytes = max_bytes
        self._decoder = EventDecoder(max_bytes)
        self._ready: deque[ServerEvent] = deque()

    def __enter__(self) -> EventStreamReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    async def next(self) -> ServerEvent | None:
        """The next event, or None at the end of the stream. Raises the failure that broke it."""
        while not self._ready:
            data = await self._stream.read()
            if not data:
                return None
            try:
                self._ready.extend(self._decoder.feed(data))
            except OversizedError as problem:
                raise invalid_response(self._target, f"sent an event of more than {self._max_bytes} bytes") from problem
        return self._ready.popleft()

    def let_finish(self) -> None:
        """Discard the rest; the connection returns to the pool if the stream ends soon."""
        self._stream.let_finish()


class ResumePosition:
    """Where a broken stream can be resumed, and how long the server asks to wait before (SEP-1699)."""

    __slots__ = ("_last_id", "_retry_ms", "tries")

    def __init__(self) -> None:
        self._last_id: str | None = None
        self._retry_ms: int | None = None
        self.tries = 0

    def note(self, event: ServerEvent) -> None:
        self.tries = 0
        if event.id is not None:
            self._last_id = event.id
        if event.retry_ms is not None:
            self._retry_ms = min(max(event.retry_ms, _MIN_RETRY_MS), _MAX_RETRY_MS)

    @property
    def line(self) -> bytes:
        """The header that resumes after the last event; empty without an id, or with one that a header can't hold."""
        if self._last_id is None or not _SAFE_EVENT_ID.fullmatch(self._last_id):
            return b""
        return f"Last-Event-ID: {self._last_id}\r\n".encode("ascii")

    @property
    def asked_wait_s(self) -> float | None:
        return None if self._retry_ms is None else self._retry_ms / 1000

    @property
    def wait_s(self) -> float:
        return (_RETRY_MS if self._retry_ms is None else self._retry_ms) / 1000


class StreamedRequest:
    """A request whose response may come on any stream of its session."""

    __slots__ = ("_events", "_pause", "id", "is_answered", "position")

    def __init__(self, id_: int) -> None:
        self.id = id_
        self.is_answered = False
        self.position = ResumePosition()
        self._events: EventStreamReader | None = None
        self._pause: asyncio.Future[None] | None = None

    def read(self, events: EventStreamReader) -> EventStreamReader:
        """Note the stream that is read for the response now."""
        self._events = events
        return events

    def finish(self) -> None:
        self.is_answered = True
        if self._events is not None:
            self._events.let_finish()
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)

    async def pause(self) -> None:
        """Wait as long as the server asked for, or until the response has come."""
        self._pause = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._pause}, timeout=self.position.wait_s)


class _Glance(Struct):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


_glance: Final = msgspec.json.Decoder(_Glance)


def answered_id(data: bytes) -> bytes | None:
    """The id of the request this message answers, as JSON; None for any other message."""
    try:
        seen = _glance.decode(data)
    except msgspec.DecodeError:
        return None
    return bytes(seen.id) if seen.method is UNSET and seen.id is not UNSET else None


async def listen(
    fetch: Callable[[ResumePosition], Awaitable[EventStreamReader | HttpResponse]],
    take: Callable[[ServerEvent], object],
    may_ask_again: Callable[[HttpResponse], bool],
    report: Callable[[str, str], None],
) -> None:
    """Keep one stream open for messages that belong to no request, until the server offers none.

    Reconnects use exponential backoff with jitter; after a stream with events, the pause the server asked for.
    """
    position = ResumePosition()
    pause_s = _PAUSE_S
    while True:
        asked_s = None
        try:
            found = await fetch(position)
            if isinstance(found, HttpResponse):
                if not may_ask_again(found):
                    return
            elif await _relay(found, position, take):
                pause_s, asked_s = _PAUSE_S, position.asked_wait_s
        except GatewayFailure as failure:
            report("lost the stream for its own messages", failure.message)
        if asked_s is not None:
            await asyncio.sleep(max(asked_s, _PAUSE_S))
        else:
            await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))
            pause_s = min(pause_s * 2, _MAX_PAUSE_S)


async def _relay(events: EventStreamReader, position: ResumePosition, take: Callable[[ServerEvent], object]) -> bool:
    """Whether the stream had any event."""
    has_brought = False
    with events:
        while (event := await events.next()) is not None:
            has_brought = True
            position.note(event)
            take(event)
    return has_brought
