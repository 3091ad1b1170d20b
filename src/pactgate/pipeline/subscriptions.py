"""The resource subscriptions of clients: one subscription per URI at the server, one notification per client under the URI it used.

The gateway subscribes for the first holder of a URI, in the era of the server, and unsubscribes after the last one. A holder that ends
releases all its subscriptions. Bounded: URIs of one holder, and the share of one principal in those of a server. Must not: notify a
client of a resource that it did not subscribe to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from pactgate.catalog.connections import Connections
from pactgate.catalog.uris import OWN_SCHEME, ResourceTarget, full_uri
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.fair_share import is_fair
from pactgate.core.values import Caller
from pactgate.policy.overload import Overload
from pactgate.policy.permissions.rules import Grant

MAX_URIS: Final = 256
"""Resources one session, or one listen, may watch."""


class Holder(Protocol):
    """A client session or listen that subscribes to resources."""

    caller: Caller

    def updated(self, uri: str) -> None:
        """Notify the client that a resource has changed. Must not wait or raise."""


class Subscriptions:
    """All holders of all URIs. `limit_ms` is the time a server has to answer. A subscription takes a slot as a call does."""

    def __init__(self, connections: Connections, limit_ms: Callable[[str], int], overload: Overload) -> None:
        self._connections = connections
        self._limit_ms = limit_ms
        self._overload = overload
        self._holders: dict[ResourceTarget, dict[Holder, str]] = {}
        self._held: dict[Holder, set[ResourceTarget]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        """Of each server and principal."""

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    async def add(self, holder: Holder, uri: str) -> None:
        """Subscribe a holder to a resource. Raises GatewayFailure if that is impossible."""
        target = self._target(uri, holder.caller)
        own = self._held.get(holder, set())
        if target in own:
            return
        if len(own) >= MAX_URIS:
            raise GatewayFailure(
                Kind.LIMIT_EXCEEDED, f"At most {MAX_URIS} resources can be watched at once; unsubscribe from some."
            )
        subject = holder.caller.principal.key
        if target not in self._holders:
            self._require_fair(target.server, subject)
        self._counts[target.server, subject] += 1
        try:
            await self._hold(target, subject)
        except BaseException:
            self._counts[target.server, subject] -= 1
            raise
        self._held.setdefault(holder, set()).add(target)
        self._holders.setdefault(target, {})[holder] = uri

    def remove(self, holder: Holder, uri: str) -> None:
        """End one subscription. A URI that the holder has no subscription for is ignored."""
        self._end(holder, self._target(uri, holder.caller))

    def release(self, holder: Holder) -> None:
        """End all subscriptions of a holder."""
        for target in self._held.pop(holder, ()):
            self._release(holder, target)

    def on_updated(self, server: str, uri: str) -> None:
        """Notify the subscribers of this resource, and of resources that contain it, if they may read it."""
        for target in self._concerned(server, uri):
            for holder, shown in tuple(self._holders.get(target, {}).items()):
                if uri != target.uri:
                    if not self._may_read(holder, ResourceTarget(server, uri)):
                        continue
                    shown = uri if holder.caller.scope is not None else full_uri(server, uri)
                holder.updated(shown)

    def recheck(self) -> None:
        """Permissions have changed: end the subscriptions that their holders may not have any more."""
        for holder, targets in tuple(self._held.items()):
            for target in tuple(targets):
                if not self._may_read(holder, target):
                    self._end(holder, target)

    def _end(self, holder: Holder, target: ResourceTarget) -> None:
        own = self._held.get(holder)
        if own is not None and target in own:
            own.discard(target)
            if not own:
                del self._held[holder]
            self._release(holder, target)

    def _may_read(self, holder: Holder, target: ResourceTarget) -> bool:
        catalog = self._connections.catalog_for(holder.caller)
        if target.server not in catalog.servers:
            return False
        return catalog.access is None or isinstance(catalog.access.of_uri(target.server, full_uri(*target)), Grant)

    def _concerned(self, server: str, uri: str) -> list[ResourceTarget]:
        exact = ResourceTarget(server, uri)
        if exact in self._holders:
            return [exact]
        return [target for target in self._holders if target.server == server and uri.startswith(target.uri)]

    def _require_fair(self, server: str, subject: str) -> None:
        """Raise where one more resource of the server would be more than this principal's share."""
        supervisor = self._connections.servers.get(server)
        free = 0 if supervisor is None else supervisor.change_watcher.free_count
        if free and not is_fair(self._counts[server, subject], free):  # where nothing is free, the watcher says so
            raise GatewayFailure(
                Kind.LIMIT_EXCEEDED,
                f"One client can't watch more resources of {server} while others may come; unsubscribe from some.",
                server=server,
            )

    async def _hold(self, target: ResourceTarget, subject: str) -> None:
        limit_ms = self._limit_ms(target.server)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                async with self._overload.slot(target.server, subject):
                    session = await self._connections.session(target.server)
                    if session.is_lists_alone:
                        raise _not_watched(target)
                    await self._connections.servers[target.server].change_watcher.subscribe(session, target.uri)
        except TimeoutError:
            connected = self._connections.connected(target.server)
            if connected is not None:
                connected.peer.doubt()
            raise GatewayFailure(
                Kind.CALL_TIMEOUT,
                f"{target.server} did not take the subscription within {limit_ms} ms (timeout)",
                server=target.server,
                operation="resources/subscribe",
                details={"phase": "call", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
            ) from None

    def _release(self, holder: Holder, target: ResourceTarget) -> None:
        key = target.server, holder.caller.principal.key
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
        holders = self._holders[target]
        del holders[holder]
        if not holders:
            del self._holders[target]
        supervisor = self._connections.servers.get(target.server)
        if supervisor is not None:
            supervisor.change_watcher.unsubscribe(target.uri)

    def _target(self, uri: str, caller: Caller) -> ResourceTarget:
        if uri.startswith(OWN_SCHEME):
            raise GatewayFailure(
                Kind.INVALID_PARAMS, "The gateway's own resources can be read, not watched.", details={"uri": uri}
            )
        return self._connections.catalog_for(caller).resolve_uri(uri, caller.scope)


def _not_watched(target: ResourceTarget) -> GatewayFailure:
    """A subscription is shared by its holders, so it has to be in the session that all share."""
    why = f"Resources of {target.server} can be read, not watched: each client has a sign-in of its own there."
    return GatewayFailure(Kind.INVALID_PARAMS, why, server=target.server, details={"uri": target.uri})
