"""What a check plays with: the routes through the gateway, clients on them, and the recording of this check alone.

Must not: judge, or know which check it serves.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from pactgate.conformance.gateway.client import NO_ANSWER, ClientError, ScriptedClient
from pactgate.conformance.gateway.fleet import READY, SERVERS
from pactgate.conformance.gateway.gateway_process import GatewayProcess, is_running
from pactgate.conformance.gateway.recording import ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import Scenario, ScriptedTool, named
from pactgate.conformance.gateway.server_log import ScriptedLogs
from pactgate.conformance.gateway.under_test import GatewayUnderTest

_MAX_FRAMES: Final = 20_000
_POLL_S: Final = 0.05
_CALL_S: Final = 12.0
_HURRIED_S: Final = 3.0
_AT_ONCE: Final = 2
_START_S: Final = 45.0
PROCESS: Final = "process"
"""The label of what is noted about a process."""
T = TypeVar("T")


class NotApplicableError(Exception):
    """This gateway can't be asked. The message is the reason."""


class Lab:
    """One check has one lab. `why_not` says for each server that is not behind this gateway why."""

    def __init__(
        self,
        gateway: GatewayUnderTest,
        logs: ScriptedLogs,
        why_not: Mapping[str, str],
        process: GatewayProcess | None = None,
    ) -> None:
        """`process` is the gateway where the run has started it."""
        self.gateway = gateway
        self._process = process
        self.frames: list[Frame] = []
        self._logs = logs
        self._why_not = why_not
        self._own: list[ScriptedClient] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._begun = time.time()

    def routes(self, check: Scenario) -> list[ClientRoute]:
        """The routes that the gateway offers this check, at least one. Raises NotApplicableError with the reason."""
        found = [
            route
            for era in check.eras
            for server in check.servers
            if self.gateway.is_listed(route := ClientRoute(era, server))
        ]
        if not found:
            raise NotApplicableError(self.reason(check.eras, check.servers))
        return found

    def reason(self, eras: Collection[str], servers: Collection[str]) -> str:
        """Why there is no route."""
        refused = [
            f"No {era} client can connect: {self.gateway.refusals[era]}" for era in eras if era in self.gateway.refusals
        ]
        if len(refused) == len(eras):
            return refused[0]
        missing = [self._why_not.get(tag, f"it lists no tool of {SERVERS[tag].id}") for tag in servers]
        return f"No route to a server that the check needs: {missing[0]}."

    def has(self, *servers: str) -> bool:
        """Whether these servers are behind the gateway at all, connected or not."""
        return all(server in self.gateway.urls for server in servers)

    def require(self, *servers: str) -> None:
        """Raises NotApplicableError unless all of them are behind the gateway."""
        for server in servers:
            if not self.has(server):
                raise NotApplicableError(f"It needs {SERVERS[server].id}: {self._why_not.get(server, 'not started')}.")

    @property
    def process(self) -> GatewayProcess:
        """The gateway as a process that can be stopped. Raises NotApplicableError where it was started elsewhere."""
        if self._process is None:
            raise NotApplicableError("It was not started by this run, which so can't stop it (--start).")
        return self._process

    async def start_again(self) -> None:
        """After a check that has stopped the gateway. What clients know of it, their sessions too, is forgotten."""
        await self.process.restart()
        self.gateway.listings.clear()
        await self.gateway.wait(_START_S, lambda said: None)

    def living(self, server: str) -> list[int]:
        """The processes of a stdio server that still run."""
        return [pid for pid in self._logs.processes(server) if is_running(pid)]

    def note_process(self, server: str, pid: int, state: str) -> None:
        """Put into the recording what has become of a process of a server."""
        data = json.dumps({"pid": pid, "state": state})
        self.frames.append(
            Frame(at=time.time(), side=ScriptedSide.SERVER, who=server, is_sent=True, data=data, label=PROCESS)
        )

    def addresses(self, check: Scenario) -> list[ClientRoute]:
        """One route for each address and era, for what is the same whatever server it is about."""
        found = {(route.era, self.gateway.urls[route.server]): route for route in reversed(self.routes(check))}
        return [*reversed(found.values())]

    def connected(self, check: Scenario, era: str) -> list[ClientRoute]:
        """The routes of one client to all servers of the check."""
        return [route for route in self.routes(check) if route.era == era]

    def require_gateway(
        self, reason: str = "Without a gateway between, a client and a server of two eras don't meet."
    ) -> None:
        if self.gateway.is_direct:
            raise NotApplicableError(reason)

    @property
    def is_aggregate(self) -> bool:
        """Whether one address leads to several servers."""
        return len(self.gateway.urls) > len(set(self.gateway.urls.values()))

    def require_aggregate(self) -> None:
        if not self.is_aggregate:
            raise NotApplicableError("It has one server behind each address.")

    async def client(self, route: ClientRoute) -> ScriptedClient:
        """The client of the era that all checks share. A check that needs a session of its own uses `new_client`."""
        listing = self.gateway.listing(route)
        if listing is None:
            raise ClientError(f"no {route.era} client is connected")
        return listing.client

    async def new_client(
        self, route: ClientRoute, *, capabilities: str = "{}", version: str | None = None
    ) -> ScriptedClient:
        """A client of this check alone, open; it is closed after the check."""
        client = self.unopened(route, capabilities=capabilities, version=version)
        await client.open(self.record_on(route))
        return client

    @asynccontextmanager
    async def listeners(
        self, check: Scenario, *, capabilities: str = "{}"
    ) -> AsyncIterator[dict[ClientRoute, ScriptedClient]]:
        """For each route a client of this check alone, one for each address and era. Legacy clients listen on their session's stream."""
        found: dict[tuple[str, str], ScriptedClient] = {}
        async with AsyncExitStack() as stack:
            for route in (routes := self.routes(check)):
                if (key := (route.era, self.gateway.urls[route.server])) not in found:
                    client = found[key] = await self.new_client(route, capabilities=capabilities)
                    if route.era == "legacy":
                        await stack.enter_async_context(client.listening(self.record_on(route)))
            yield {route: found[route.era, self.gateway.urls[route.server]] for route in routes}

    def start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run it beside the check; it ends with the check."""
        task = asyncio.create_task(call)
        self._tasks.append(task)
        return task

    async def in_turn(self, calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run what a check does on its routes, two at a time: that a gateway is slow with many calls at once is no finding."""
        room, waiting = asyncio.Semaphore(_AT_ONCE), list(calls)

        async def one(call: Coroutine[Any, Any, T]) -> T:
            async with room:
                return await call

        tasks = [self.start(one(call)) for call in waiting]
        try:
            return await asyncio.gather(*tasks)
        finally:
            await _ended(tasks)
            for call in waiting:
                call.close()

    @property
    def call_s(self) -> float:
        """How long a call may take: once one of this check has had no answer, not as long any more."""
        return _HURRIED_S if any(not frame.data and NO_ANSWER in frame.label for frame in self.frames) else _CALL_S

    def unopened(self, route: ClientRoute, *, capabilities: str = "{}", version: str | None = None) -> ScriptedClient:
        gateway = self.gateway
        own = {} if version is None else {"version": version}
        client = ScriptedClient(
            gateway.http,
            gateway.urls[route.server],
            route.era,
            identity=gateway.identity,
            capabilities=capabilities,
            **own,
        )
        self._own.append(client)
        return client

    def exposed(self, route: ClientRoute, name: str, method: str = "tools/list") -> str:
        """How the gateway calls an entry of this server; where it is not listed, how it would, by the other names."""
        shown = self.gateway.find(route, method, name)
        if shown is not None:
            return shown
        ready = self.gateway.find(route, "tools/list", READY)
        own = named(name, route.server)
        return own if ready is None or method == "resources/list" else ready[: -len(named(READY, route.server))] + own

    async def record_definition(self, route: ClientRoute, tool: ScriptedTool) -> None:
        """Put what the server lists and what the gateway listed into the recording; an empty text where it is missing."""
        listing = self.gateway.listing(route)
        shown = self.gateway.find(route, "tools/list", tool.name)
        listed = listing.entries["tools/list"][shown] if listing is not None and shown is not None else ""
        for side, who, data in (
            (ScriptedSide.SERVER, route.server, tool.definition(route.server)),
            (ScriptedSide.CLIENT, f"{route.era}-survey", listed),
        ):
            frame = Frame(
                at=time.time(), side=side, who=who, is_sent=side is ScriptedSide.SERVER, data=data, label="definition"
            )
            self.record_on(route)(frame)

    def record_missing(self, route: ClientRoute, label: str) -> None:
        """Put it into the recording that there is no such route."""
        reason = self.reason((route.era,), (route.server,))
        record, who = self.record_on(route), f"{route.era}-survey"
        for is_sent, said in ((True, label), (False, reason)):
            frame = Frame(
                at=time.time(), side=ScriptedSide.CLIENT, who=who, is_sent=is_sent, data="", label=said, exchange=label
            )
            record(frame)

    def record_on(self, route: ClientRoute) -> Callable[[Frame], None]:
        """What takes the messages of a client on this route."""

        def record(frame: Frame) -> None:
            if len(self.frames) < _MAX_FRAMES:
                self.frames.append(replace(frame, route=route))

        return record

    async def until_server(self, label: str, is_it: Callable[[Frame], bool], timeout_s: float = 5.0) -> bool:
        """Wait until a server has recorded such a message; whether it did in time."""
        return await self._until(lambda: self._logs.about({label}), is_it, timeout_s)

    async def until_client(self, label: str, is_it: Callable[[Frame], bool], timeout_s: float = 5.0) -> bool:
        """Wait until a client has recorded such a message; whether it did in time."""
        return await self._until(lambda: [frame for frame in self.frames if frame.label == label], is_it, timeout_s)

    async def _until(self, read: Callable[[], list[Frame]], is_it: Callable[[Frame], bool], timeout_s: float) -> bool:
        ends = time.monotonic() + timeout_s
        while time.monotonic() < ends:
            if any(is_it(frame) for frame in read() if frame.at >= self._begun):
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def close(self) -> None:
        await _ended(self._tasks)
        await asyncio.gather(*(client.close() for client in self._own))


async def _ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
