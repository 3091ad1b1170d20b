"""One POST that was begun without waiting: what came back is read in the step in which it arrives.

Only an event stream, which comes in pieces, is followed by a task, which ends with it or is ended by whoever gives the request up.
Must not: know what an answer means; the channel does.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http_response import Response, Taker
from pactgate.upstreams.sent import Sent


class Reader(Protocol):
    """What a post needs of its channel. Both raise what is wrong with an answer."""

    def take_whole(self, id_: int, response: Response) -> None: ...

    async def take_stream(self, id_: int, response: Response) -> None: ...


class Busy(Protocol):
    """The connection an answer comes on."""

    def give_up(self, taker: Taker) -> None: ...


class Post:
    """The taker of one answer."""

    __slots__ = ("_reader", "_sent", "_task", "connection")

    def __init__(self, reader: Reader, sent: Sent) -> None:
        self._reader = reader
        self._sent = sent
        self._task: asyncio.Task[None] | None = None
        self.connection: Busy | None = None
        sent.exchange = self

    def took(self, response: Response) -> None:
        if response.stream is not None:
            self._task = asyncio.get_running_loop().create_task(self._reader.take_stream(self._sent.id, response))
            self._task.add_done_callback(self._followed)
            return
        try:
            self._reader.take_whole(self._sent.id, response)
        except GatewayFailure as failure:
            self._sent.ended(failure)
        else:
            self._sent.ended(None)

    def failed(self, failure: GatewayFailure) -> None:
        self._sent.ended(failure)

    def give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif self.connection is not None:
            self.connection.give_up(self)

    def _followed(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        problem = task.exception()
        is_told = problem is None or isinstance(problem, GatewayFailure)
        self._sent.ended(problem if isinstance(problem, GatewayFailure) else None)
        if not is_told:
            task.result()  # a mistake of ours, which the loop reports
