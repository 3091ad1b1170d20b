"""A served HTTP frontend over a fake kernel, and the messages of both eras that tests send to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pactgate.config.model import Sessions
from pactgate.config.sections.auth import token_digest
from pactgate.core.events import Event
from pactgate.core.principal import Principal
from pactgate.inbound.admin import CallTraces, Reach
from pactgate.inbound.auth import Guard
from pactgate.inbound.call_filter import CallFilter
from pactgate.inbound.connection import Admit, Handle
from pactgate.inbound.console import Console
from pactgate.inbound.credentials import Credential
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.http_frontend import HttpFrontend, MakeConnectPages
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from pactgate.telemetry.exposition import TEXT
from tests.support.eventually import eventually
from tests.support.fake_kernel import FakeKernel
from tests.support.raw_http import Answer, RawClient, post

SERVERS = frozenset({"files", "web"})
SNAPSHOT: dict[str, Any] = {
    "name": "pactgate",
    "lists": "whole",
    "version": "0",
    "uptimeMs": 1,
    "servers": [{"serverId": "files", "status": "connected", "toolCount": 1, "lastError": None, "latencyMs": 1.0}],
    "tools": [{"fullName": "files.read"}],
    "calls": {"total": 0, "failed": 0},
}


def credentials(holders: Mapping[str, tuple[str, frozenset[str]]]) -> list[Credential]:
    """Tokens for a guard, by the token: the name of its holder, and the roles."""
    return [
        Credential(digest=token_digest(token), principal=Principal(subject, roles))
        for token, (subject, roles) in holders.items()
    ]


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class NoStories:
    """A gateway that was never called."""

    def get(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None:
        return None

    def latest(self, count: int, subject: str | None = None, keeps: CallFilter | None = None) -> list[dict[str, Any]]:
        return []


class ReachesAll:
    """No permissions: every caller reaches these servers."""

    def __init__(self, servers: Collection[str]) -> None:
        self._servers = servers

    def is_served(self, server: str, principal: Principal) -> bool:
        return server in self._servers

    def shown_to(self, principal: Principal, facts: Mapping[str, Any]) -> None:
        return None


class NoLogs:
    """No server has written anything."""

    def read(self, server: str, after: int) -> dict[str, Any]:
        return {"lines": [], "last": 0, "leftOut": 0}


class Served:
    """What a test can reach: the port, the kernel, the frontend, the server, and what was emitted."""

    def __init__(
        self, kernel: FakeKernel, frontend: HttpFrontend, server: HttpServer, events: list[Event], port: int
    ) -> None:
        self.kernel = kernel
        self.frontend = frontend
        self.server = server
        self.events = events
        self.port = port

    def client(self) -> RawClient:
        return RawClient(self.port)

    async def ask(self, data: bytes) -> Answer:
        """One request on a connection of its own."""
        async with self.client() as client:
            return await client.ask(data)

    async def still_serves(self) -> None:
        answer = await self.ask(modern("tools/call", name="echo"))
        assert answer.status == 200
        assert "result" in answer.json

    async def session(self, version: str = LATEST_LEGACY, path: str = "/mcp", **headers: str) -> dict[str, str]:
        """Open a session; returns the headers that name it."""
        answer = await self.ask(post(initialize(version), path, **headers))
        assert answer.status == 200, answer.body
        session = answer.header("mcp-session-id")
        assert session is not None
        return {**headers, "mcp_session_id": session, "mcp_protocol_version": version}


@asynccontextmanager
async def serving(
    *,
    limits: ServerLimits | None = None,
    sessions: Sessions | None = None,
    guard: Guard | None = None,
    clock: Callable[[], float] = time.monotonic,
    snapshot: Callable[[], dict[str, Any]] = lambda: SNAPSHOT,
    stories: CallTraces | None = None,
    reach: Reach | None = None,
    console: Console | None = None,
    connect: MakeConnectPages | None = None,
) -> AsyncIterator[Served]:
    events: list[Event] = []
    kernel = FakeKernel(events.append)
    frontend = HttpFrontend(
        kernel,
        guard or Guard(host="127.0.0.1", anonymous=True),
        reach=reach or ReachesAll(SERVERS),
        snapshot=snapshot,
        metrics=lambda accept: (b"pactgate_up 1\n", TEXT),
        stories=stories or NoStories(),
        server_logs=NoLogs(),
        traffic=dict,
        emit=events.append,
        sessions=sessions,
        clock=clock,
        console=None if console is None else lambda: console,
        connect=connect,
    )
    server = HttpServer(frontend.handle, limits or ServerLimits(), events.append, frontend.admit)
    frontend.exchanges = server.exchanges
    _, port = await server.listen("127.0.0.1", 0)
    try:
        yield Served(kernel, frontend, server, events, port)
    finally:
        await server.close(0.0)
        frontend.close()


@asynccontextmanager
async def listening(
    handle: Handle, limits: ServerLimits | None = None, admit: Admit = lambda exchange: True
) -> AsyncIterator[tuple[HttpServer, int, list[Event]]]:
    """A server alone, with a handler of the test's own."""
    events: list[Event] = []
    server = HttpServer(handle, limits or ServerLimits(), events.append, admit)
    _, port = await server.listen("127.0.0.1", 0)
    try:
        yield server, port, events
    finally:
        await server.close(0.0)


def answering_after(go: asyncio.Event, answer: Handle) -> Handle:
    """A handler whose work waits for an event, then answers. Cancelled, it says that the gateway is stopping."""

    def handle(exchange: HttpExchange) -> None:
        work = asyncio.get_running_loop().create_task(go.wait())

        def ended(waiting: asyncio.Task[bool]) -> None:
            exchange.work = None
            if waiting.cancelled():
                exchange.respond(503, JSON_HEAD, b'"stopping"')
            else:
                answer(exchange)

        exchange.work = work
        work.add_done_callback(ended)

    return handle


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until the condition holds, at most a bounded time."""
    await eventually(condition)


META = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


def message(method: str, params: Any = None, id_: Any = 1) -> dict[str, Any]:
    fields = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    return {name: value for name, value in fields.items() if value is not None}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    return message(method, params, None)


def initialize(version: str = LATEST_LEGACY) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "tests", "version": "1"},
    }
    return message("initialize", params)


def call(name: str, arguments: dict[str, Any] | None = None, id_: Any = 1) -> dict[str, Any]:
    """A legacy tools/call."""
    return message("tools/call", {"name": name, "arguments": arguments or {}}, id_)


def modern_call(name: str, arguments: dict[str, Any] | None = None, id_: Any = 1) -> dict[str, Any]:
    return message("tools/call", {"name": name, "arguments": arguments or {}, "_meta": META}, id_)


def modern(method: str, path: str = "/mcp", *, name: str | None = None, arguments: Any = None, **headers: str) -> bytes:
    """A whole modern POST with everything it needs."""
    params: dict[str, Any] = {"_meta": META}
    mirrored = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": method}
    if name is not None:
        params |= {"name": name, "arguments": arguments or {}}
        mirrored["mcp_name"] = name
    return post(message(method, params), path, **{**mirrored, **headers})
