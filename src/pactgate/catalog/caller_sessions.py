"""Sticky sessions: sessions with one server that belong to one caller, beside the session that all callers share.

A legacy session fixes at its handshake what the server may ask of the client (elicitation, sampling, roots), so a caller with such
capabilities needs a session of its own. With a server where each caller has a grant of its own, every call goes through such a session.
The gateway opens it at the first call and ends it when it is idle, when its principal has too many, or with the server. Two callers share
one only if they have the same legacy session, or the same subject and the same capabilities. Must not: decide who may call, or end the
session of one principal to make room for another.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from pactgate.catalog.change_watcher import LIST_CHANGED
from pactgate.catalog.discovery import DiscoveredLists, discover
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.fair_share import is_fair
from pactgate.core.principal import Principal
from pactgate.core.values import Caller
from pactgate.protocol.era_bridge import can_be_asked
from pactgate.protocol.messages import Notification, encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.http.pool import PoolLimits

IDLE_S: Final = 300.0
SWEEP_S: Final = 30.0
MAX_PROCESSES: Final = 32
MAX_SESSIONS: Final = 64
MAX_SIGNED_IN: Final = 200
"""With a server where each caller has a grant of its own: so many callers within `IDLE_S`."""
CALLER_SESSION_POOL: Final = PoolLimits(max_open=256)
"""HTTP connections per origin: one listening per session, one per running or suspended call, and spare ones for responses."""
_NO_SUCH_ERA: Final = frozenset({Kind.UPSTREAM_ERROR, Kind.HTTP_STATUS, Kind.INVALID_FRAME, Kind.CONNECT_TIMEOUT})
_DIALLED: Final = frozenset({"stdio", "http", "sse"})


class _CallerSession:
    __slots__ = ("found", "listing", "opened", "opening", "subject", "used_at")

    def __init__(self, subject: str, opening: asyncio.Task[Session], used_at: float) -> None:
        self.subject = subject
        self.opening = opening
        self.opened: Session | None = None
        """The session, once a call has had it."""
        self.used_at = used_at
        self.found: DiscoveredLists | None = None
        """What the server lists in this session; None until it is asked, and after it has announced a change."""
        self.listing = asyncio.Lock()

    @property
    def session(self) -> Session | None:
        """None while the session is being opened, and if that failed."""
        is_there = self.opening.done() and not self.opening.cancelled() and self.opening.exception() is None
        return self.opening.result() if is_there else None

    @property
    def is_usable(self) -> bool:
        session = self.session
        return not self.opening.done() or (session is not None and session.peer.is_open)

    @property
    def is_idle(self) -> bool:
        session = self.session
        return self.opening.done() and (session is None or session.peer.is_idle)


class CallerSessions:
    """The sessions of single callers with one server, least recently used first."""

    def __init__(self, config: ServerConfig, dialer: Dialer, on_notice: Callable[[Notification], None]) -> None:
        self._config = config
        self._dialer = dialer
        self._on_notice = on_notice
        self._held: OrderedDict[str, _CallerSession] = OrderedDict()
        self._ending: dict[asyncio.Task[None], str] = {}
        """Sessions being ended, and whose they were."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._has_no_handshake: Session | None = None
        """The shared session of a server that was found not to speak the legacy era."""
        self.max_count = (
            MAX_PROCESSES if config.url is None else MAX_SIGNED_IN if config.is_per_caller else MAX_SESSIONS
        )

    def __len__(self) -> int:
        return len(self._held)

    def is_wanted(self, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> bool:
        """Whether a call of this caller needs a session of its own.

        With a server of both eras, a legacy caller that can be asked gets a legacy session: the tools may ask only there.
        """
        if self._config.is_per_caller:
            return True
        isolation = self._config.isolation
        if shared.identity.era is Era.LEGACY and capabilities and shared.peer.capabilities == capabilities:
            return False  # it is this caller's: there is only one client
        if isolation == "shared" or shared.transport not in _DIALLED:
            return False
        if isolation is None and (self._config.url is None or not can_be_asked(capabilities)):
            return False
        return self._era_for(shared, caller, capabilities) is Era.LEGACY

    def _era_for(self, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> Era:
        """In which era a session of this caller is opened. One for a modern server is opened only where it has a grant of its own."""
        if shared.identity.era is Era.LEGACY:
            return Era.LEGACY
        is_bridged_better = caller.era is Era.LEGACY and can_be_asked(capabilities)
        is_bridged = is_bridged_better and self._config.era == "auto" and shared is not self._has_no_handshake
        return Era.LEGACY if is_bridged else Era.MODERN

    def find(self, caller: Caller) -> Session | None:
        """The session with a modern server that has the caller's own grant, if it is open: one for all its requests."""
        held = self._held.get(self._key(caller, {}, Era.MODERN))
        session = None if held is None else held.opened
        if held is None or session is None or not session.peer.is_open:
            return None
        held.used_at = held.opening.get_loop().time()
        return session

    def _key(self, caller: Caller, capabilities: Mapping[str, Any], era: Era) -> str:
        """A modern server is told with each request what may be asked, so there is one session for each principal."""
        if era is Era.LEGACY:
            return self.key_of(caller, capabilities)
        return f"signed in {caller.principal.key} {self._rights(caller.principal)}"

    def key_of(self, caller: Caller, capabilities: Mapping[str, Any]) -> str:
        """Names what is a caller's own with this server."""
        return session_key(caller, capabilities) + self._rights(caller.principal)

    def _rights(self, principal: Principal) -> str:
        """What is exchanged for a token has the rights in that token: others have another session."""
        auth = self._config.auth
        if auth is None or auth.exchange is None:
            return ""
        rights = [principal.client_id, sorted(principal.scopes or ()), sorted(principal.groups)]
        return f" {encode_json(rights).decode()}"

    async def acquire(self, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> Session:
        """The session of this caller, opened at its first call. Returns the shared one if the server speaks only the modern era, and the
        caller has no grant of its own."""
        key = self._key(caller, capabilities, self._era_for(shared, caller, capabilities))
        held = self._held.get(key)
        if held is None or not held.is_usable:
            held = self._open(key, shared, caller, capabilities)
        self._held.move_to_end(key)
        loop = asyncio.get_running_loop()
        held.used_at = loop.time()
        await asyncio.wait({held.opening})
        if held.opening.cancelled():
            raise self._failure(Kind.CONNECTION_FAILED, "is not connected: it is being stopped")
        failure = held.opening.exception()
        if not isinstance(failure, GatewayFailure):
            held.used_at = loop.time()
            held.opened = held.opening.result()
            return held.opened
        self._drop(key, held)
        was_bridged = shared.identity.era is Era.MODERN and self._era_for(shared, caller, capabilities) is Era.LEGACY
        if was_bridged and failure.kind in _NO_SUCH_ERA:
            self._has_no_handshake = shared
        if not self._config.is_per_caller and shared.identity.era is Era.MODERN:
            return shared
        if self._has_no_handshake is shared and was_bridged:
            return await self.acquire(shared, caller, capabilities)
        raise failure.again(verdict=Verdict.DID_NOT_RUN)

    async def lists(self, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> DiscoveredLists | None:
        """What the server lists in the session of this caller; None where that is the shared session. Raises GatewayFailure."""
        session = await self.acquire(shared, caller, capabilities)
        held = self._held.get(self.key_of(caller, capabilities))
        if session is shared or held is None:
            return None
        async with held.listing:
            if held.found is None:
                limit_ms = self._config.request_timeout_ms
                try:
                    async with asyncio.timeout(limit_ms / 1000):
                        held.found = await discover(session)
                except TimeoutError:
                    why = f"did not answer its lists within {limit_ms} ms (discovery timed out)"
                    raise self._failure(Kind.CALL_TIMEOUT, why) from None
            return held.found

    def of(self, caller: Caller) -> list[Session]:
        """The sessions that belong to the legacy session of this caller."""
        mark = _mark(caller)
        return [held.session for key, held in self._held.items() if key.startswith(mark) and held.session is not None]

    def forget(self, subject: str) -> None:
        """End the sessions of a subject that may no longer call: another client may get its name."""
        for key, held in tuple(self._held.items()):
            if held.subject == subject:
                self._drop(key, held)

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for key, held in tuple(self._held.items()):
            self._drop(key, held)
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def sweep(self) -> None:
        """End sessions that have been idle for `IDLE_S`."""
        now = asyncio.get_running_loop().time()
        for key, held in tuple(self._held.items()):
            if not held.is_usable or (held.is_idle and now - held.used_at >= IDLE_S):
                self._drop(key, held)

    def _open(self, key: str, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> _CallerSession:
        former = self._held.get(key)
        if former is not None:
            self._drop(key, former)
        self._make_room(caller.principal.key)
        loop = asyncio.get_running_loop()
        dialling = self._dial(key, shared, caller, capabilities)
        opening = loop.create_task(dialling, name=f"caller session with {self._config.id}")
        held = self._held[key] = _CallerSession(caller.principal.key, opening, loop.time())
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP_S, self._sweep_again)
        return held

    async def _dial(self, key: str, shared: Session, caller: Caller, capabilities: Mapping[str, Any]) -> Session:
        limit_ms = self._config.connection_timeout_ms
        era = self._era_for(shared, caller, capabilities)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                session = await self._dialer.dial_for(caller.principal, shared, capabilities, era)
        except TimeoutError:
            why = f"did not open a session for this client within {limit_ms} ms (connection timed out)"
            limit = {"phase": "connect", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000}
            raise self._failure(Kind.CONNECT_TIMEOUT, why, limit) from None
        session.peer.on_notice = lambda notification: self._notice(key, notification)
        return session

    def _notice(self, key: str, notification: Notification) -> None:
        held = self._held.get(key)
        if held is not None and notification.method in LIST_CHANGED:
            held.found = None
        self._on_notice(notification)

    def _make_room(self, subject: str) -> None:
        """End the longest unused session of this principal, if it has as many as it may. Raises if all of them are busy."""
        own = [(key, held) for key, held in self._held.items() if held.subject == subject]
        most = self._config.max_sessions_per_client
        if list(self._ending.values()).count(subject) >= most:
            raise self._failure(Kind.OVERLOADED, "is still ending sessions of this client. Try again in a moment.")
        if len(own) < most and is_fair(len(own), self.max_count - len(self._held)):
            return
        idle = next(((key, held) for key, held in own if held.is_idle), None)
        if idle is None:
            whose = f"{len(own)} sessions of this client" if own else f"{len(self._held)} sessions of other clients"
            raise self._failure(Kind.OVERLOADED, f"has {whose} and no room for one more. Try again in a moment.")
        self._drop(*idle)

    def _failure(self, kind: Kind, why: str, details: dict[str, Any] | None = None) -> GatewayFailure:
        id_ = self._config.id
        return GatewayFailure(kind, f"{id_} {why}", server=id_, operation="connect", details=details)

    def _drop(self, key: str, held: _CallerSession) -> None:
        if self._held.get(key) is held:
            del self._held[key]
            task = asyncio.get_running_loop().create_task(_end(held))
            self._ending[task] = held.subject
            task.add_done_callback(self._ending.pop)

    def _sweep_again(self) -> None:
        self.sweep()
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(SWEEP_S, self._sweep_again) if self._held else None


async def _end(held: _CallerSession) -> None:
    if not held.opening.done():
        held.opening.cancel()
        await asyncio.wait({held.opening})
    session = held.session
    if session is not None:
        await session.peer.close()


def _mark(caller: Caller) -> str:
    return f"session {caller.session} " if caller.session is not None else f"subject {caller.principal.key} "


def session_key(caller: Caller, capabilities: Mapping[str, Any]) -> str:
    """Callers with the same key share a session of their own."""
    return _mark(caller) + encode_json(capabilities).decode()
