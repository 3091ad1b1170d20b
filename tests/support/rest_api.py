"""A REST API of ours on a real socket: the test says what each request is answered with, and sees what arrived."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pactgate.config.sections.endpoints import Endpoint
from pactgate.config.server_settings import ServerConfig
from tests.support.scripted_http import Peer, ReceivedRequest, ScriptedHttp, answer

Answering = bytes | Callable[[ReceivedRequest], bytes]
GET_ITEM: dict[str, Any] = {
    "name": "get_item",
    "description": "One item",
    "method": "GET",
    "path": "/items/{id}",
    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
}


def endpoint(**settings: Any) -> Endpoint:
    """`GET /items/{id}` with these settings, in the words of a file."""
    return msgspec.convert(GET_ITEM | settings, Endpoint)


def plain(**settings: Any) -> Endpoint:
    """An endpoint without arguments, with these settings."""
    return endpoint(**{"name": "ask", "path": "/ask", "parameters": [], **settings})


class Api:
    """What the API was asked, and the settings under which the gateway knows it."""

    def __init__(self, server: ScriptedHttp) -> None:
        self.server = server
        self.requests: list[ReceivedRequest] = []

    @property
    def origin(self) -> str:
        return self.server.url.removesuffix("/mcp")

    def config(self, *endpoints: Endpoint, **settings: Any) -> ServerConfig:
        return ServerConfig(id="shop", base_url=self.origin, endpoints=endpoints or (endpoint(),), **settings)


@asynccontextmanager
async def serving(answers: Answering = b"", **options: Any) -> AsyncIterator[Api]:
    """An API that answers every request so; by default with a small object."""

    async def play(peer: Peer) -> None:
        while True:
            received = await peer.request()
            api.requests.append(received)
            await peer.send(answers(received) if callable(answers) else answers or answer({"id": "7"}))

    async with ScriptedHttp(play, **options) as server:
        api = Api(server)
        yield api


def raw(arguments: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(json.dumps(held).encode()) for name, held in arguments.items()}
