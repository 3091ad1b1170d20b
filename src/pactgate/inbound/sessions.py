"""The sessions of legacy clients over HTTP: whose they are, how many there may be, when they end.

An id has 128 random bits and names a session only for the subject and the path it was made for; for everybody else it is unknown. Idle
sessions end, and so do those of a principal that may no longer call. When there are too many, the one longest unused makes room, of the
principal with the most. An idle session costs less than 1 KiB. Must not: frame answers, or let a stolen id open a session to another
subject.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Protocol

from pactgate.config.model import Sessions
from pactgate.core.principal import Principal
from pactgate.core.values import ListReader, split_path
from pactgate.inbound.client_requests import PendingClientRequests
from pactgate.inbound.replies import MAX_WAITING_BYTES, SESSION_ENDED, DroppedNotifications
from pactgate.inbound.resumable_streams import FRESH, ResumableStream, SessionStreams, StreamBudget
from pactgate.protocol import messages
from pactgate.protocol.legacy import InitializeParams, Phase
from pactgate.state.owned_ids import new_plain_id

MAX_RUNNING: Final = 256
"""Requests of one session in flight."""

_SWEEP_S: Final = 5.0
_LOOKED_AT_FOR_ROOM: Final = 64


class RunningWork(Protocol):
    """A request in flight that can be stopped."""

    def stop(self, reason: str) -> None: ...


class LegacySession:
    """`handle` names the session where its id, a secret, must not be shown."""

    __slots__ = (
        "_log",
        "_marks",
        "_table",
        "capabilities",
        "client",
        "handle",
        "id",
        "last_used",
        "path",
        "phase",
        "principal",
        "questions",
        "running",
        "scope",
        "subject",
        "version",
        "view",
    )

    def __init__(
        self, table: SessionTable, principal: Principal, path: str | None, version: str, offer: InitializeParams
    ) -> None:
        self._table = table
        self._log: SessionStreams | None = None
        self._marks = FRESH
        self.id = table.new_id()
        self.handle = hashlib.sha256(self.id.encode()).hexdigest()[:12]
        self.principal = principal
        self.subject = principal.key
        self.path = path
        self.scope, self.view = split_path(path)
        self.version = version
        self.client = offer.client
        self.capabilities = _shared(messages.encode_json(offer.capabilities))
        self.phase = Phase.INITIALIZING
        self.running: dict[str | int, RunningWork] = {}
        self.questions: PendingClientRequests | None = None
        """What its client has been asked. Made when first needed: most never are."""
        self.last_used = table.clock()

    @property
    def is_busy(self) -> bool:
        return bool(self.running) or (self._log is not None and self._log.is_live)

    @property
    def log(self) -> SessionStreams:
        """Its event streams. Made when first needed: most sessions never have one."""
        if self._log is None:
            self._log = SessionStreams(self._table.account, self._table.clock, self._marks)
            self._table.streaming.add(self)
        return self._log

    @property
    def is_listening(self) -> bool:
        """Whether its client reads the standing stream right now."""
        return self._log is not None and self._log.is_listened_to

    def notify(self, method: str, params: bytes | None) -> None:
        """Tell the client something that belongs to no request. Waits, within bounds, for a client that is not listening now."""
        self._push(self.log.standing(), method, params)

    def tell(self, method: str) -> None:
        """The same, but only for a client that listens, or has a stream open that can carry it."""
        stream = self._log.listened_to() if self._log is not None else None
        if stream is not None and self.phase is Phase.READY:
            self._push(stream, method, None)

    def _push(self, stream: ResumableStream, method: str, params: bytes | None) -> None:
        if stream.sink is not None and stream.sink.unsent_bytes > MAX_WAITING_BYTES:
            self._table.drops.count += 1
        else:
            stream.push(messages.encode_notification(method, params))

    def sweep(self, now: float) -> None:
        if self._log is not None:
            self._log.sweep(now)
            if self._log.is_idle:
                self._marks = self._log.marks
                self._log = None
        if self._log is None:
            self._table.streaming.discard(self)

    def end(self) -> None:
        """Stop what runs and close what is open. Use `SessionTable.end`."""
        self.phase = Phase.CLOSED
        for running in tuple(self.running.values()):
            running.stop(SESSION_ENDED)
        if self.questions is not None:
            self.questions.close()
        if self._log is not None:
            self._log.close()
            self._log = None


class SessionTable:
    """All sessions, in order of their last use. Sweeps itself while it has any."""

    def __init__(
        self,
        bounds: Sessions,
        clock: Callable[[], float],
        drops: DroppedNotifications | None = None,
        new_id: Callable[[], str] = new_plain_id,
    ) -> None:
        self.clock = clock
        self.new_id = new_id
        self.drops = drops or DroppedNotifications()
        self.on_end: Callable[[str], None] = _ignore
        """Told the handle of every session that has ended."""
        self.account = StreamBudget()
        self.streaming: set[LegacySession] = set()
        self._bounds = bounds
        self._sessions: OrderedDict[str, LegacySession] = OrderedDict()
        self._by_subject: dict[str, OrderedDict[str, LegacySession]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> tuple[LegacySession, ...]:
        return tuple(self._sessions.values())

    def has(self, id_: str) -> bool:
        """Whether there is a session of this id, whoever's it is. Not a use."""
        return id_ in self._sessions

    def find(self, id_: str, subject: str, path: str | None) -> LegacySession | None:
        """The session, if it is this subject's and this path's. Counts as a use."""
        session = self._sessions.get(id_)
        if session is None or session.subject != subject or session.path != path:
            return None
        self._touch(session)
        return session

    def make_room(self, subject: str) -> bool:
        """Whether one more session of this subject fits, after the longest unused has made way where necessary."""
        own = self._by_subject.get(subject, OrderedDict())
        if len(own) >= self._bounds.max_per_caller and not self._evict_from(own):
            return False
        if len(self._sessions) < self._bounds.max_sessions:
            return True
        # The principal with the most sessions makes room: nobody can push the sessions of others out by opening many.
        fullest = max(self._by_subject.values(), key=len)
        return self._evict_from(fullest) or (len(own) < len(fullest) and self._evict_from(self._sessions))

    def open(self, principal: Principal, path: str | None, version: str, offer: InitializeParams) -> LegacySession:
        session = LegacySession(self, principal, path, version, offer)
        self._sessions[session.id] = session
        self._by_subject.setdefault(principal.key, OrderedDict())[session.id] = session
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep_again)
        return session

    def end(self, session: LegacySession) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        own = self._by_subject[session.subject]
        del own[session.id]
        if not own:
            del self._by_subject[session.subject]
        self.streaming.discard(session)
        session.end()
        self.on_end(session.handle)

    def end_others(self, admits: Callable[[Principal], bool]) -> None:
        """End the sessions of everybody who is gone, or is no longer what it was when its session began."""
        for session in self.all():
            if not admits(session.principal):
                self.end(session)

    def tell(self, method: str, concerns: Callable[[ListReader], bool]) -> None:
        """Tell every client that listens and that it concerns."""
        for session in tuple(self.streaming):
            if concerns(session):
                session.tell(method)

    def sweep(self) -> None:
        """End what has been idle too long, and what of event streams is too old."""
        now = self.clock()
        for session in tuple(self.streaming):
            session.sweep(now)
        idle_s = self._bounds.idle_timeout_ms / 1000
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            if now - oldest.last_used < idle_s:
                break
            if oldest.is_busy:
                self._touch(oldest)
            else:
                self.end(oldest)

    def close(self) -> None:
        for session in self.all():
            self.end(session)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _sweep_again(self) -> None:
        self.sweep()
        self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep_again) if self._sessions else None

    def _touch(self, session: LegacySession) -> None:
        session.last_used = self.clock()
        self._sessions.move_to_end(session.id)
        self._by_subject[session.subject].move_to_end(session.id)

    def _evict_from(self, candidates: OrderedDict[str, LegacySession]) -> bool:
        for session in islice(candidates.values(), _LOOKED_AT_FOR_ROOM):
            if not session.is_busy:
                self.end(session)
                return True
        return False


def _ignore(handle: str) -> None:
    return


@lru_cache(maxsize=128)
def _shared(capabilities: bytes) -> dict[str, Any]:
    """Clients of one kind declare the same capabilities: their sessions share one value, which nobody changes."""
    decoded: dict[str, Any] = messages.value(capabilities)
    return decoded
