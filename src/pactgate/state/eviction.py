"""Eviction orders of a cache: LRU (least recently used), LFU (least frequently used) and FIFO (first in, first out).

Each order counts its own steps instead of reading a clock, so two uses within one clock tick still have an order. Every step is O(1).
Must not: know sizes, ages or values. Enforces S1/CACHE-004.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Protocol


class EvictionOrder(Protocol):
    """The keys of a cache in the order in which they are evicted."""

    @property
    def touch(self) -> Callable[[bytes], None]:
        """Record that the entry of the key was used."""

    def place(self, key: bytes) -> None:
        """Record a new entry: a new key, or a new value for a known key."""

    def remove(self, key: bytes) -> None:
        """Forget the key: its entry is gone."""

    def victim(self, spare: bytes) -> bytes | None:
        """Return the key to evict next, which is never `spare`; None when there is no other."""


class LruOrder:
    """`lru`: a use moves an entry to the end of the queue."""

    def __init__(self) -> None:
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self.touch: Callable[[bytes], None] = self._keys.move_to_end

    def place(self, key: bytes) -> None:
        self._keys[key] = None
        self._keys.move_to_end(key)

    def remove(self, key: bytes) -> None:
        del self._keys[key]

    def victim(self, spare: bytes) -> bytes | None:
        return _first_but(spare, self._keys)


class FifoOrder(LruOrder):
    """`fifo`: only a new value moves an entry to the end of the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.touch = _leave_alone


class _Bucket:
    """The keys used equally often, least recently used first, between the next rarer and the next more frequent bucket."""

    __slots__ = ("above", "below", "count", "keys")

    def __init__(self, count: int, below: _Bucket | None) -> None:
        self.count = count
        self.keys: OrderedDict[bytes, None] = OrderedDict()
        self.below = below
        self.above: _Bucket | None = None


class LfuOrder:
    """`lfu`: a use moves an entry one bucket up; entries used equally often are evicted in the order of their last use.

    A new value counts as a use, because clients often ask for entries that are often replaced.
    """

    def __init__(self) -> None:
        self._root = _Bucket(0, None)
        self._buckets: dict[bytes, _Bucket] = {}

    def touch(self, key: bytes) -> None:
        self._raise(key, self._buckets[key])

    def place(self, key: bytes) -> None:
        self._raise(key, self._buckets.get(key, self._root))

    def remove(self, key: bytes) -> None:
        self._leave(key, self._buckets.pop(key))

    def victim(self, spare: bytes) -> bytes | None:
        bucket = self._root.above
        while bucket is not None:
            key = _first_but(spare, bucket.keys)
            if key is not None:
                return key
            bucket = bucket.above
        return None

    def _raise(self, key: bytes, bucket: _Bucket) -> None:
        above = bucket.above
        if above is None or above.count != bucket.count + 1:
            above = self._insert_above(bucket)
        above.keys[key] = None
        self._buckets[key] = above
        if bucket is not self._root:
            self._leave(key, bucket)

    def _insert_above(self, bucket: _Bucket) -> _Bucket:
        made = _Bucket(bucket.count + 1, bucket)
        made.above = bucket.above
        if bucket.above is not None:
            bucket.above.below = made
        bucket.above = made
        return made

    def _leave(self, key: bytes, bucket: _Bucket) -> None:
        del bucket.keys[key]
        if not bucket.keys:
            assert bucket.below is not None, "only the root has nothing below it, and no key is ever there"
            bucket.below.above = bucket.above
            if bucket.above is not None:
                bucket.above.below = bucket.below


EVICTION_ORDERS: Final[dict[str, Callable[[], EvictionOrder]]] = {"lru": LruOrder, "lfu": LfuOrder, "fifo": FifoOrder}


def _first_but(spare: bytes, keys: Iterable[bytes]) -> bytes | None:
    for key in keys:
        if key != spare:
            return key
    return None


def _leave_alone(key: bytes) -> None:
    return
