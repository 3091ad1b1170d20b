"""When a server with `start: lazy` runs: from its first call until nobody has used it for `idleTimeoutMs`.

Meanwhile its tools are listed as it listed them last, in this run or an earlier one. A server that nobody has listed yet is started once
for its lists, and ended when they are there. The lists of servers that want a sign-in are kept in the same way, for when that has ended.
Must not: connect or end anything; the supervisor does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pactgate.catalog.change_watcher import ChangeWatcher
from pactgate.catalog.last_lists import LastLists
from pactgate.catalog.list_cache import ListCache
from pactgate.config.server_settings import ServerConfig
from pactgate.upstreams.dialer import Session

_LOOKS: Final = 4
"""How often a server is looked at within `idleTimeoutMs`."""
_LAST_CALLS_S: Final = 0.05
"""A call may have found the session in the moment before the server was seen to be idle."""


class LazyStart:
    """Decides for one server when it may sleep."""

    def __init__(self, config: ServerConfig, lists: ListCache, watcher: ChangeWatcher, known: LastLists) -> None:
        self.is_called = False
        """Whether somebody has needed the server since it was started."""
        self._config = config
        self._lists = lists
        self._watcher = watcher
        self._known = known

    async def until_idle(self, session: Session, callers: Callable[[], int]) -> None:
        """Wait until nobody has used the server for `idleTimeoutMs`. `callers` are the sessions of single callers with it."""
        await self._lists.settled.wait()
        await self._known.keep(session)
        look_s = self._config.idle_timeout_ms / 1000 / _LOOKS
        looks, seen = 0, session.peer.sent_count
        while not self._lists.has_answered or (self.is_called and looks < _LOOKS):
            await asyncio.sleep(look_s)
            is_used = callers() or self._watcher.has_subscribers or session.peer.sent_count != seen
            is_used = is_used or session.peer.open_count > self._watcher.open_requests
            looks, seen = 0 if is_used else looks + 1, session.peer.sent_count
        await self._known.keep(session)

    async def last_calls(self, session: Session) -> None:
        """Wait for calls that found the session before the server was seen to be idle."""
        for _ in range(int(self._config.request_timeout_ms / 1000 / _LAST_CALLS_S)):
            await asyncio.sleep(_LAST_CALLS_S)
            if not session.peer.is_open or session.peer.open_count <= self._watcher.open_requests:
                return
