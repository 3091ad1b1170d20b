"""One POST that was begun without waiting: what came back is read in the step in which it arrives.

Only an event stream, which comes in pieces, is followed by a task, which ends with it or is ended by whoever gives the request up.
Must not: know what an answer means; the channel does.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.response import HttpResponse, Taker
from pactgate.upstreams.pending import Ledger, Sent, Sink


class Reader(Protocol):
    """What a post needs of its channel. Both raise what is wrong with an answer."""

    def take_whole(self, id_: int, response: HttpResponse) -> None: ...

    async def take_stream(self, id_: int, response: HttpResponse) -> None: ...


class Busy(Protocol):
    """The connection an answer comes on."""

    def give_up(self, taker: Taker) -> None: ...


class Post(Sent):
    """The taker of one answer."""

    __slots__ = ("_reader", "_task", "connection")

    def __init__(self, reader: Reader, ledger: Ledger, sink: Sink, id_: int) -> None:
        self._ledger = ledger  # what every sent request has, without a call for it
        self._sink = sink
        self.id = id_
        self._reader = reader
        self._task: asyncio.Task[None] | None = None
        self.connection: Busy | None = None

    def took(self, response: HttpResponse) -> None:
        self.connection = None
        if response.stream is not None:
            self._task = asyncio.get_running_loop().create_task(self._reader.take_stream(self.id, response))
            self._task.add_done_callback(self._followed)
            return
        try:
            self._reader.take_whole(self.id, response)
        except GatewayFailure as failure:
            self.ended(failure)
        else:
            if self._sink is not None:
                self.ended(None)

    def failed(self, failure: GatewayFailure) -> None:
        self.connection = None
        self.ended(failure)

    def give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif self.connection is not None:
            self.connection.give_up(self)
        Sent.give_up(self)

    def _followed(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        problem = task.exception()
        is_told = problem is None or isinstance(problem, GatewayFailure)
        self.ended(problem if isinstance(problem, GatewayFailure) else None)
        if not is_told:
            task.result()  # a mistake of ours, which the loop reports
