"""Requests on their way: one somebody awaits, and one that was begun without waiting and tells its sink.

Must not: know transports or what an answer means.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from pactgate.core.failures import GatewayFailure
from pactgate.protocol.messages import Response


class Pending(Protocol):
    """What stands for a request until it is answered. Exactly one of the two is called, once."""

    @property
    def method(self) -> str: ...

    def answered(self, response: Response) -> None: ...

    def refused(self, failure: GatewayFailure) -> None: ...


class Sink(Protocol):
    """Whoever began a request. Exactly one of the two is called, once, on the event loop; neither may raise."""

    def answered(self, response: Response) -> None: ...

    def failed(self, failure: GatewayFailure) -> None: ...


class Ledger(Protocol):
    """Where requests that were begun are entered: a peer."""

    def gave_up(self, id_: int) -> None: ...

    def unanswered(self, id_: int, failure: GatewayFailure | None) -> GatewayFailure: ...


class Awaited:
    """A request somebody awaits."""

    __slots__ = ("answer", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answered(self, response: Response) -> None:
        if not self.answer.done():
            self.answer.set_result(response.result)

    def refused(self, failure: GatewayFailure) -> None:
        if not self.answer.done():
            self.answer.set_exception(failure)

    def forget(self) -> None:
        """Nobody awaits it any more."""
        if not self.answer.done():
            self.answer.cancel()
        elif not self.answer.cancelled():
            self.answer.exception()  # retrieved here in case sending failed first, so that no warning follows


class Sent:
    """A request that was begun. A channel that holds something for it adds that."""

    __slots__ = ("_ledger", "_sink", "id")

    method: Final = "tools/call"

    def __init__(self, ledger: Ledger, sink: Sink, id_: int) -> None:
        self._ledger = ledger
        self._sink: Sink | None = sink
        self.id = id_

    def answered(self, response: Response) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.answered(response)

    def refused(self, failure: GatewayFailure) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.failed(failure)

    def ended(self, failure: GatewayFailure | None) -> None:
        """For the channel: the exchange of this request is over. Without an answer before, the request has failed."""
        if self._sink is not None:
            self.refused(self._ledger.unanswered(self.id, failure))

    def give_up(self) -> None:
        """The sink does not want the answer any more, and is told nothing."""
        self._sink = None
        self._ledger.gave_up(self.id)
