"""What one server listed last, in this run or an earlier one, so that a gateway lists it the moment it starts.

Must not: connect anything, or decide whether the lists still hold; the supervisor asks the server as soon as it is connected.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from pactgate.catalog.discovery import DiscoveredEntry, DiscoveredLists, read_lists
from pactgate.catalog.list_cache import ListCache
from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.state.known_lists import KnownLists
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.negotiate import Identity

_LOOK_S: Final = 60.0
"""How often a list that may have changed is looked at; nothing is written where it has not."""


class _Known(Struct, kw_only=True):
    """The file: what a server said of itself, and its lists as it wrote them."""

    version: Literal[1] = 1
    era: str
    protocol: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str | None
    issuer: str | None = None
    tools: list[Raw]
    prompts: list[Raw]
    resources: list[Raw]
    templates: list[Raw]


_decoder: Final = msgspec.json.Decoder(_Known)


class LastLists:
    """Keeps the lists of one server, and recalls them."""

    def __init__(self, config: ServerConfig, lists: ListCache, store: KnownLists) -> None:
        self._config = config
        self._lists = lists
        self._store = store
        self._kept: DiscoveredLists | None = None

    async def recall(self) -> Identity | None:
        """Fill the lists with those of an earlier run. None if there are none that can be used."""
        config = self._config
        data = await asyncio.to_thread(self._store.read, config.id, config.identity)
        if data is None:
            return None
        try:
            known = _decoder.decode(data)
            identity = Identity(
                Era(known.era),
                known.protocol,
                known.server_info,
                known.capabilities,
                known.instructions,
                issuer=known.issuer,
            )
            raws = (known.tools, known.prompts, known.resources, known.templates)
            found = await read_lists(*([bytes(raw) for raw in entries] for entries in raws))
        except (msgspec.DecodeError, ValueError):
            return None
        self._kept = found
        self._lists.recall(found)
        return identity

    async def keep(self, session: Session) -> None:
        """Write what the server lists now, unless that is what was written last."""
        found, said, config = self._lists.found, session.identity, self._config
        if not self._lists.has_answered or self._lists.is_recalled or found is self._kept:
            return
        known = _Known(
            era=said.era.value,
            protocol=said.version,
            server_info=said.server_info,
            capabilities=said.capabilities,
            instructions=said.instructions,
            issuer=said.issuer,
            tools=_raws(found.tools),
            prompts=_raws(found.prompts),
            resources=_raws(found.resources),
            templates=_raws(found.templates),
        )
        await asyncio.to_thread(self._store.write, config.id, config.identity, encode_json(known))
        self._kept = found  # not before: who is cancelled meanwhile has written nothing

    async def run(self, session: Session) -> None:
        """Keep what the server lists, until cancelled."""
        await self._lists.answered.wait()
        while True:
            await self.keep(session)
            await asyncio.sleep(_LOOK_S)


def _raws(entries: tuple[DiscoveredEntry, ...]) -> list[Raw]:
    return [Raw(entry.definition) for entry in entries]
