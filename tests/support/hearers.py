"""Callers that remember what they were told, in front of servers that change."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pactgate.config.server_settings import ServerConfig
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, ListReader
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from tests.support.callers import context

SERVER = Path(__file__).parent / "changing_server.py"
WAIT_S = 5
ERAS = ("legacy", "modern")
ACK = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
TOOLS_CHANGED = "notifications/tools/list_changed"
SUB = "io.modelcontextprotocol/subscriptionId"


def changing(server: str, era: str, **options: Any) -> ServerConfig:
    return ServerConfig(id=server, command=sys.executable, args=(str(SERVER), era, json.dumps(options)))


class Ear:
    """A channel that keeps what comes; also the standing one of a legacy session, and the audience of a face."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.told: list[tuple[str | None, str]] = []
        self._news = asyncio.Event()
        self.can_ask = False

    def notify(self, method: str, params: bytes | None) -> None:
        self.heard.append((method, json.loads(params or b"{}")))
        self._news.set()

    def tell(self, method: str, concerns: Callable[[ListReader], bool]) -> None:
        """As an endpoint with clients at `/mcp`, `/mcp/a` and `/mcp/b`."""
        for scope in (None, "a", "b"):
            if concerns(modern_caller(Ear(), scope)):
                self.told.append((scope, method))
                self._news.set()

    async def ask(self, method: str, params: bytes) -> bytes:
        raise AssertionError("nobody asks here")

    async def until(self, condition: Callable[[Ear], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def until_heard(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        await self.until(lambda ear: len(ear.of(method)) >= count)
        return self.of(method)

    def of(self, method: str) -> list[dict[str, Any]]:
        return [params for heard, params in self.heard if heard == method]


def legacy_caller(ear: Ear, session: str = "s1", scope: str | None = None, version: str = LATEST_LEGACY) -> Caller:
    return Caller(Principal("me"), Era.LEGACY, version, ear, session=session, scope=scope, standing=ear)


def modern_caller(ear: Ear, scope: str | None = None, **more: Any) -> Caller:
    return Caller(Principal("me"), Era.MODERN, LATEST_MODERN, ear, scope=scope, **more)


@asynccontextmanager
async def listening(
    inside: Any, caller: Caller, wanted: dict[str, Any], id_: bytes = b'"l1"'
) -> AsyncIterator[asyncio.Task[Any]]:
    """An open `subscriptions/listen`, as a face runs it."""
    request = Request(id_, json.loads(id_), "subscriptions/listen", encode_json({"notifications": wanted}))
    task = asyncio.create_task(inside.gateway.kernel.handle(context("subscriptions/listen", caller), request))
    ear = caller.channel
    assert isinstance(ear, Ear)
    try:
        waiting = asyncio.create_task(ear.until_heard(ACK))
        await asyncio.wait({waiting, task}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def list_all(inside: Any, server: str = "a") -> None:
    """Wait until what the server offers is known."""
    await inside.gateway.discover(server_ids=[server], force_refresh=True)
    inside.gateway.changes.flush()


async def heard_by(inside: Any, server: str = "a") -> list[dict[str, Any]]:
    """What the server was sent so far."""
    reply = await inside.call(f"{server}.heard")
    assert reply.result is not None, reply
    return list(json.loads(json.loads(reply.result)["content"][0]["text"]))


async def until_server_heard(inside: Any, method: str, server: str = "a") -> list[dict[str, Any]]:
    async with asyncio.timeout(WAIT_S):
        while True:
            found = [each["params"] for each in await heard_by(inside, server) if each["method"] == method]
            if found:
                return found
