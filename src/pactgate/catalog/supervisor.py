"""The supervisor of one server: connects with bounded retries and backoff, notices the end of the connection, and reconnects.

One task per enabled server drives the state machine of `lifecycle`. A series has `maxRetries + 1` attempts; after a failed series the
supervisor pauses, longer each time, and begins the next one when the pause is over. As a circuit breaker does, it makes one attempt sooner
for a caller (half-open). While the circuit is open, callers get the last failure at once; they never wait through a pause. Connecting is
single-flight: callers share the attempt in progress. Enforces S0/ECO-100, S0/ECO-101, S0/ECO-200 and S0/ECO-201.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.caller_sessions import CallerSessions
from pactgate.catalog.change_watcher import ChangeWatcher
from pactgate.catalog.connect_failures import as_connect_failure, connect_timeout
from pactgate.catalog.discovery import DiscoveredLists
from pactgate.catalog.last_lists import LastLists
from pactgate.catalog.lazy_start import LazyStart
from pactgate.catalog.lifecycle import Trigger, next_status
from pactgate.catalog.list_cache import ListCache
from pactgate.catalog.tool_reports import ToolReports
from pactgate.catalog.waiting import quiet_future, utc_now, wait_for
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import cut
from pactgate.core.events import (
    Emit,
    ServerConnected,
    ServerConnecting,
    ServerDisconnected,
    ServerFailed,
)
from pactgate.core.failures import EcosystemCode, GatewayFailure, Kind, Verdict
from pactgate.core.values import Caller, ServerStatus
from pactgate.protocol.cache_hints import STALE, Hint
from pactgate.protocol.era_bridge import can_be_asked
from pactgate.protocol.versions import Era
from pactgate.state.known_lists import KnownLists
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.negotiate import Identity

_HALF_OPEN_WAIT_S: Final = 1.0
"""How long a caller waits for an attempt (half-open) when the last one failed."""
_RELIST_AFTER_S: Final = 60.0
_ERROR_CHARS: Final = 1000
MAX_HISTORY: Final = 20
_FAILURES: Final = frozenset({Trigger.ATTEMPT_FAILED, Trigger.GAVE_UP, Trigger.LOST})


def _ignore(server: str, uri: str) -> None:
    return


class Supervisor:
    """Owns the connection to one server, its list cache, its change watcher and its caller sessions."""

    def __init__(
        self,
        config: ServerConfig,
        dialer: Dialer,
        on_change: Callable[[], None],
        emit: Emit,
        *,
        on_updated: Callable[[str, str], None] = _ignore,
        backoff: Backoff | None = None,
        mask: Callable[[str], str] = str,
        max_age_s: float = _RELIST_AFTER_S,
        known_lists: KnownLists | None = None,
    ) -> None:
        self.config = config
        self.status = ServerStatus.DISCONNECTED if config.enabled else ServerStatus.DISABLED
        self.session: Session | None = None
        self.last_error: str | None = None
        self.last_error_code: EcosystemCode | None = None
        self.last_error_detail: str | None = None
        """The last error with what the server itself wrote. Only for the operator."""
        self.last_connected_at: str | None = None
        self.attempts = 0
        self.history: deque[dict[str, Any]] = deque(maxlen=MAX_HISTORY)
        self._dialer = dialer
        self._on_change = on_change
        self._emit = emit
        self._backoff = backoff or Backoff()
        self._mask = mask
        self._max_age_s = max_age_s
        self.lists = ListCache(config.id, on_change, emit, self._backoff, mask)
        self.change_watcher = ChangeWatcher(config.id, self.lists.notice, on_updated, emit, self._backoff)
        self.caller_sessions = CallerSessions(config, dialer, self.lists.notice)
        self._known: LastLists | None = None
        self._lazy: LazyStart | None = None
        if known_lists is not None and known_lists.are_kept(config):
            self._known = LastLists(config, self.lists, known_lists)
            if config.start == "lazy":
                self._lazy = LazyStart(config, self.lists, self.change_watcher, self._known)
        self.is_asleep = False
        """Whether a lazy server waits for its next call. Its lists are those of the last time."""
        self._last_identity: Identity | None = None
        self._failure: GatewayFailure | None = None
        self._attempt: asyncio.Future[Session]
        self._wake = asyncio.Event()
        """A caller needs the server."""
        self._retry = asyncio.Event()
        """The operator has changed something: the pause ends at once."""
        self._failed_series = 0
        self._is_circuit_open = False
        self._is_failing = False
        self._crash_count = 0
        self.tool_reports = ToolReports(config.id, emit, mask, otherwise=self.change_watcher.notice)
        self._task: asyncio.Task[None] | None = None
        if not config.enabled:
            self.lists.settled.set()

    def start(self) -> None:
        if self.config.enabled and self._task is None:
            self._attempt = quiet_future()
            self.lists.await_first(self.config.connection_timeout_ms / 1000)
            self._task = asyncio.create_task(self._run(), name=f"supervisor {self.config.id}")

    async def stop(self) -> None:
        await self._end_task()
        if self.status is not ServerStatus.DISABLED:
            self._step(Trigger.STOPPED)

    def reconfigure(self, config: ServerConfig) -> None:
        """Apply settings that are read at every use, and try a server that is down again: the reason may be gone."""
        self.config = config
        if self.session is None:
            self._retry.set()
            self._wake.set()

    def enable(self) -> None:
        """Connect a disabled server."""
        if self.status is ServerStatus.DISABLED:
            self.config = replace(self.config, enabled=True)
            self.lists.settled.clear()
            self._step(Trigger.ENABLED)
            self.start()

    async def disable(self) -> None:
        """End the connection. Running calls fail, and the server stays disconnected until it is enabled again."""
        if self.status is not ServerStatus.DISABLED:
            self.config = replace(self.config, enabled=False)
            await self._end_task()
            self._note_error(None)
            self.lists.forget()
            self.lists.settled.set()
            self._step(Trigger.DISABLED)

    @property
    def identity(self) -> Identity | None:
        """What the server says of itself; or said before it fell asleep, or in the run whose lists are shown until it is connected."""
        if self.session is not None:
            return self.session.identity
        return self._last_identity if self.is_asleep or self.lists.is_recalled else None

    async def ready(self) -> Session:
        """The connected session. Waits for an attempt in progress, never for a pause (circuit open): then it raises the last failure."""
        session = self.session
        if self._lazy is not None:
            self._lazy.is_called = True
        if session is not None and session.peer.is_open:
            return session
        if self._task is None or self._task.done():
            raise self._not_running()
        self._wake.set()
        if self._is_circuit_open and self._failure is not None:
            raise self._failure.shared(verdict=Verdict.DID_NOT_RUN)
        wait_s = _HALF_OPEN_WAIT_S if self._is_failing else None
        done, _ = await asyncio.wait({self._attempt}, timeout=wait_s)
        if not done and self._failure is not None:
            raise self._failure.shared(verdict=Verdict.DID_NOT_RUN)
        return done.pop().result()

    async def session_for(self, caller: Caller, capabilities: Mapping[str, Any]) -> Session:
        """The session for this caller: the shared one, or one of its own if the server may ask the caller something."""
        shared = await self.ready()
        if not self.caller_sessions.is_wanted(shared, caller, capabilities):
            return shared
        return await self.caller_sessions.acquire(shared, caller, capabilities)

    def wants_own_session(self, caller: Caller, capabilities: Mapping[str, Any]) -> bool:
        """Whether `session_for` would return a session of its own. True also while the server is not connected."""
        return self.session is None or self.caller_sessions.is_wanted(self.session, caller, capabilities)

    def has_lists_of(self, caller: Caller, capabilities: Mapping[str, Any]) -> bool:
        """Whether the caller's lists are those of its own session (`isolation: session`)."""
        shared = self.session
        is_shared = self.config.isolation != "session" or self.config.is_per_caller
        if is_shared or shared is None or not can_be_asked(capabilities):
            return False
        return shared.identity.era is Era.LEGACY and self.caller_sessions.is_wanted(shared, caller, capabilities)

    async def lists_of(self, caller: Caller, capabilities: Mapping[str, Any]) -> DiscoveredLists | None:
        """The server's lists in the caller's own session; None where that turns out to be the shared one. Raises GatewayFailure."""
        return await self.caller_sessions.lists(await self.ready(), caller, capabilities)

    async def refresh(self, *, force: bool, max_age_s: float) -> bool:
        """Fetch the lists unless they are younger than `max_age_s`. Returns whether the server was asked. Raises GatewayFailure."""
        if self.is_asleep and not force:
            return False
        await self.ready()
        if self.lists.is_fresh(max_age_s) and not force:
            return False
        await self.lists.ask()
        return True

    @property
    def trouble(self) -> str | None:
        """Why the server is unavailable now, or None."""
        if self.status is ServerStatus.DISABLED:
            return None
        if self.status is ServerStatus.CONNECTED:
            return self.lists.problem or (None if self.lists.has_answered else "still fetching its lists")
        if self.is_asleep:
            return None
        return self.last_error or (None if self.lists.is_recalled else "still connecting")

    def hint(self, method: str) -> Hint | None:
        """The cache hint of this server for a cacheable method; None if the server does not contribute to the result."""
        session = self.session
        if self.status is ServerStatus.DISABLED:
            return None
        if session is None or self.trouble is not None:
            return STALE
        if method == "server/discover":
            return session.hint()
        return self.lists.hint(method) if method.partition("/")[0] in session.identity.capabilities else None

    # -- the task

    async def _run(self) -> None:
        try:
            await self._recall()
            while True:
                if self.is_asleep:
                    await self._wake.wait()
                    self.is_asleep = False
                session = await self._connect_series()
                if session is None:
                    self._failed_series += 1
                    await self._pause(self._backoff.after_series(self._failed_series), self._backoff.early_s)
                    if self._wake.is_set():
                        self._failed_series = 0
                else:
                    self._failed_series = 0
                    await self._supervise(session)
                    if self._crash_count > 1 and not self.is_asleep:
                        await self._pause(self._backoff.before(self._crash_count - 1), self._backoff.first_s)
        finally:
            self._attempt.set_exception(self._not_running())

    async def _recall(self) -> None:
        """List what was listed last. A lazy server whose lists are known is not started yet."""
        if self._known is not None and not self.lists.has_answered:
            self._last_identity = await self._known.recall()
            self.is_asleep = self._lazy is not None and self._last_identity is not None
            self._on_change()

    async def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        await self.caller_sessions.close()

    async def _connect_series(self) -> Session | None:
        """At most `maxRetries + 1` attempts; one if a caller ended the pause before."""
        is_for_caller = self._is_failing and self._wake.is_set() and not self._retry.is_set()
        self.attempts = 0
        for retry in range(1 if is_for_caller else self.config.max_retries + 1):
            if retry:
                await self._pause(self._backoff.before(retry), self._backoff.first_s)
            self.attempts = retry + 1
            session = await self._try_once()
            if session is not None:
                return session
            if self._failure is not None and self._failure.details.get("permanent"):
                break
        assert self._failure is not None
        self._failure.attempts = self.attempts
        self._note_error(self._failure, f" (after {self.attempts} attempt{'s' * (self.attempts > 1)})")
        if self._failure.kind is not Kind.AUTHORIZATION_REQUIRED:  # a sign-in that has ended changes no tool
            self.lists.forget()
        self._step(Trigger.GAVE_UP)
        self._emit(ServerFailed(self.config.id, self.attempts, self._failure.message, _code_of(self._failure)))
        return None

    async def _try_once(self) -> Session | None:
        self._step(Trigger.ATTEMPT_BEGAN)
        self._wake.clear()
        self._retry.clear()
        self._emit(ServerConnecting(self.config.id, self.attempts))
        limit_ms = self.config.connection_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                session = await self._dialer.dial()
        except TimeoutError:
            self._fail(connect_timeout(self.config.id, limit_ms))
        except GatewayFailure as failure:
            self._fail(as_connect_failure(failure))
        else:
            self._connected(session)
            attempt, self._attempt = self._attempt, quiet_future()
            attempt.set_result(session)
            return session
        assert self._failure is not None
        attempt, self._attempt = self._attempt, quiet_future()
        attempt.set_exception(self._failure.shared())
        return None

    async def _supervise(self, session: Session) -> None:
        """Supervise a connected session until it is lost."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        sends_list_changed = self.change_watcher.sends_list_changed if self._lazy is None else _is_told
        listing = self.lists.run(session, self.config.request_timeout_ms, self._max_age_s, sends_list_changed)
        lister = asyncio.create_task(listing, name=f"lists of {self.config.id}")
        watcher = asyncio.create_task(self.change_watcher.run(session), name=f"changes of {self.config.id}")
        keeper = None
        if self._known is not None and self._lazy is None:
            keeper = asyncio.create_task(self._known.run(session), name=f"last lists of {self.config.id}")
        try:
            reason = await self._end_of(session)
            if reason is None:
                return
            self._lost(reason)
            self._crash_count = self._crash_count + 1 if loop.time() - began < self._backoff.steady_s else 0
        finally:
            self.session = None
            for task in (lister, watcher, keeper):
                if task is not None:
                    task.cancel()
            await asyncio.shield(self._disconnect(session, watcher))

    async def _end_of(self, session: Session) -> GatewayFailure | None:
        """Wait until the connection ends by itself, and say why; or until a lazy server is idle: then None, and no call finds it."""
        if self._lazy is None:
            return await session.peer.ended()
        ended = asyncio.ensure_future(session.peer.ended())
        idle = asyncio.ensure_future(self._lazy.until_idle(session, lambda: len(self.caller_sessions)))
        try:
            await asyncio.wait({ended, idle}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                return ended.result()
            self._fall_asleep(session, self._lazy)
            await self._lazy.last_calls(session)
            return None
        finally:
            for one in (ended, idle):
                one.cancel()
            await asyncio.wait({ended, idle})

    def _fall_asleep(self, session: Session, lazy: LazyStart) -> None:
        self._last_identity, self.session = session.identity, None
        self.is_asleep = self.lists.has_answered
        lazy.is_called = False
        self._wake.clear()
        self._step(Trigger.STOPPED)

    async def _disconnect(self, session: Session, watcher: asyncio.Task[None]) -> None:
        await session.peer.close()
        await self.change_watcher.close()
        await asyncio.wait({watcher})
        if self._known is not None and self._lazy is None:
            await self._known.keep(session)

    # -- state changes

    def _connected(self, session: Session) -> None:
        session.peer.on_notice = self.tool_reports.notice if session.is_ours else self.change_watcher.notice
        self.session = session
        self.tool_reports.not_reloaded = None
        self._note_error(None)
        self._failure = None
        self._is_failing = False
        self.last_connected_at = utc_now()
        self._step(Trigger.CONNECTED)
        identity = session.identity
        self._emit(
            ServerConnected(self.config.id, identity.era.value, identity.version, self.attempts, session.connect_ms)
        )

    def _lost(self, reason: GatewayFailure) -> None:
        self.session = None
        reason.reword(self._mask)
        self._failure = reason
        self._note_error(reason)
        self.lists.settled.set()
        self._step(Trigger.LOST)
        self._emit(ServerDisconnected(self.config.id, reason.message, _code_of(reason)))

    def _fail(self, failure: GatewayFailure) -> None:
        failure.server = self.config.id
        failure.operation = "connect"
        failure.attempts = self.attempts
        failure.reword(self._mask)
        self._failure = failure
        self._is_failing = True
        self._note_error(failure)
        self.lists.settled.set()
        self._step(Trigger.ATTEMPT_FAILED)

    def _note_error(self, failure: GatewayFailure | None, more: str = "") -> None:
        texts = (None, None) if failure is None else (failure.public, failure.message)
        self.last_error, self.last_error_detail = (
            text and cut(text, _ERROR_CHARS).removesuffix("." if more else "") + more for text in texts
        )
        self.last_error_code = None if failure is None else failure.ecosystem

    async def _pause(self, seconds: float, open_s: float) -> None:
        """Wait. The circuit is open for at most `open_s`; after that a caller ends the pause."""
        rest_s = min(seconds, open_s)
        self._is_circuit_open = True
        await wait_for(self._retry, rest_s)
        self._is_circuit_open = False
        await wait_for(self._wake, seconds - rest_s)

    def _step(self, trigger: Trigger) -> None:
        self.status = next_status(self.status, trigger)
        what = {"time": utc_now(), "event": trigger.value, "status": self.status.value}
        self.history.append({**what, "reason": self.last_error} if trigger in _FAILURES else what)
        self._on_change()

    def _not_running(self) -> GatewayFailure:
        if not self.config.enabled:
            return GatewayFailure(Kind.UNKNOWN_TOOL, f"The server {self.config.id} is disabled.", server=self.config.id)
        return GatewayFailure(
            Kind.CONNECTION_FAILED, f"{self.config.id} is not connected: it is being stopped", server=self.config.id
        )


def _code_of(failure: GatewayFailure) -> str:
    return str(failure.ecosystem or failure.code)


def _is_told(_: Session) -> bool:
    """A lazy server is asked for its lists at each start, and not in between: that would keep it awake."""
    return True
