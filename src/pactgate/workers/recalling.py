"""Kept answers where several workers keep some: whoever writes has the others drop what they keep, before the writer is answered.

A worker marks a byte all of them can see before it asks for the first answer that may be kept. A worker that finds no other marked when
its call is over need not tell anybody: whoever asks from now on asks a server that was written to. Must not: fail a call; a worker that
does not confirm in time is an event, and its caller's answer goes out.
"""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import Awaitable, Callable
from typing import Final

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure
from pactgate.policy.cache import Keys
from pactgate.policy.recall import Lease, Recall
from pactgate.protocol.messages import Request
from pactgate.state.guarded import GuardedStore
from pactgate.state.ports import Lookup
from pactgate.workers.homes import Place

CONFIRM_S: Final = 1.0

Handler = Callable[[ExecutionContext, Request], Awaitable[bytes]]
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
        self._telling: dict[asyncio.Task[None], asyncio.Task[None] | None] = {}
        """Who is telling the others, and for which task."""

    def ask(self, keys: Keys, server: str) -> Lookup | Lease | Awaitable[Lookup | Lease]:
        self._marks[self._place.index] = 1
        return super().ask(keys, server)

    def drop_server(self, server: str, *, by: Lease | None = None) -> None:
        super().drop_server(server, by=by)
        if self._others_keep():
            task = asyncio.get_running_loop().create_task(self._tell(server), name=f"drop {server} elsewhere")
            self._telling[task] = asyncio.current_task()
            task.add_done_callback(self._told)

    def drop_here(self, server: str) -> None:
        """Another worker has written to a server."""
        super().drop_server(server)

    def confirmed(self, inner: Handler) -> Handler:
        """The handler of a method, whose answers wait until what it had dropped is dropped everywhere."""

        async def handle(ctx: ExecutionContext, request: Request) -> bytes:
            try:
                return await inner(ctx, request)
            finally:
                if self._telling:
                    await self._wait_for_mine()

        return handle

    def close(self) -> None:
        for task in self._telling:
            task.cancel()

    def _others_keep(self) -> bool:
        index, count = self._place.index, self._place.count
        return any(self._marks[other] for other in range(count) if other != index)

    async def _wait_for_mine(self) -> None:
        me = asyncio.current_task()
        mine = [task for task, by in self._telling.items() if by is me]
        if mine:
            await asyncio.wait(mine, timeout=CONFIRM_S)

    async def _tell(self, server: str) -> None:
        try:
            await self._drop_elsewhere(server)
        except GatewayFailure:
            self.unconfirmed_count += 1

    def _told(self, task: asyncio.Task[None]) -> None:
        del self._telling[task]
