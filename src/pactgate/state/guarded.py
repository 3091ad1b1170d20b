"""A cache store that can't hurt: whatever the store behind it does, asking this one gives an answer soon, or a miss.

A store that raises, does not answer in time, or answers nonsense is a counted miss; after a few in a row it is left alone for a
moment, so that a dead one does not slow down every call. What was dropped is not read again even where the store could not be
reached: entries of that tag count as missing until a drop has succeeded. A store in this process is asked without suspension; it must
not block, which nothing here could cut short. One event loop. Must not: raise, or wait longer than its patience. Enforces S1/XC-002.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pactgate.state.ports import MISS, CacheStore, Lookup, StoreFailure

PATIENCE_S: Final = 0.05
"""How long a remote store may take; a call is not worth more waiting than that."""
FAULTS_IN_A_ROW: Final = 3
REST_S: Final = 1.0
MAX_UNANSWERED: Final = 256
"""Questions a remote store has not answered, those that ignore their cancellation included."""
CLOSING_S: Final = 1.0

STORE_FAULTS: Final = (
    StoreFailure,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a store may raise by its contract, and the families of errors a broken one raises without meaning to."""

OnFault = Callable[[str, str], None]
"""Told the operation and the reason, each time a store fails."""
T = TypeVar("T")


class GuardedStore:
    """A `CacheStore` and what is known about its health."""

    def __init__(
        self,
        store: CacheStore,
        *,
        on_fault: OnFault | None = None,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.faults = 0
        self._store = store
        self._on_fault = on_fault
        self._patience_s = patience_s
        self._clock = clock
        self._faults_in_a_row = 0
        self._rests_until = 0.0
        self._undropped: dict[str, int] = {}
        """Tags whose entries may not be read, each with the number of the drop under way, or 0 when there is none."""
        self._drops = 0
        self._unanswered: set[asyncio.Future[Any]] = set()

    def look(self, key: bytes, tag: str) -> Lookup | Awaitable[Lookup]:
        """The entry or a miss; or something to wait for that becomes one of the two."""
        if tag in self._undropped and not self._is_dropped_now(tag):
            return MISS
        has_trouble = self._faults_in_a_row or self._unanswered
        if has_trouble and not self._may_ask():
            return MISS
        try:
            found = self._store.get(key)
            if not isinstance(found, Lookup):
                return self._answer("get", self._begin(found), MISS)
        except STORE_FAULTS as fault:
            return self._failed("get", repr(fault), MISS)
        self._faults_in_a_row = 0
        return found

    def keep(self, key: bytes, value: bytes, *, ttl_ms: int, tag: str, mark: bytes) -> None:
        """Store an entry if that is possible. A remote store is not waited for."""
        if not self._may_ask():
            return
        try:
            kept = self._store.put(key, value, ttl_ms=ttl_ms, tag=tag, mark=mark)
            if not isinstance(kept, bool):
                self._begin(self._answer("put", self._begin(kept), False))
                return
        except STORE_FAULTS as fault:
            self._failed("put", repr(fault), False)
            return
        self._faults_in_a_row = 0

    def drop(self, tag: str) -> None:
        """From now on nothing that was stored with this tag is found, whether or not the store can be reached."""
        self._undropped[tag] = 0
        self._try_drop(tag)

    async def close(self) -> None:
        """End what a remote store has not answered yet."""
        for pending in self._unanswered:
            pending.cancel()
        if self._unanswered:
            await asyncio.wait(self._unanswered, timeout=CLOSING_S)

    def _is_dropped_now(self, tag: str) -> bool:
        if self._undropped[tag] == 0:
            self._try_drop(tag)
        return tag not in self._undropped

    def _try_drop(self, tag: str) -> None:
        if not self._may_ask():
            return
        try:
            gone = self._store.drop(tag)
            if not isinstance(gone, int):
                self._drops += 1
                self._begin(self._await_drop(tag, self._drops, self._begin(gone)))
                self._undropped[tag] = self._drops
                return
        except STORE_FAULTS as fault:
            self._failed("drop", repr(fault), 0)
            return
        self._faults_in_a_row = 0
        del self._undropped[tag]

    async def _await_drop(self, tag: str, number: int, asked: asyncio.Future[int]) -> None:
        gone = await self._answer("drop", asked, -1)
        if self._undropped.get(tag) != number:
            return  # a later drop has taken over
        if gone >= 0:
            del self._undropped[tag]
        else:
            self._undropped[tag] = 0

    def _begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Let something run, as ours until it ends, even where it ignores being cancelled."""
        task = asyncio.ensure_future(work)
        self._unanswered.add(task)
        task.add_done_callback(self._let_go)
        return task

    async def _answer(self, operation: str, asked: asyncio.Future[T], otherwise: T) -> T:
        """What a remote store says within our patience."""
        try:
            await asyncio.wait({asked}, timeout=self._patience_s)
        finally:
            asked.cancel()
        if not asked.done():
            return self._failed(operation, f"no answer within {self._patience_s} s", otherwise)
        if asked.cancelled():
            return self._failed(operation, "it gave up", otherwise)
        raised = asked.exception()
        if raised is not None:
            return self._failed(operation, repr(raised), otherwise)
        answer: object = asked.result()
        if not isinstance(answer, type(otherwise)):
            return self._failed(operation, f"it answered with {type(answer).__name__}", otherwise)
        self._faults_in_a_row = 0
        return answer

    def _let_go(self, task: asyncio.Future[Any]) -> None:
        self._unanswered.discard(task)
        if not task.cancelled():
            task.exception()

    def _may_ask(self) -> bool:
        if self._faults_in_a_row >= FAULTS_IN_A_ROW and self._clock() < self._rests_until:
            return False
        return len(self._unanswered) < MAX_UNANSWERED

    def _failed(self, operation: str, reason: str, otherwise: T) -> T:
        self.faults += 1
        self._faults_in_a_row += 1
        self._rests_until = self._clock() + REST_S
        if self._on_fault is not None:
            self._on_fault(operation, reason)
        return otherwise
