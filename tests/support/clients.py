"""Clients of one gateway that are told apart by their tokens and sessions, over HTTP before a lax server (`task_server`)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pactgate.app import build
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from tests.support.facing import META, initialize, message
from tests.support.raw_http import RawClient, post

SERVER = Path(__file__).with_name("task_server.py")
ALICE, BOB = "0123456789-alice-token", "0123456789-bob-token"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
AUTH = Auth(anonymous=True, tokens={"alice": Token(token=ALICE), "bob": Token(token=BOB)})


class Client:
    """One client of one era: a legacy one has a session of its own."""

    def __init__(self, port: int, token: str | None, path: str = "/mcp/plain") -> None:
        self._port = port
        self._path = path
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.session: dict[str, str] | None = None

    async def open(self) -> Client:
        async with RawClient(self._port) as client:
            answer = await client.post(initialize(), self._path, **self._headers)
        session = answer.header("mcp-session-id")
        assert session is not None, answer.body
        self.session = {"mcp_session_id": session, "mcp_protocol_version": LATEST_LEGACY}
        return self

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        headers = {**self._headers, **(self.session or {})}
        if self.session is None:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": TASKS}
            headers |= {"mcp_protocol_version": LATEST_MODERN, "mcp_method": method}
            name = params.get("taskId") or params.get("name") or params.get("uri")
            headers |= {} if name is None else {"mcp_name": name}
            params["_meta"] = meta
        async with RawClient(self._port) as client:
            answer = await client.ask(post(message(method, params), self._path, **headers))
        told: dict[str, Any] = answer.json
        return told

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return dict((await self.ask("tools/call", name=name, arguments=arguments or {}, **more))["result"])

    async def text(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        return str((await self.call(name, arguments))["content"][0]["text"])


@asynccontextmanager
async def served(era: str = "legacy", server: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[int]:
    plain = ServerConfig(id="plain", command=sys.executable, args=(str(SERVER), era), **(server or {}))
    config = Config(servers={"plain": plain}, listen=ListenSection(port=0), auth=AUTH, **settings)
    gateway = build(config, lambda event: None)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.discover(force_refresh=True)
    try:
        yield int(address.rpartition(":")[2])
    finally:
        await gateway.stop(grace_s=0)


async def client(port: int, token: str | None, era: str = "legacy") -> Client:
    return await Client(port, token).open() if era == "legacy" else Client(port, token)
