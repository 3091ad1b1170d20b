"""Kept answers where several workers keep some: whoever writes has the others drop what they keep, before the writer is answered.

A worker marks a byte all of them can see before it asks for the first answer that may be kept. A worker that finds no other marked when
its call is over need not tell anybody: whoever asks from now on asks a server that was written to. Must not: fail a call; a worker that
does not confirm in time is an event, and its caller's answer goes out.
"""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure
from pactgate.pipeline.kernel import Audit
from pactgate.policy.cache import Keys
from pactgate.policy.recall import Lease, Recall
from pactgate.state.guarded import GuardedStore
from pactgate.state.ports import Lookup
from pactgate.workers.homes import Place

CONFIRM_S: Final = 1.0

DropElsewhere = Callable[[str], Awaitable[None]]
"""Have all other workers drop what they keep of a server. Raises GatewayFailure where one does not confirm in time."""


class CrewRecall(Recall):
    """`marks` has a byte for each worker: whether it may keep anything."""

    def __init__(self, store: GuardedStore, place: Place, marks: mmap.mmap, drop_elsewhere: DropElsewhere) -> None:
        super().__init__(store)
        self.unconfirmed_count = 0
        self._place = place
        self._marks = marks
        self._drop_elsewhere = drop_elsewhere
        self._telling: dict[str, set[asyncio.Task[None]]] = {}
        """The others are being told of a server; a call to it is answered when they have confirmed."""

    def ask(self, keys: Keys, server: str) -> Lookup | Lease | Awaitable[Lookup | Lease]:
        self._marks[self._place.index] = 1
        return super().ask(keys, server)

    def drop_server(self, server: str, *, by: Lease | None = None) -> None:
        super().drop_server(server, by=by)
        if self._others_keep():
            task = asyncio.get_running_loop().create_task(self._tell(server), name=f"drop {server} elsewhere")
            self._telling.setdefault(server, set()).add(task)
            task.add_done_callback(lambda done: self._told(server, done))

    def drop_here(self, server: str) -> None:
        """Another worker has written to a server."""
        super().drop_server(server)

    def telling(self, server: str) -> Collection[asyncio.Task[None]]:
        """What has to be waited for before a call to this server is answered."""
        return self._telling.get(server, ())

    def close(self) -> None:
        for tasks in self._telling.values():
            for task in tasks:
                task.cancel()

    def _others_keep(self) -> bool:
        index, count = self._place.index, self._place.count
        return any(self._marks[other] for other in range(count) if other != index)

    async def _tell(self, server: str) -> None:
        try:
            await self._drop_elsewhere(server)
        except GatewayFailure:
            self.unconfirmed_count += 1

    def _told(self, server: str, task: asyncio.Task[None]) -> None:
        tasks = self._telling[server]
        tasks.discard(task)
        if not tasks:
            del self._telling[server]


class Confirming:
    """Stands where the audit log does, or before it: an answer waits for the others' word as it waits for its record."""

    def __init__(self, recall: CrewRecall, audit: Audit | None) -> None:
        self._recall = recall
        self._audit = audit

    def require(self) -> None:
        if self._audit is not None:
            self._audit.require()

    def keep(self, ctx: ExecutionContext, params: bytes | None) -> Awaitable[str | None] | None:
        written = None if self._audit is None else self._audit.keep(ctx, params)
        telling = () if ctx.tool is None or ctx.is_cached else self._recall.telling(ctx.tool.server)
        return _both(tuple(telling), written) if telling else written


async def _both(telling: tuple[asyncio.Task[None], ...], written: Awaitable[str | None] | None) -> str | None:
    await asyncio.wait(telling, timeout=CONFIRM_S)
    return None if written is None else await written
