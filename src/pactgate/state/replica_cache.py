"""The result cache of one of several replicas: entries stay in this process, and are read only while it is known what others wrote.

Must not: keep an entry that no writer would know of.
"""

from __future__ import annotations

from pactgate.state.memory_cache import MemoryCache
from pactgate.state.ports import MISS, Lookup
from pactgate.state.replica_set import ReplicaSet


class ReplicaCache:
    """A `CacheStore`. Every entry is tagged with its server."""

    def __init__(self, cache: MemoryCache, replicas: ReplicaSet) -> None:
        self._cache = cache
        self._replicas = replicas
        self.drop = cache.drop

    def get(self, key: bytes) -> Lookup:
        return self._cache.get(key) if self._replicas.is_fresh else MISS

    def put(self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b"") -> bool:
        if not (self._replicas.is_fresh and self._replicas.may_cache(tag)):
            return False
        return self._cache.put(key, value, ttl_ms=ttl_ms, tag=tag, mark=mark)
