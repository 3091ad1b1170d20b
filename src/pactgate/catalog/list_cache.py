"""The cached lists of one connected server: fetched on connect, after each `list_changed` notification and on demand.

Refreshes are single-flight: callers that ask at the same time share one request. A failed refresh clears the cache, unless only a sign-in
is missing: then the last lists stay, and the problem is said beside them.
Enforces S0/ECO-001: the same server state gives the same lists, and a failed refresh is never "success, no tools".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.change_watcher import LIST_CHANGED
from pactgate.catalog.discovery import DiscoveredLists, Hints, discover
from pactgate.catalog.waiting import quiet_future, utc_now, wait_for
from pactgate.core.events import DiscoveryFailed, Emit, ServerDiscovered
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.protocol.cache_hints import STALE, Hint
from pactgate.protocol.messages import Notification
from pactgate.upstreams.dialer import Session


class ListCache:
    """The lists of one server, as the server last answered them."""

    def __init__(
        self, server: str, on_change: Callable[[], None], emit: Emit, backoff: Backoff, mask: Callable[[str], str]
    ) -> None:
        self.found = DiscoveredLists()
        self.listed_at: str | None = None
        self.problem: str | None = None
        self.failure: GatewayFailure | None = None
        """Why the last refresh failed; None if it succeeded."""
        self.settled = asyncio.Event()
        """Set after the first refresh, successful or not, and when the server could not be reached."""
        self.answered = asyncio.Event()
        """Set when the server has answered in this run."""
        self.awaited_until = 0.0
        """Until then, in the time of the event loop, a list of all servers waits for `settled`."""
        self._server = server
        self._on_change = on_change
        self._emit = emit
        self._backoff = backoff
        self._mask = mask
        self._fresh_since: float | None = None
        self.is_recalled = False
        """Whether the lists are those of an earlier run, and the server has not answered yet."""
        self._hints: Hints = {}
        self._hinted_at = 0.0
        self._noticed: set[str] = set()
        self._announced: set[str] = set()
        self._wanted = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._is_asking = False
        self._next: asyncio.Future[None] | None = None

    async def run(
        self, session: Session, limit_ms: int, max_age_s: float, sends_list_changed: Callable[[Session], bool]
    ) -> None:
        """Refresh the lists until cancelled; the supervisor cancels when the connection ends.

        Many `list_changed` notifications cost one refresh per pause. A server that sends none is asked again after `max_age_s`.
        """
        failures = 0
        try:
            while True:
                self._wanted.clear()
                self._is_urgent.clear()
                failures = 0 if await self._list(session, limit_ms) else failures + 1
                if failures:
                    await wait_for(self._is_urgent, self._backoff.before(failures))
                else:
                    listed_at = time.monotonic()
                    await wait_for(self._wanted, None if sends_list_changed(session) else max_age_s)
                    await wait_for(self._is_urgent, listed_at + self._backoff.between_lists_s - time.monotonic())
        finally:
            self._resolve_waiters(self._disconnected())

    def await_first(self, limit_s: float) -> None:
        """The server is being connected: lists of all servers wait for its first answer, for this long at most."""
        if not self.settled.is_set():
            self.awaited_until = asyncio.get_running_loop().time() + limit_s

    @property
    def has_answered(self) -> bool:
        """Whether the cache holds an answer of the server."""
        return self._fresh_since is not None

    def is_fresh(self, max_age_s: float) -> bool:
        if self._fresh_since is None or self.is_recalled:
            return False
        return time.monotonic() - self._fresh_since <= max_age_s

    async def ask(self) -> None:
        """Wait for the next answer of the server: single-flight, so a refresh in progress serves everybody. Raises GatewayFailure."""
        answer = self._next
        if answer is None:
            answer = self._next = quiet_future()
        if not self._is_asking:
            self._is_urgent.set()
            self._wanted.set()
        await asyncio.wait({answer})
        answer.result()

    def notice(self, notification: Notification) -> None:
        kind = LIST_CHANGED.get(notification.method)
        if kind is not None:
            self._noticed.add(kind)
            self._wanted.set()

    def hint(self, method: str) -> Hint:
        """The remaining time to live of a list. An expired list is refreshed."""
        said = self._hints.get(method)
        if said is None or self._fresh_since is None:
            return STALE
        left = said.after((time.monotonic() - self._hinted_at) * 1000)
        if said.ttl_ms > 0 and left.ttl_ms == 0:
            self._wanted.set()
        return left

    def recall(self, found: DiscoveredLists) -> None:
        """Fill the cache with what the server listed in an earlier run."""
        self.found = found
        self.is_recalled = True
        self._fresh_since = time.monotonic()
        self.settled.set()

    def take_announced(self) -> set[str]:
        """The lists that the server announced as changed and that were refreshed since. Returns each once."""
        confirmed, self._announced = self._announced, set()
        return confirmed

    def forget(self) -> None:
        """Empty the cache: the server is gone or disabled."""
        self.found, self.problem, self.failure, self._fresh_since = DiscoveredLists(), None, None, None
        self.is_recalled = False

    async def _list(self, session: Session, limit_ms: int) -> bool:
        started = time.monotonic()
        failure: GatewayFailure | None = None
        noticed, self._noticed = self._noticed, set()
        self._is_asking = True
        try:
            hints: Hints = {}
            async with asyncio.timeout(limit_ms / 1000):
                found = await discover(session, self.found, hints)
        except TimeoutError:
            session.peer.doubt()
            failure = self._too_slow(limit_ms)
        except GatewayFailure as problem:
            failure = problem
        else:
            self._accept(found, started)
            self._hints, self._hinted_at = hints, started
            self._announced |= noticed
        finally:
            self._is_asking = False
        if failure is not None:
            self._reject(failure)
        self.settled.set()
        self._on_change()
        self._resolve_waiters(failure)
        return failure is None

    def _accept(self, found: DiscoveredLists, started: float) -> None:
        before = self.found.failed
        if found != self.found:
            self.found = found
        self.problem = self.failure = None
        self.is_recalled = False
        self.answered.set()
        self.listed_at = utc_now()
        self._fresh_since = time.monotonic()
        self._emit(ServerDiscovered(self._server, len(found.tools), (self._fresh_since - started) * 1000))
        for reason in found.failed:
            if reason not in before:
                self._emit(DiscoveryFailed(self._server, reason))

    def _reject(self, failure: GatewayFailure) -> None:
        failure.reword(self._mask)
        if failure.kind is not Kind.AUTHORIZATION_REQUIRED:  # a sign-in that has ended changes no tool
            self.forget()
        self.problem, self.failure = failure.public, failure
        self._emit(DiscoveryFailed(self._server, failure.message))

    def _resolve_waiters(self, failure: GatewayFailure | None) -> None:
        answer, self._next = self._next, None
        if answer is None:
            return
        if failure is None:
            answer.set_result(None)
        else:
            answer.set_exception(failure.shared())

    def _disconnected(self) -> GatewayFailure:
        message = f"{self._server} disconnected while the gateway fetched its lists"
        return GatewayFailure(
            Kind.CONNECTION_LOST, message, server=self._server, operation="discover", verdict=Verdict.DID_NOT_RUN
        )

    def _too_slow(self, limit_ms: int) -> GatewayFailure:
        message = f"{self._server} did not answer its lists within {limit_ms} ms (discovery timed out)"
        return GatewayFailure(Kind.CALL_TIMEOUT, message, server=self._server, operation="discover")
