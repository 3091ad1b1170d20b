"""Kept answers where several workers keep some: what one of them wrote to is forgotten by all before the writer is answered.

A worker that drops what it keeps of a server counts that in memory the others see. They look there before they use what they keep or
keep anything, and drop theirs when somebody has counted. There is nothing to send, and nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Awaitable

from pactgate.policy.cache_policy import Keys
from pactgate.policy.result_cache import Lease, Recall
from pactgate.state.guarded import GuardedStore
from pactgate.state.ports import Lookup
from pactgate.workers.epochs import Epochs


class CrewRecall(Recall):
    """The recall of one worker."""

    def __init__(self, store: GuardedStore, epochs: Epochs) -> None:
        super().__init__(store)
        self._epochs = epochs
        self._seen: dict[str, int] = {}
        """What the others had counted for a server when this worker last looked; only servers it was asked about."""

    def ask(self, keys: Keys, server: str) -> Lookup | Lease | Awaitable[Lookup | Lease]:
        self._catch_up(server)
        return super().ask(keys, server)

    def kept(self, keys: Keys, server: str) -> Lookup | None:
        self._catch_up(server)
        return super().kept(keys, server)

    def store_result(self, lease: Lease, server: str, key: bytes, value: bytes, ttl_ms: int, mark: bytes) -> None:
        self._catch_up(server)
        super().store_result(lease, server, key, value, ttl_ms, mark)

    def drop_server(self, server: str, *, by: Lease | None = None) -> None:
        self._epochs.count(server)
        super().drop_server(server, by=by)

    def _catch_up(self, server: str) -> None:
        counted = self._epochs.of_others(server)
        seen = self._seen.get(server)
        if counted != seen:
            self._seen[server] = counted
            if seen is not None:
                super().drop_server(server)
