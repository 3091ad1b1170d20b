"""What has to be done now and then, whether or not anybody calls: letting go of what has expired, looking for hazards among the servers.

One task, begun and ended by the composition root. Must not: hold up a call; comparing many tools is done beside the loop.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pactgate.catalog.conflicts import Conflict, find_conflicts
from pactgate.catalog.connections import Connections
from pactgate.core.events import CompositionHazard, Emit
from pactgate.policy.result_pages import PagedResultStore
from pactgate.state.memory_cache import MemoryCache, keep_swept

SHELF_SWEEP_S: Final = 30.0
HAZARDS_AFTER_S: Final = 1.0
"""Servers come up one after the other; they are compared when they have."""


class Housekeeping:
    def __init__(self, cache: MemoryCache, pages: PagedResultStore, connections: Connections, emit: Emit) -> None:
        self._cache = cache
        self._pages = pages
        self._connections = connections
        self._emit = emit
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, cleanup_interval_ms: int) -> None:
        self._task = asyncio.create_task(self._run(cleanup_interval_ms), name="housekeeping")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def on_offer_changed(self) -> None:
        self._has_changed.set()

    async def _run(self, cleanup_interval_ms: int) -> None:
        async with asyncio.TaskGroup() as work:
            work.create_task(keep_swept(self._cache, cleanup_interval_ms))
            work.create_task(self._sweep_pages())
            work.create_task(self._look_for_hazards())

    async def _sweep_pages(self) -> None:
        while True:
            await asyncio.sleep(SHELF_SWEEP_S)
            self._pages.sweep()

    async def _look_for_hazards(self) -> None:
        """Tells each hazard once, for as long as it is there."""
        told: set[Conflict] = set()
        while True:
            await self._has_changed.wait()
            await asyncio.sleep(HAZARDS_AFTER_S)
            self._has_changed.clear()
            found = await asyncio.to_thread(find_conflicts, self._connections.unfiltered)
            self._connections.conflicts = found
            for conflict in found:
                if conflict not in told:
                    self._emit(_event(conflict))
            told = set(found)


def _event(conflict: Conflict) -> CompositionHazard:
    return CompositionHazard(conflict.kind, conflict.subject, conflict.servers, conflict.message, conflict.severity)
