"""A gateway as one of several workers: what it takes from the owner, asks of the others, and is asked by them.

A worker asks the others through the owner: to take over a configuration, and for what they have counted. Every question is bounded in
time, and an answer that is missing costs no more than what it was asked for. Must not: decide anything about a call.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pactgate.audit.chain_file import of_worker
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Event, WorkerStarted
from pactgate.core.failures import GatewayFailure
from pactgate.inbound.auth import Admitted, Guard
from pactgate.inbound.connection import Handle
from pactgate.inbound.http_exchange import Exchange
from pactgate.inbound.http_server import HttpServer
from pactgate.pipeline.live_configuration import Standing
from pactgate.policy.result_cache import Recall
from pactgate.state.guarded import GuardedStore
from pactgate.upstreams.lent import Loan
from pactgate.workers.alone import Crew, Facts, Gateway, OwnStories, Text
from pactgate.workers.epochs import Epochs, size_bytes
from pactgate.workers.gathered import AllStories, add_metrics, add_snapshots, seen_by_others
from pactgate.workers.handover import Handover
from pactgate.workers.homes import Place, shared
from pactgate.workers.link import Fds, Link
from pactgate.workers.parcels import pack, unpack
from pactgate.workers.recalling import CrewRecall

ASK_S: Final = 1.0
TURN_S: Final = 30.0
AGREE_S: Final = 15.0
LEND_S: Final = 10.0
_FRESH_S: Final = 0.2
_CALLS: Final = "/api/calls"
_LISTED: Final = 100
_KEPT_STORIES: Final = 100


class Hello(Struct, frozen=True):
    """What the owner tells a worker first. Its descriptors: the inbox, one outbox for each worker, the epochs, the listening sockets."""

    place: Place
    standing: Standing
    host: str
    port: int
    token: str | None
    away: list[int] = []


class Member(Crew):
    """One of several workers. `on_stop` is called when the owner says so, or is gone."""

    def __init__(
        self, hello: Hello, descriptors: Sequence[int], link: socket.socket, on_stop: Callable[[], None]
    ) -> None:
        self.place = hello.place
        self.hello = hello
        self.lend = self._borrow
        self.colleagues = self
        count = hello.place.count
        self._inbox = _unix(descriptors[0])
        self._outboxes = [_unix(one) for one in descriptors[1 : 1 + count]]
        self._memory = mmap.mmap(descriptors[1 + count], size_bytes(count))
        os.close(descriptors[1 + count])
        self._epochs = Epochs(self._memory, hello.place)
        self._listeners = [socket.socket(fileno=one) for one in descriptors[2 + count :]]
        self._link = Link(link, self._on_notice, self._on_question, on_stop)
        self._on_stop = on_stop
        self._gateway: Gateway | None = None
        self._guard: Guard | None = None
        self._handover: Handover | None = None
        self._stories: AllStories | None = None
        self._others: list[dict[str, Any]] = []
        self._gathered_at = -_FRESH_S
        self._gathering = asyncio.Lock()

    # How the gateway is wired.

    def join(self, gateway: Gateway) -> None:
        self._gateway = gateway
        gateway.configuration.begin_from(self.hello.standing)

    def bounds(self, config: Config) -> Config:
        return shared(config, self.place)

    def recall(self, store: GuardedStore) -> Recall:
        return CrewRecall(store, self._epochs)

    def own_file(self, file: str) -> str:
        return str(of_worker(Path(file), self.place.index + 1))

    def token(self) -> str:
        assert self.hello.token is not None, "the owner has made one where one is needed"
        return self.hello.token

    def started(self, address: str, servers: int) -> Event:
        return WorkerStarted(self.place.index + 1, os.getpid())

    async def open(self, server: HttpServer, guard: Guard, host: str, port: int) -> tuple[str, int]:
        self._guard = guard
        self._handover = Handover(self.place, self._inbox, self._outboxes, guard, server)
        self._handover.away = set(self.hello.away)
        await server.listen_on(self._listeners)
        return self.hello.host, self.hello.port

    def ready(self) -> None:
        self._link.tell("ready")

    def tell_owner(self, name: str, body: Any) -> None:
        if self._link.is_open:
            self._link.tell(name, body)

    def close(self) -> None:
        if self._handover is not None:
            self._handover.close()
        self._link.close()
        self._epochs.close()
        self._memory.close()

    # What it asks of the owner, and through it of the others.

    async def _borrow(self, config: ServerConfig) -> Loan:
        facts, descriptors = await self._link.ask("lend", pack(config), timeout_s=LEND_S)
        return Loan(descriptors[0], facts["pid"], facts["sandbox"])

    async def _ask_others(self, name: str, body: Any, timeout_s: float) -> list[Any]:
        """What the other workers answer, those that answer in time."""
        answers, _ = await self._link.ask("others", (name, body, timeout_s), timeout_s=timeout_s + ASK_S)
        said: list[Any] = [answer for _, answer in answers if answer is not None]
        return said

    def turn(self) -> AbstractAsyncContextManager[None]:
        return self._turn()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        await self._link.ask("turn", timeout_s=TURN_S)
        try:
            yield
        finally:
            self.tell_owner("turn_over", None)

    async def agree(self, standing: Standing) -> None:
        await self._link.ask("agree", pack(standing), timeout_s=AGREE_S + ASK_S)

    # What is asked of it.

    def _on_notice(self, name: str, body: Any, descriptors: Fds) -> None:
        handover = self._handover
        if name == "stop":
            self._on_stop()
        elif handover is not None and name == "away":
            handover.away.add(body)
        elif handover is not None and name == "back":
            handover.away.discard(body)

    async def _on_question(self, name: str, body: Any) -> tuple[Any, Fds]:
        gateway = self._gateway
        assert gateway is not None
        if name == "take_over":
            await gateway.configuration.take_over(unpack(body, Standing))
            return True, ()
        if name == "reload":
            await gateway.reload(unpack(body[0], Config), only_if_news=body[1])
            return True, ()
        if name == "story":
            return gateway.stories.tell(body), ()
        if name == "calls":
            return gateway.stories.latest(_LISTED), ()
        return {"metrics": self._own_metrics(gateway.render_metrics()), **seen_by_others(gateway.snapshot())}, ()

    # One gateway to whoever looks at it.

    def handle(self, inner: Handle) -> Handle:
        async def handle(exchange: Exchange) -> None:
            if not exchange.path.startswith("/mcp"):
                await self._look_around(exchange)
            await inner(exchange)

        return handle

    def stories(self, own: OwnStories) -> OwnStories:
        self._stories = AllStories(own)
        return self._stories

    def snapshot(self, own: Facts) -> Facts:
        return lambda: add_snapshots(own(), self._others)

    def metrics(self, own: Text) -> Text:
        return lambda: add_metrics(self._own_metrics(own()), [other["metrics"] for other in self._others])

    async def tell_elsewhere(self, request_id: str) -> dict[str, Any] | None:
        found = await self._ask_others("story", request_id, ASK_S)
        return found[0] if found else None

    async def _look_around(self, exchange: Exchange) -> None:
        """Ask the others before one of the answers that are about all of them. Whoever may not see it is not worth asking for."""
        if self._guard is None or not isinstance(self._guard.identify_by(exchange.headers), Admitted):
            return
        try:
            if exchange.path.startswith(_CALLS):
                await self._look_for_calls(exchange.path.removeprefix(_CALLS))
            elif not exchange.path.startswith("/health/"):
                await self._gather()
        except GatewayFailure:
            return  # what this worker knows is shown

    async def _look_for_calls(self, rest: str) -> None:
        stories = self._stories
        if stories is None:
            return
        if not rest:
            stories.rows = [row for rows in await self._ask_others("calls", None, ASK_S) for row in rows]
        elif (story := await self.tell_elsewhere(rest[1:])) is not None:
            stories.stories[rest[1:]] = story
            if len(stories.stories) > _KEPT_STORIES:
                del stories.stories[next(iter(stories.stories))]

    async def _gather(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._gathering:
            if loop.time() - self._gathered_at >= _FRESH_S:
                self._others = await self._ask_others("facts", None, ASK_S)
                self._gathered_at = loop.time()

    def _own_metrics(self, text: bytes) -> bytes:
        handed = self._handover.handed_count if self._handover is not None else 0
        more = (
            ("pactgate_workers", "gauge", self.place.count),
            ("pactgate_connections_handed_over_total", "counter", handed),
        )
        return text + "".join(f"# TYPE {name} {kind}\n{name} {number}\n" for name, kind, number in more).encode()


def _unix(descriptor: int) -> socket.socket:
    return socket.socket(fileno=descriptor)
