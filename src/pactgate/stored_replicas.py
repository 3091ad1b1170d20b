"""Wires what gateways with one store share (D22): rates, cache epochs, revoked keys, and the hop between them.

Imported only where the configuration names a store. Must not: decide anything about a request.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from pactgate.config.model import Config
from pactgate.core.events import Emit
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.hop import HOP_PATH, HopReceiver, HopSender
from pactgate.inbound.hop_message import MAX_CLAIMS_BYTES, HopVerifier
from pactgate.inbound.http_frontend import HttpFrontend
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits, max_connections
from pactgate.pipeline.running_request import RunningRequest
from pactgate.pipeline.server_requests import UseOnce
from pactgate.policy.state_tokens import StateSigner
from pactgate.replicas import CLOCK_SLACK_S, KeyedReplicas
from pactgate.state.handoffs import Handoffs, SharedHandoffs
from pactgate.state.leased_rates import LeasedRateStore
from pactgate.state.memory_cache import MemoryCache
from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.owned_ids import OwnedIds
from pactgate.state.ports import CacheStore, RateStore
from pactgate.state.replica_cache import ReplicaCache
from pactgate.state.replica_set import ReplicaSet
from pactgate.state.shared_store import SharedStore
from pactgate.state.single_use import SingleUse
from pactgate.upstreams.http.hop_client import HopClient


class StoredReplicas(KeyedReplicas):
    """Replicas that share a store."""

    def __init__(self, config: Config, emit: Emit, on_look_again: Callable[[], None]) -> None:
        super().__init__(config)
        settings = config.state
        assert settings.url is not None, "checked by the configuration"
        self._config = config
        self._emit = emit
        self._policies = settings.on_failure
        self._store = SharedStore(settings.url, settings.key_prefix, emit)
        self._ids = OwnedIds(self.keys, self.id)
        self.owned_id = self._ids.new()
        self._set = ReplicaSet(self._store, self.keys, self.id, emit)
        self._set.on_look_again = on_look_again
        self.revoked = self._set.revoked
        self._once = SingleUse(
            self._store,
            self.keys,
            refuses=self._policies.single_use == "refuse",
            store_born_at=lambda: self._set.store_born_at,
        )
        self._rates: LeasedRateStore | None = None
        self._client = HopClient(HOP_PATH)
        self._set.on_left = self._client.forget
        self._sender: HopSender | None = None
        self._receiver: HopReceiver | None = None
        self._server: HttpServer | None = None

    def signer(self, purpose: str) -> StateSigner:
        """By the clock of the store, so that all replicas mean the same time."""
        return StateSigner(lambda: time.time() + self._set.clock_ahead_s, self.keys.keys(purpose), CLOCK_SLACK_S)

    def rates(self) -> RateStore:
        self._rates = LeasedRateStore(
            self._store,
            MemoryRateStore(),
            lambda subject, quota: f"rate:{self.keys.digest('rate', subject, quota)}",
            refuses=self._policies.rates == "refuse",
        )
        return self._rates

    def cache(self, cache: MemoryCache, on_stale: Callable[[str | None], None]) -> CacheStore:
        self._set.on_stale = on_stale
        return ReplicaCache(cache, self._set)

    def new_id(self) -> str:
        return self._ids.new()

    def handoffs(self) -> Handoffs:
        return SharedHandoffs(self._store, self.keys)

    @property
    def use_once(self) -> UseOnce | None:
        return self._once.take

    @property
    def on_write(self) -> Callable[[str], Awaitable[None] | None] | None:
        return self._set.written

    async def open(self, frontend: HttpFrontend) -> None:
        hop_keys, barrier = self.keys.keys("hop"), FaultBarrier(self._emit)
        frontend.hops = self._sender = HopSender(
            replica=self.id,
            key=hop_keys[0],
            owner_of=self._ids.owner_of,
            addresses=lambda: self._set.addresses,
            send=self._client.send,
            drive=lambda relay, work: RunningRequest(relay, barrier, work),
            has_session=frontend.sessions.has,
            emit=self._emit,
        )
        self._receiver = receiver = HopReceiver(
            HopVerifier(hop_keys, self.id, time.time), frontend.serve_forwarded, self._emit
        )
        limits = ServerLimits(
            max_request_bytes=self._config.limits.max_request_bytes + MAX_CLAIMS_BYTES,
            max_connections_per_address=max_connections(),
        )
        hop = self._config.state.hop
        self._server = HttpServer(receiver.handle, limits, self._emit, receiver.admit)
        host, port = await self._server.listen(hop.host, hop.port)
        await self._set.announce(advertised(hop.advertise or host, port))

    async def start(self) -> None:
        self._set.start()

    async def rights_removed(self) -> None:
        await self._set.look_again()

    async def leave(self, grace_s: float) -> None:
        if self._server is not None:
            await self._server.close(grace_s)
        await self._set.stop()  # only now: the others end what waits for a replica that has left

    async def close(self) -> None:
        if self._rates is not None:
            await self._rates.close()
        await self._client.close()
        await self._store.close()

    def facts(self) -> dict[str, Any] | None:
        return {
            "replica": self.id,
            "store": "ok" if self._store.is_available else "unavailable",
            "trouble": self._store.trouble or None,
            "replicas": 1 + len(self._set.addresses),
            "revokedKeys": len(self._set.revoked),
            "withoutStore": {
                "rates": self._policies.rates,
                "singleUse": self._policies.single_use,
                "revokedKeys": "local",
                "cache": "misses",
                "sessions": "local",
            },
        }

    def gauges(self) -> list[tuple[str, str, float]]:
        available = float(self._store.is_available)
        return [
            ("pactgate_store_available", "1 while the store that replicas share answers.", available),
            (
                "pactgate_replicas",
                "Gateways that share the store, as far as is known here.",
                1 + len(self._set.addresses),
            ),
            (
                "pactgate_revoked_keys",
                "API keys that a replica has revoked before their end, as far as is known here.",
                len(self._set.revoked),
            ),
        ]

    def counters(self) -> list[tuple[str, str, float]]:
        counters: list[tuple[str, str, float]] = [
            ("pactgate_store_failures_total", "Times the store did not answer in time.", self._store.failures)
        ]
        if self._rates is not None:
            leases = self._rates.leases
            counters.append(("pactgate_rate_leases_total", "Leases of rate limits taken from the store.", leases))
        if self._sender is not None and self._receiver is not None:
            sent, received = self._sender.sent, self._receiver.received
            counters.append(("pactgate_hops_sent_total", "Requests handed over to the replica that owns them.", sent))
            counters.append(("pactgate_hops_received_total", "Requests of other replicas that were served.", received))
        return counters


def advertised(host: str, port: int) -> str:
    """`host` may have brackets or a port of its own, where a balancer or a port mapping stands in between."""
    name, colon, own_port = host.rpartition(":")
    if colon and own_port.isdigit() and ("]" in name or ":" not in name):
        return host
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
