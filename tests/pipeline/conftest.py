"""A whole gateway below the faces, in front of real child processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest

from pactgate.app import Gateway, build
from pactgate.catalog import supervisor
from pactgate.catalog.backoff import Backoff
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.core.context import ExecutionContext
from pactgate.core.events import Event
from pactgate.core.failures import Reply
from pactgate.core.values import Caller
from pactgate.pipeline import housekeeping
from pactgate.protocol import messages
from pactgate.protocol.messages import Request
from pactgate.upstreams.process import stdio
from pactgate.upstreams.process.child import ShutdownSteps
from tests.support.callers import call, caller, context, request


class Inside:
    """Calls the kernel as a face would."""

    def __init__(self, gateway: Gateway, events: list[Event]) -> None:
        self.gateway = gateway
        self.events = events

    async def call(self, name: str, arguments: Any = None, *, who: Caller | None = None, **more: Any) -> Reply:
        return await self.ask("tools/call", who=who, params=call(name, arguments, **more).params)

    async def ask(self, method: str, *, who: Caller | None = None, params: Any = None) -> Reply:
        message = Request(b"1", 1, method, params) if isinstance(params, bytes) else request(method, params)
        async with asyncio.timeout(10):
            if method == "tools/call":
                return await self._start(context(method, who or caller()), message)
            return await self.gateway.kernel.handle(context(method, who or caller()), message)

    async def _start(self, ctx: ExecutionContext, message: Request) -> Reply:
        """A tool call as an HTTP client makes it: decoded from its bytes."""
        decoded = messages.decode(messages.encode_request(message.id, message.method, message.params))
        return await self.gateway.kernel.handle(ctx, decoded if isinstance(decoded, Request) else message)


def text_of(reply: Reply) -> str:
    assert reply.result is not None, reply
    return str(json.loads(reply.result)["content"][0]["text"])


@contextmanager
def short_pauses() -> Iterator[None]:
    """Servers are tried and listed again after a tenth of a second instead of a second, and have little time to end; hazards among
    them are looked for as soon.
    """
    steps = ShutdownSteps(eof_s=0.3, term_s=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "Backoff", lambda: Backoff(first_s=0.1, between_lists_s=0.1))
        patch.setattr(housekeeping, "HAZARDS_AFTER_S", 0.1)
        patch.setattr(stdio, "StdioChannel", partial(stdio.StdioChannel, shutdown_steps=steps))
        yield


@asynccontextmanager
async def open_gateway(*servers: ServerConfig, **settings: Any) -> AsyncIterator[Inside]:
    events: list[Event] = []
    with short_pauses():
        gateway = build(Config(servers={server.id: server for server in servers}, **settings), events.append)
        await gateway.start()
        try:
            yield Inside(gateway, events)
        finally:
            await gateway.stop(grace_s=0)


@pytest.fixture
def gateway_in_front_of() -> Any:
    return open_gateway
