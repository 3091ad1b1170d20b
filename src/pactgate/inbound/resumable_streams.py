"""Event streams of legacy sessions that survive a lost connection.

Every event has an id `<stream>-<number>`, unique in its session. A session keeps its newest events, bounded by count, bytes and age,
and by what all sessions together may keep; a client that comes back with the last id it saw gets the later events of that one
stream, and the stream goes on. Must not: know requests or sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from pactgate.inbound.http_exchange import EventStream
from pactgate.inbound.server_limits import MIB
from pactgate.protocol.framing import encode_event

MAX_EVENTS: Final = 256
MAX_BYTES: Final = MIB
MAX_BYTES_OF_ALL: Final = 64 * MIB
KEEP_S: Final = 60.0
STANDING: Final = 0
"""The stream of a session's GET, beside those of its POSTs."""
FRESH: Final = (STANDING + 1, 0)

_EVENT_ID: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


class KeptEvent(NamedTuple):
    stream: int
    number: int
    at: float
    event: bytes


class StreamBudget:
    """What all sessions together keep."""

    __slots__ = ("kept_bytes", "max_bytes")

    def __init__(self, max_bytes: int = MAX_BYTES_OF_ALL) -> None:
        self.kept_bytes = 0
        self.max_bytes = max_bytes


class ResumableStream:
    """One stream: the connection it is written to, if any, and what becomes of it when nobody comes back."""

    __slots__ = ("_log", "delivered", "is_ended", "key", "last_number", "lost_at", "on_abandoned", "sink")

    def __init__(
        self, log: SessionStreams, key: int, sink: EventStream | None, on_abandoned: Callable[[], None] | None
    ) -> None:
        self._log = log
        self.key = key
        self.sink = sink
        self.on_abandoned = on_abandoned
        self.last_number = 0
        self.delivered = 0
        self.is_ended = False
        self.lost_at: float | None = None

    @property
    def is_live(self) -> bool:
        return self.sink is not None and self.sink.is_open

    def push(self, message: bytes) -> None:
        """Send one message, and keep it."""
        self.last_number += 1
        event = encode_event(message, id=f"{self.key}-{self.last_number}")
        self._log.keep(self.key, self.last_number, event)
        if self.sink is not None and self.sink.write(event):
            self.delivered = self.last_number

    def end(self) -> None:
        """The last message has been pushed."""
        self.is_ended = True
        self.lost_at = self._log.clock()
        if self.sink is not None:
            self.sink.close()
            self.sink = None

    def lost(self, sink: EventStream) -> None:
        """The connection has gone; somebody may come back for the rest."""
        if self.sink is sink:
            self.sink = None
            self.lost_at = self._log.clock()

    def attach(self, sink: EventStream, after: int) -> None:
        """Go on with another connection, behind the event the client saw last."""
        former, self.sink = self.sink, sink
        if former is not None:
            former.close()
        self.lost_at = None
        for kept in self._log.events(self.key, after):
            if sink.write(kept.event):
                self.delivered = kept.number
        if self.is_ended:
            self.end()


class SessionStreams:
    """The streams of one session and their newest events."""

    __slots__ = ("_account", "_bytes", "_events", "_next_key", "_standing_number", "clock", "streams")

    def __init__(self, account: StreamBudget, clock: Callable[[], float], marks: tuple[int, int] = FRESH) -> None:
        self._account = account
        self.clock = clock
        self._events: list[KeptEvent] = []
        self._bytes = 0
        self._next_key, self._standing_number = marks
        self.streams: dict[int, ResumableStream] = {}

    @property
    def is_idle(self) -> bool:
        return not (self._events or self.streams)

    @property
    def marks(self) -> tuple[int, int]:
        """What an idle log leaves behind, so that no event id is ever given twice in a session."""
        return self._next_key, self._standing_number

    @property
    def is_live(self) -> bool:
        return any(stream.is_live for stream in self.streams.values())

    @property
    def is_listened_to(self) -> bool:
        """Whether somebody reads the standing stream."""
        return STANDING in self.streams and self.streams[STANDING].is_live

    def open(self, sink: EventStream, on_abandoned: Callable[[], None]) -> ResumableStream:
        """A new stream, born by a POST. `on_abandoned` is called if it is lost and nobody comes back in time."""
        stream = self.streams[self._next_key] = ResumableStream(self, self._next_key, sink, on_abandoned)
        self._next_key += 1
        return stream

    def standing(self) -> ResumableStream:
        stream = self.streams.get(STANDING)
        if stream is None:
            stream = self.streams[STANDING] = ResumableStream(self, STANDING, None, None)
            stream.last_number = stream.delivered = self._standing_number
            stream.lost_at = self.clock()
        return stream

    def listened_to(self) -> ResumableStream | None:
        """The stream for what belongs to no request: the one kept for it, else one that is open for another reason."""
        standing = self.streams.get(STANDING)
        if standing is not None:
            return standing
        return next((stream for stream in self.streams.values() if stream.is_live and not stream.is_ended), None)

    def find(self, event_id: str) -> tuple[ResumableStream, int] | None:
        """The stream and the number an event id names, if the stream is still known."""
        match = _EVENT_ID.fullmatch(event_id)
        if match is None:
            return None
        key, number = int(match[1]), int(match[2])
        stream = self.standing() if key == STANDING else self.streams.get(key)
        return (stream, number) if stream else None

    def keep(self, key: int, number: int, event: bytes) -> None:
        self._events.append(KeptEvent(key, number, self.clock(), event))
        self._bytes += len(event)
        self._account.kept_bytes += len(event)
        while self._is_over():
            self._forget_oldest()

    def events(self, key: int, after: int) -> list[KeptEvent]:
        return [kept for kept in self._events if kept.stream == key and kept.number > after]

    def sweep(self, now: float) -> None:
        """Drop what is too old to be asked for."""
        while self._events and now - self._events[0].at >= KEEP_S:
            self._forget_oldest()
        for key, stream in tuple(self.streams.items()):
            if stream.is_live or stream.lost_at is None or now - stream.lost_at < KEEP_S:
                continue
            del self.streams[key]
            if key == STANDING:
                self._standing_number = stream.last_number
            if not stream.is_ended and stream.on_abandoned is not None:
                stream.on_abandoned()

    def close(self) -> None:
        while self._events:
            self._forget_oldest()
        for stream in tuple(self.streams.values()):
            if stream.sink is not None:
                stream.sink.close()
        self.streams.clear()

    def _is_over(self) -> bool:
        """The newest event may alone be larger than a session's share, so that an answer can be fetched; never than the whole."""
        if self._account.kept_bytes > self._account.max_bytes:
            return bool(self._events)
        return len(self._events) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._events) > 1)

    def _forget_oldest(self) -> None:
        oldest = self._events.pop(0)
        self._bytes -= len(oldest.event)
        self._account.kept_bytes -= len(oldest.event)
