"""A recorder whose faults reach nobody: recording is never a reason for a call to fail.

The first fault is reported, and the connection is not recorded any further. Must not: change anything that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.recording import ConnectionRecorder, Headers, HttpExchangeRecorder


class GuardedRecorder:
    """A `ConnectionRecorder` around another one."""

    def __init__(self, inner: ConnectionRecorder, barrier: FaultBarrier) -> None:
        self._inner = inner
        self._barrier = barrier
        self._is_broken = False

    def passed(self, data: bytes, *, from_client: bool) -> None:
        self.attempt(lambda: self._inner.passed(data, from_client=from_client))

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> GuardedExchange:
        exchange = GuardedExchange(self)
        self.attempt(lambda: exchange.record(self._inner.requested(verb, path, headers, body)))
        return exchange

    def closed(self) -> None:
        self.attempt(self._inner.closed)

    def attempt(self, note: Callable[[], Any]) -> None:
        if not self._is_broken:
            self._is_broken = not self._barrier.run("recorder", note)


class GuardedExchange:
    """An `HttpExchangeRecorder` of a guarded connection."""

    def __init__(self, connection: GuardedRecorder) -> None:
        self._connection = connection
        self._inner: HttpExchangeRecorder | None = None

    def record(self, inner: HttpExchangeRecorder) -> None:
        self._inner = inner

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        if (inner := self._inner) is not None:
            self._connection.attempt(lambda: inner.answered(status, headers, body))

    def streaming(self, status: int, headers: Headers) -> None:
        if (inner := self._inner) is not None:
            self._connection.attempt(lambda: inner.streaming(status, headers))

    def events(self, data: bytes) -> None:
        if (inner := self._inner) is not None:
            self._connection.attempt(lambda: inner.events(data))

    def ended(self, *, by_client: bool) -> None:
        if (inner := self._inner) is not None:
            self._connection.attempt(lambda: inner.ended(by_client=by_client))
