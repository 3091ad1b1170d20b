"""What the gateway asks of a store, and what it means when a store fails.

A cache is an optimisation, never the authority on a call: whoever asks one must have a way on without it. A count of calls is.
Interfaces and the values they exchange; nothing here does anything. Enforces the outer half of S1/XC-002.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

from msgspec import Struct


class StoreFailure(Exception):  # noqa: N818 - a failure of the store, not of the gateway
    """The store can't answer. Adapters of remote stores turn every foreign error into this one."""


class Lookup(Struct, frozen=True, gc=False):
    """What `get` found. `remaining_ms` is None for an entry that never expires; `mark` is what was put beside the value."""

    hit: bool
    value: bytes = b""
    mark: bytes = b""
    age_ms: int = 0
    remaining_ms: int | None = None


MISS: Final = Lookup(False)


class CacheStore(Protocol):
    """Keeps results for a while. May forget anything at any time; must never return what is expired or was dropped.

    Every method answers at once, or returns something to wait for: a store in this process costs no suspension, a remote one is waited
    for briefly by whoever asks. Raising `StoreFailure`, raising anything else and not answering in time all mean the same: a miss, or
    a result that was not kept. A failed `drop` is the one failure with consequences: until a later one succeeds, nothing of that tag
    may be read. What the store has to see to by itself: a `put` that began before a `drop` of its tag leaves nothing behind after it.
    """

    def get(self, key: bytes) -> Lookup | Awaitable[Lookup]:
        """The entry, as used just now, or `MISS`."""

    def put(
        self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b""
    ) -> bool | Awaitable[bool]:
        """Keep a value in place of what the key held. False: not kept, and the key then holds nothing.

        A `ttl_ms` of 0 never expires, None means the store's default.
        """

    def drop(self, tag: str) -> int | Awaitable[int]:
        """Forget everything put with this tag, and say how many entries that were."""


class Quota(Struct, frozen=True):
    """So many calls in any minute and so many at once, for each caller and everything that shares the `name`."""

    name: str
    rpm: int
    burst: int


class Refusal(Struct, frozen=True):
    """A call that came too soon. `remaining_in_window` is what the minute still has room for, whatever came at once."""

    retry_after_ms: int
    reset_in_ms: int
    remaining_in_window: int


class RateStore(Protocol):
    """Counts calls. Must never let more through than the quota says, and a refused call must leave no trace.

    Answers at once, as it is asked on every call: a store that replicas share takes its share in advance and settles up later.
    The same caller and name with another quota: what was used stays used.
    """

    def take(self, subject: str, quota: Quota) -> Refusal | None:
        """Count one call of this caller, or say why not. Waiting as long as a refusal says suffices."""
