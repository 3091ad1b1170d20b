"""One server's life: connect with bounded retries, discover, notice its end, come back by itself.

One task per enabled server drives `lifecycle`; everything that happens to the server happens there. Attempts of one series are
`maxRetries + 1`; a series that failed is followed by another after a pause, or sooner when somebody calls. Callers share the attempt under
way and are never kept waiting through a pause. Enforces S0/ECO-100, S0/ECO-101 and S0/ECO-200.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from pactgate.catalog.discovery import Discovered, discover
from pactgate.catalog.lifecycle import Happening, step
from pactgate.config.model import ServerConfig
from pactgate.core.events import (
    DiscoveryFailed,
    Emit,
    ServerConnected,
    ServerConnecting,
    ServerDisconnected,
    ServerDiscovered,
    ServerFailed,
)
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.model import ServerStatus
from pactgate.protocol.messages import Notification
from pactgate.upstreams.connect import Dialer, Session

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_PATIENCE_S: Final = 1.0
"""How long a caller waits for an attempt to reach a server whose last attempt failed."""


class Pauses(Struct, frozen=True):
    """How long to wait before trying again, in seconds."""

    first_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 30.0
    after_giving_up_s: float = 10.0
    between_lists_s: float = 1.0
    steady_s: float = 10.0
    """A connection that lasted this long was a good one: losing it is not a crash loop."""

    def before(self, retry: int) -> float:
        """The pause before the nth retry (1, 2, …): exponential, capped, jittered downwards so that servers don't retry in step."""
        full = min(self.cap_s, self.first_s * self.factor ** (retry - 1))
        return full * random.uniform(0.5, 1.0)


