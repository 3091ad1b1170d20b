"""When a server with `start: lazy` runs: from its first call until nobody has used it for `idleTimeoutMs`.

Meanwhile its tools are listed as it listed them last, in this run or an earlier one. A server that nobody has listed yet is started once
for its lists, and ended when they are there. The lists of servers that want a sign-in are kept in the same way, for when that has ended.
Must not: connect or end anything; the supervisor does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from pactgate.catalog.change_watcher import ChangeWatcher
from pactgate.catalog.discovery import DiscoveredEntry, DiscoveredLists, read_lists
from pactgate.catalog.list_cache import ListCache
from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.state.known_lists import KnownLists
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.negotiate import Identity

_LOOKS: Final = 4
"""How often a server is looked at within `idleTimeoutMs`."""
_LAST_CALLS_S: Final = 0.05
"""A call may have found the session in the moment before the server was seen to be idle."""


class _Known(Struct, kw_only=True):
    """The file: what a server said of itself, and its lists as it wrote them."""

    version: Literal[1] = 1
    era: str
    protocol: str
    server_info: dict[str, Any]
    capabilities: dict[str, Any]
    instructions: str | None
    tools: list[Raw]
    prompts: list[Raw]
    resources: list[Raw]
    templates: list[Raw]


_decoder: Final = msgspec.json.Decoder(_Known)


class LazyStart:
    """Decides for one server when it may sleep, and keeps what it listed."""

    def __init__(self, config: ServerConfig, lists: ListCache, watcher: ChangeWatcher, store: KnownLists) -> None:
        self.is_called = False
        """Whether somebody has needed the server since it was started."""
        self._config = config
        self._lists = lists
        self._watcher = watcher
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
                Era(known.era), known.protocol, known.server_info, known.capabilities, known.instructions
            )
            raws = (known.tools, known.prompts, known.resources, known.templates)
            found = await read_lists(*([bytes(raw) for raw in entries] for entries in raws))
        except (msgspec.DecodeError, ValueError):
            return None
        self._kept = found
        self._lists.recall(found)
        return identity

    async def until_idle(self, session: Session, callers: Callable[[], int]) -> None:
        """Wait until nobody has used the server for `idleTimeoutMs`. `callers` are the sessions of single callers with it."""
        await self._lists.settled.wait()
        await self.keep(session)
        look_s = self._config.idle_timeout_ms / 1000 / _LOOKS
        looks, seen = 0, session.peer.sent_count
        while not self._lists.has_answered or (self.is_called and looks < _LOOKS):
            await asyncio.sleep(look_s)
            is_used = callers() or self._watcher.has_subscribers or session.peer.sent_count != seen
            is_used = is_used or session.peer.open_count > self._watcher.open_requests
            looks, seen = 0 if is_used else looks + 1, session.peer.sent_count
        await self.keep(session)

    async def last_calls(self, session: Session) -> None:
        """Wait for calls that found the session before the server was seen to be idle."""
        for _ in range(int(self._config.request_timeout_ms / 1000 / _LAST_CALLS_S)):
            await asyncio.sleep(_LAST_CALLS_S)
            if not session.peer.is_open or session.peer.open_count <= self._watcher.open_requests:
                return

    async def keep(self, session: Session) -> None:
        """Write down what the server lists now."""
        found, said, config = self._lists.found, session.identity, self._config
        if not self._lists.has_answered or found is self._kept:
            return
        known = _Known(
            era=said.era.value,
            protocol=said.version,
            server_info=said.server_info,
            capabilities=said.capabilities,
            instructions=said.instructions,
            tools=_raws(found.tools),
            prompts=_raws(found.prompts),
            resources=_raws(found.resources),
            templates=_raws(found.templates),
        )
        self._kept = found
        await asyncio.to_thread(self._store.write, config.id, config.identity, encode_json(known))


def _raws(entries: tuple[DiscoveredEntry, ...]) -> list[Raw]:
    return [Raw(entry.definition) for entry in entries]
