"""Runs one scripted session with a live server, which a recorder captures for the checker.

The session initializes, lists everything page by page, pings, requests a method that does not exist, reads a few resources, gets a few
prompts without required arguments, and calls a few tools that are annotated as read-only and need no arguments. An error response is
part of the record, not a failure of the probe. Everything is bounded in number and time.
Must not: check anything, or call a tool that may change something.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.config.server_settings import ServerConfig
from pactgate.conformance.methods import LISTS
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.dialer import Dialer, MakeTap, Session
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.process.child_reaper import ChildReaper

MAX_PAGES: Final = 50
MAX_EACH: Final = 3
UNKNOWN_METHOD: Final = "pactgate/unknown"
_CLIENT: Final = {"name": "pactgate-probe", "version": "1"}
_MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
_LOST: Final = frozenset({Kind.CONNECTION_LOST, Kind.CONNECTION_FAILED})


class ProbeTarget(Struct, frozen=True):
    """A server to connect to: a command with its arguments, or a URL."""

    command: tuple[str, ...] = ()
    url: str | None = None
    headers: dict[str, str] = {}
    env: dict[str, str] = {}
    cwd: str | None = None

    def config(self, era: Era | None, transport: str) -> ServerConfig:
        return ServerConfig(
            id="the server",
            command=self.command[0] if self.command else None,
            args=self.command[1:],
            env=self.env,
            cwd=self.cwd,
            url=self.url,
            headers=self.headers,
            era="auto" if era is None else era.value,
            transport="sse" if transport == "sse" else "auto",
        )


@asynccontextmanager
async def connected(
    target: ProbeTarget, era: Era | None, timeout_s: float, make_tap: MakeTap | None = None, transport: str = "auto"
) -> AsyncIterator[Session]:
    """A session with a live server. Afterwards everything that was started for it has ended. Raises GatewayFailure."""
    async with AsyncExitStack() as ending:
        client, child_reaper = HttpClient(), ChildReaper()
        ending.push_async_callback(child_reaper.close)
        ending.push_async_callback(client.close)
        dialer = Dialer(
            target.config(era, transport),
            client=client,
            child_reaper=child_reaper,
            emit=lambda _event: None,
            client_info=_CLIENT,
            max_frame_bytes=_MAX_FRAME_BYTES,
            make_tap=make_tap or (lambda _server, _transport: None),
        )
        try:
            async with asyncio.timeout(timeout_s):
                session = await dialer.dial()
        except TimeoutError:
            why = f"The server did not answer within {timeout_s:g} s; is it an MCP server?"
            raise GatewayFailure(Kind.CONNECT_TIMEOUT, why) from None
        ending.push_async_callback(session.peer.close)
        yield session


async def probe(target: ProbeTarget, make_tap: MakeTap, *, era: Era | None = None, timeout_s: float = 30.0) -> None:
    """Run the scripted session while a recorder captures it. A first connection, which is not recorded, finds era and transport."""
    async with connected(target, era, timeout_s) as session:
        era, transport = session.identity.era, session.transport
    async with connected(target, era, timeout_s, make_tap, transport) as session:
        await _Script(session, timeout_s).play()


class _Script:
    def __init__(self, session: Session, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    async def play(self) -> None:
        listed = await self._lists()
        if self._session.identity.era is Era.LEGACY:
            await self._ask("ping", {})
        await self._ask(UNKNOWN_METHOD, {})
        for uri in _texts(listed.get("resources", []), "uri")[:MAX_EACH]:
            await self._ask("resources/read", {"uri": uri}, uri)
        plain = [prompt for prompt in listed.get("prompts", []) if not _needs(prompt.get("arguments"))]
        for name in _texts(plain, "name")[:MAX_EACH]:
            await self._ask("prompts/get", {"name": name}, name)
        for name in _texts([tool for tool in listed.get("tools", []) if is_harmless(tool)], "name")[:MAX_EACH]:
            await self._ask("tools/call", {"name": name, "arguments": {}}, name)

    async def _lists(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for method, (member, _) in LISTS.items():
            if method.partition("/")[0] in self._session.identity.capabilities:
                found[member] = await self._pages(method, member)
        return found

    async def _pages(self, method: str, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            result = await self._ask(method, cursor)
            page = result.get(member)
            items += [item for item in page if isinstance(item, dict)] if isinstance(page, list) else []
            following = result.get("nextCursor")
            if not isinstance(following, str) or following == cursor.get("cursor"):
                break
            cursor = {"cursor": following}
        return items

    async def _ask(self, method: str, params: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
        """The result, or {} where there is none. Raises GatewayFailure when the connection is lost."""
        members = {key: Raw(encode_json(value)) for key, value in params.items()}
        try:
            async with asyncio.timeout(self._timeout_s):
                result = messages.value(await self._session.peer.request(method, members, name=name))
        except TimeoutError:
            return {}
        except GatewayFailure as failure:
            if failure.kind in _LOST:
                raise
            return {}
        return result if isinstance(result, dict) else {}


def is_harmless(tool: Mapping[str, Any]) -> bool:
    """Whether a tool is annotated as read-only and needs no arguments."""
    annotations, schema = tool.get("annotations"), tool.get("inputSchema")
    only_reads = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
    return only_reads and isinstance(schema, dict) and not schema.get("required")


def _needs(arguments: Any) -> bool:
    return isinstance(arguments, list) and any(isinstance(each, dict) and each.get("required") for each in arguments)


def _texts(items: list[dict[str, Any]], member: str) -> list[str]:
    return [item[member] for item in items if isinstance(item.get(member), str)]
