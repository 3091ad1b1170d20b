"""Ports of the stores: the interfaces that the gateway uses, and the values they exchange.

The stores in this process answer at once; one that replicas share may have to be waited for, within `shared_store.WAIT_S`.
A cache is an optimisation: the gateway must be able to answer every call without it. A rate store is not: its answer decides.
Enforces the outer half of S1/XC-002.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

from msgspec import Struct


class Lookup(Struct, frozen=True, gc=False):
    """The result of `CacheStore.get`. `mark` is stored beside the value; `remaining_ms` is None for an entry that never expires."""

    hit: bool
    value: bytes = b""
    mark: bytes = b""
    age_ms: int = 0
    remaining_ms: int | None = None


MISS: Final = Lookup(False)


class CacheStore(Protocol):
    """Stores results for a limited time. It may evict any entry at any time; it must never return one that is expired or dropped.

    The caller counts whatever a method raises as a miss, or as a result that was not stored. After a failed `drop` it must not read
    entries of that tag until a later `drop` has succeeded. A `put` that began before a `drop` of its tag leaves nothing behind after it.
    """

    def get(self, key: bytes) -> Lookup:
        """Return the entry and mark it as used now, or return `MISS`."""

    def put(self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b"") -> bool:
        """Store a value in place of what the key held. False means that it was not stored; the key then holds nothing.

        A `ttl_ms` of 0 never expires, None means the store's default.
        """

    def drop(self, tag: str) -> int:
        """Remove every entry with this tag and return how many there were."""


class Quota(Struct, frozen=True):
    """The rate limit of one caller for everything that shares the `name`: `rpm` calls in any minute, `burst` at once."""

    name: str
    rpm: int
    burst: int


class RateRefusal(Struct, frozen=True):
    """A call over the limit. `remaining_in_window` is how many calls the minute still has room for, apart from the burst."""

    retry_after_ms: int
    reset_in_ms: int
    remaining_in_window: int


class RateStore(Protocol):
    """Counts calls. It must never let more calls through than the quota allows, and a refused call must not count.

    It is asked on every call. When the quota of a caller and name changes, the calls already counted stay counted.
    """

    def take(self, subject: str, quota: Quota) -> RateRefusal | Awaitable[RateRefusal | None] | None:
        """Count one call of this caller, or return why not, or what to await for one of the two.

        Waiting for `retry_after_ms` is enough.
        """
