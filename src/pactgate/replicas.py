"""What gateways share without a store (D22): nothing, or with a key each other's seals. `stored_replicas.py` is for those with a store.

Must not: decide anything about a request.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from pactgate.config.model import Config
from pactgate.config.sections.state import NEEDS_STORE
from pactgate.inbound.http_frontend import HttpFrontend
from pactgate.pipeline.server_requests import UseOnce
from pactgate.policy.state_tokens import StateSigner
from pactgate.state.handoffs import Handoffs, MemoryHandoffs
from pactgate.state.memory_cache import MemoryCache
from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.owned_ids import new_plain_id, new_replica_id
from pactgate.state.ports import CacheStore, RateStore
from pactgate.state.sealing_keys import keys_of

if TYPE_CHECKING:
    from pactgate.state.revoked_keys import RevokedKeys

CLOCK_SLACK_S: Final = 60.0
"""How far the clocks of replicas may differ."""


class Replicas:
    """What one gateway uses alone: nothing is shared."""

    id = ""
    owned_id = ""
    """An id that leads the requests of other replicas here; empty where no replica hands requests over."""
    revoked: RevokedKeys | None = None
    """The API keys that any replica has revoked."""

    def signer(self, purpose: str) -> StateSigner:
        return StateSigner(time.monotonic)

    def rates(self) -> RateStore:
        return MemoryRateStore()

    def cache(self, cache: MemoryCache, on_stale: Callable[[str | None], None]) -> CacheStore:
        """The cache that results are read from. `on_stale` is told whose results may be old."""
        return cache

    def new_id(self) -> str:
        """An id of something that this gateway owns."""
        return new_plain_id()

    def handoffs(self) -> Handoffs:
        return MemoryHandoffs()

    @property
    def use_once(self) -> UseOnce | None:
        return None

    @property
    def on_write(self) -> Callable[[str], Awaitable[None] | None] | None:
        return None

    async def open(self, frontend: HttpFrontend) -> None:
        """Take requests of other replicas for this frontend."""

    async def start(self) -> None:
        """Begin to look at the store."""

    async def rights_removed(self) -> None:
        """Have the other replicas look again who may call."""

    async def leave(self, grace_s: float) -> None:
        """Take no more requests of other replicas, and finish those under way."""

    async def close(self) -> None:
        """Give back what is leased, and end every connection."""

    def facts(self) -> dict[str, Any] | None:
        """What the operator sees; None where nothing is shared."""
        return None

    def gauges(self) -> list[tuple[str, str, float]]:
        """Name, sentence and value."""
        return []

    def counters(self) -> list[tuple[str, str, float]]:
        return []


class KeyedReplicas(Replicas):
    """Replicas with a key and no store: each opens what the others sealed."""

    def __init__(self, config: Config) -> None:
        self.id = new_replica_id()
        self.keys = keys_of(config.state)

    def signer(self, purpose: str) -> StateSigner:
        return StateSigner(time.time, self.keys.keys(purpose), CLOCK_SLACK_S)

    def facts(self) -> dict[str, Any] | None:
        return {"replica": self.id, "store": None, "notShared": list(NEEDS_STORE)}


def replicas_of(config: Config) -> Replicas:
    """What this configuration shares without a store."""
    return Replicas() if config.state.key is None else KeyedReplicas(config)
