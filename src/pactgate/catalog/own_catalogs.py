"""The catalogs of callers that have lists of their own, because servers with `isolation: session` are asked in the caller's session.

Bounded: the oldest catalog goes first. Must not: hide a server whose own lists can't be had; its shared list is better than none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from pactgate.catalog.caller_sessions import session_key
from pactgate.catalog.catalog import Catalog
from pactgate.catalog.connections import Connections
from pactgate.catalog.discovery import DiscoveredLists
from pactgate.core.events import DiscoveryFailed, Emit
from pactgate.core.failures import GatewayFailure
from pactgate.core.values import Caller
from pactgate.protocol.messages import encode_json

_MAX_CATALOGS: Final = 64


class OwnCatalogs:
    """The catalog of each caller beside what it was made from, so that it is made again only when that has changed."""

    def __init__(self, connections: Connections, emit: Emit, mask: Callable[[str], str]) -> None:
        self._connections = connections
        self._emit = emit
        self._mask = mask
        self._catalogs: dict[str, tuple[Catalog, dict[str, DiscoveredLists], Catalog]] = {}

    async def catalog_of(self, caller: Caller, capabilities: Mapping[str, Any]) -> Catalog:
        """The catalog for one caller: servers with `isolation: session` are asked for their tools in the caller's own session."""
        connections = self._connections
        base = connections.catalog_for(caller)
        asked = [
            id_
            for id_, supervisor in connections.servers.items()
            if caller.scope in (None, id_)
            and id_ in base.servers
            and supervisor.has_lists_of(caller, capabilities)
            and connections.guard.why_held(id_) is None
        ]
        lists = await asyncio.gather(*(self._lists(id_, caller, capabilities) for id_ in asked))
        own = {id_: found for id_, found in zip(asked, lists, strict=True) if found is not None}
        if not own:
            return base
        key = encode_json([session_key(caller, capabilities), caller.principal.key, caller.scope, caller.view]).decode()
        known = self._catalogs.pop(key, None)
        if known is None or known[0] is not base or known[1] != own:
            entries = {id_: connections.entries_with(id_, own[id_]) for id_ in own}
            known = base, own, connections.surfaces.beside(entries).of(caller)
        self._catalogs[key] = known
        if len(self._catalogs) > _MAX_CATALOGS:
            del self._catalogs[next(iter(self._catalogs))]
        return known[2]

    async def _lists(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> DiscoveredLists | None:
        """None where the session or its lists fail."""
        try:
            return await self._connections.supervisor(server).lists_of(caller, capabilities)
        except GatewayFailure as failure:
            self._emit(DiscoveryFailed(server, self._mask(failure.message)))
            return None