class Supervisor:
    """Owns the connection to one server."""

    def __init__(
        self,
        config: ServerConfig,
        dialer: Dialer,
        on_change: Callable[[], None],
        emit: Emit,
        pauses: Pauses | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self.config = config
        self.status = ServerStatus.DISCONNECTED if config.enabled else ServerStatus.DISABLED
        self.session: Session | None = None
        self.discovered = Discovered()
        self.last_error: str | None = None
        self.last_connected_at: str | None = None
        self.last_discovered_at: str | None = None
        self.attempts = 0
        self.settled = asyncio.Event()
        """Set once the first connection has been discovered, or has failed."""
        self._dialer = dialer
        self._on_change = on_change
        self._emit = emit
        self._pauses = pauses or Pauses()
        self._mask = mask
        self._failure: GatewayFailure | None = None
        self._attempt: asyncio.Future[Session]
        self._wake = asyncio.Event()
        self._is_resting = False
        self._is_failing = False
        self._relist = asyncio.Event()
        self._quick_ends = 0
        self._task: asyncio.Task[None] | None = None
        if not config.enabled:
            self.settled.set()

    def start(self) -> None:
        if self.config.enabled and self._task is None:
            self._attempt = self._next_attempt()
            self._task = asyncio.create_task(self._run(), name=f"supervisor {self.config.id}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self.config.enabled:
            self._step(Happening.STOPPED)

    async def ready(self) -> Session:
        """The connected session. Waits for an attempt under way, never for a pause between attempts; raises what the last one met."""
        session = self.session
        if session is not None and session.peer.is_open:
            return session
        if self._task is None or self._task.done():
            raise self._not_running()
        self._wake.set()
        if self._is_resting and self._failure is not None:
            raise self._failure.again(verdict=Verdict.DID_NOT_RUN)
        patience_s = _PATIENCE_S if self._is_failing else None
        done, _ = await asyncio.wait({self._attempt}, timeout=patience_s)
        if not done and self._failure is not None:
            raise self._failure.again(verdict=Verdict.DID_NOT_RUN)
        return done.pop().result()

    @property
    def trouble(self) -> str | None:
        """Why nothing of this server can be used right now, or None."""
        if self.status is ServerStatus.DISABLED:
            return None
        if self.status is ServerStatus.CONNECTED and self.settled.is_set():
            return self.last_error
        return self.last_error or ("still listing its tools" if self.session else "still connecting")

    def row(self) -> dict[str, Any]:
        """The state as the requirement document spells it, with what a person wants to see beside it."""
        identity = self.session.identity if self.session else None
        return {
            "serverId": self.config.id,
            "status": self.status.value,
            "transport": self.session.transport if self.session else ("http" if self.config.url else "stdio"),
            "era": identity.era.value if identity else None,
            "protocolVersion": identity.version if identity else None,
            "serverInfo": identity.server_info if identity else None,
            "toolCount": len(self.discovered.tools),
            "promptCount": len(self.discovered.prompts),
            "resourceCount": len(self.discovered.resources),
            "leftOut": list(self.discovered.left_out),
            "lastError": self.last_error,
            "lastConnectedAt": self.last_connected_at,
            "lastDiscoveredAt": self.last_discovered_at,
            "latencyMs": round(self.session.connect_ms, 1) if self.session else None,
            "attempts": self.attempts,
            "pid": self.session.pid if self.session else None,
        }

    # The one task.

    async def _run(self) -> None:
        try:
            while True:
                session = await self._connect_series()
                if session is None:
                    await self._pause(self._pauses.after_giving_up_s)
                else:
                    await self._live(session)
                    if self._quick_ends > 1:
                        await self._pause(self._pauses.before(self._quick_ends - 1))
        finally:
            self._attempt.set_exception(self._not_running())

    async def _connect_series(self) -> Session | None:
        self.attempts = 0
        for retry in range(self.config.max_retries + 1):
            if retry:
                await self._pause(self._pauses.before(retry))
            self.attempts = retry + 1
            session = await self._try_once()
            if session is not None:
                return session
            if self._failure is not None and self._failure.details.get("permanent"):
                break
        assert self._failure is not None
        self._failure.attempts = self.attempts
        self.last_error = f"{self._failure.message} (after {self.attempts} attempt{'s' * (self.attempts > 1)})"
        self._step(Happening.GAVE_UP)
        self._forget()
        self._emit(ServerFailed(self.config.id, self.attempts, self._failure.message))
        return None

    async def _try_once(self) -> Session | None:
        self._step(Happening.ATTEMPT_BEGAN)
        self._wake.clear()
        self._emit(ServerConnecting(self.config.id, self.attempts))
        limit_ms = self.config.connection_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                session = await self._dialer.dial()
        except TimeoutError:
            self._fail(self._too_slow(limit_ms))
        except GatewayFailure as failure:
            self._fail(_as_connect_failure(failure))
        else:
            self._connected(session)
            attempt, self._attempt = self._attempt, self._next_attempt()
            attempt.set_result(session)
            return session
        assert self._failure is not None
        attempt, self._attempt = self._attempt, self._next_attempt()
        attempt.set_exception(self._failure.again())
        return None

    async def _live(self, session: Session) -> None:
        """From connected to lost."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        lister = asyncio.create_task(self._keep_listing(session), name=f"lists of {self.config.id}")
        try:
            reason = await session.peer.ended()
            self._lost(reason)
            self._quick_ends = self._quick_ends + 1 if loop.time() - began < self._pauses.steady_s else 0
        finally:
            self.session = None
            lister.cancel()
            await asyncio.shield(session.peer.close())

    async def _keep_listing(self, session: Session) -> None:
        """List the tools now and after every change notice; a flood of notices costs one list per pause."""
        failures = 0
        while True:
            self._relist.clear()
            failures = failures + 1 if await self._list(session) else 0
            if failures:
                await asyncio.sleep(self._pauses.before(failures))
            else:
                await self._relist.wait()
                await asyncio.sleep(self._pauses.between_lists_s)

    async def _list(self, session: Session) -> bool:
        started = time.perf_counter()
        limit_ms = self.config.request_timeout_ms
        problem: str | None = None
        try:
            async with asyncio.timeout(limit_ms / 1000):
                self.discovered = await discover(session)
        except TimeoutError:
            problem = f"{self.config.id} did not list its tools within {limit_ms} ms"
        except GatewayFailure as failure:
            problem = failure.message
        if problem is not None:
            problem = self._mask(problem)
            self.discovered = Discovered()
            self.last_error = problem
            self._emit(DiscoveryFailed(self.config.id, problem))
        else:
            self.last_discovered_at = _now()
            took_ms = (time.perf_counter() - started) * 1000
            self._emit(ServerDiscovered(self.config.id, len(self.discovered.tools), took_ms))
        self.settled.set()
        self._on_change()
        return problem is not None

    # What happens to it.

    def _connected(self, session: Session) -> None:
        session.peer.on_notice = self._notice
        self.session = session
        self.last_error = None
        self._failure = None
        self._is_failing = False
        self.last_connected_at = _now()
        self._step(Happening.CONNECTED)
        identity = session.identity
        self._emit(
            ServerConnected(self.config.id, identity.era.value, identity.version, self.attempts, session.connect_ms)
        )

    def _lost(self, reason: GatewayFailure) -> None:
        self.session = None
        reason.message = self._mask(reason.message)
        self._failure = reason
        self.last_error = reason.message
        self._step(Happening.LOST)
        self._emit(ServerDisconnected(self.config.id, reason.message))

    def _fail(self, failure: GatewayFailure) -> None:
        failure.server = self.config.id
        failure.operation = "connect"
        failure.attempts = self.attempts
        failure.message = self._mask(failure.message)
        self._failure = failure
        self._is_failing = True
        self.last_error = failure.message
        self._step(Happening.ATTEMPT_FAILED)
        self.settled.set()

    def _forget(self) -> None:
        """A server we gave up on offers nothing."""
        if self.discovered.tools:
            self.discovered = Discovered()
            self._on_change()

    def _notice(self, notification: Notification) -> None:
        if notification.method == TOOLS_CHANGED:
            self._relist.set()

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than until somebody asks for the server; a moment's rest there always is."""
        rest_s = min(seconds, self._pauses.first_s)
        self._is_resting = True
        await asyncio.sleep(rest_s)
        self._is_resting = False
        try:
            async with asyncio.timeout(seconds - rest_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _next_attempt(self) -> asyncio.Future[Session]:
        """What callers wait for: the outcome of the attempt under way, or of the next one."""
        attempt: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        attempt.add_done_callback(_retrieve)
        return attempt

    def _step(self, happening: Happening) -> None:
        self.status = step(self.status, happening)
        self._on_change()

    def _not_running(self) -> GatewayFailure:
        if self.status is ServerStatus.DISABLED:
            return GatewayFailure(Kind.UNKNOWN_TOOL, f"The server {self.config.id} is disabled.", server=self.config.id)
        return GatewayFailure(
            Kind.CONNECTION_FAILED, f"{self.config.id} is not connected: the gateway is stopping", server=self.config.id
        )

    def _too_slow(self, limit_ms: int) -> GatewayFailure:
        return GatewayFailure(
            Kind.CONNECT_TIMEOUT,
            f"{self.config.id} did not connect within {limit_ms} ms (timeout of connect)",
            details={"phase": "connect", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
        )


def _as_connect_failure(failure: GatewayFailure) -> GatewayFailure:
    """Whatever went wrong while connecting, no call was running: it is a failed connection, and the cause stays in its text."""
    if failure.kind in (Kind.CONNECTION_FAILED, Kind.CONNECT_TIMEOUT):
        return failure
    return GatewayFailure(
        Kind.CONNECTION_FAILED, failure.message, details={**failure.details, "cause": failure.kind.value}
    )


def _retrieve(attempt: asyncio.Future[Session]) -> None:
    """Nobody may be waiting for this attempt; its failure is in the state all the same."""
    if not attempt.cancelled():
        attempt.exception()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
