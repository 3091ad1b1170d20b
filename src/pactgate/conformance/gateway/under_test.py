"""The gateway under test as its clients see it: which eras it speaks, and what it lists under which names.

Names are recognised by their end, because gateways put something before them. Must not: judge what it finds.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from pactgate.conformance.gateway.client import ClientError, ScriptedClient
from pactgate.conformance.gateway.fleet import READY, SERVERS
from pactgate.conformance.gateway.recording import ClientRoute, Frame
from pactgate.conformance.gateway.script import named
from pactgate.upstreams.http.client import HttpClient

ERAS: Final = ("legacy", "modern")
LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
}
_MAX_PAGES: Final = 500
_POLL_S: Final = 0.2
REST_S: Final = 8.0
"""How long to wait for the remaining servers, once the first is listed."""
_NOT_A_LETTER: Final = re.compile(r"[^a-z0-9]")


class UnreachableError(Exception):
    """The gateway did not list a tool of ours in time. The message says what it did."""


class Listing(Struct):
    """One client, and what it was listed: the exact text of each entry by its name or URI."""

    client: ScriptedClient
    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)


class GatewayUnderTest:
    """`urls` says where the clients of each server connect: one address for all, or each its own."""

    def __init__(
        self,
        urls: Mapping[str, str],
        identity: Mapping[str, str] | None = None,
        *,
        is_direct: bool = False,
        era: str = "",
    ) -> None:
        self.http = HttpClient()
        self.is_direct = is_direct
        self.urls = urls
        self.identity = identity or {}
        self.listings: dict[tuple[str, str], Listing] = {}
        """By era and URL."""
        self.refusals: dict[str, str] = {}
        """Why no client of an era could connect."""
        self.eras = tuple(one for one in ERAS if era in ("", one))
        for left_out in set(ERAS) - set(self.eras):
            self.refusals[left_out] = "its era is left out by --era"

    async def wait(self, limit_s: float, tell: Callable[[str], None]) -> None:
        """Wait until the tools of all servers are listed, or no more appear. Raises UnreachableError if none does."""
        begun, first = time.monotonic(), 0.0
        while True:
            await self.survey()
            missing = [tag for tag in self.urls if not any(self.is_listed(ClientRoute(era, tag)) for era in self.eras)]
            now, was_listed = time.monotonic(), first > 0
            first = first or (now if len(missing) < len(self.urls) else 0.0)
            # The clients of one era may have been refused because the gateway did not listen yet.
            if not missing and (was_listed or not self.refusals):
                return
            if first and now - first > REST_S:
                return
            if now - begun > limit_s:
                reasons = "; ".join(f"{era}: {why}" for era, why in self.refusals.items())
                raise UnreachableError(f"No tool of the scripted servers was listed within {limit_s:.0f} s. {reasons}")
            tell(f"waiting for the tools of {', '.join(SERVERS[tag].id for tag in missing)}")
            await asyncio.sleep(_POLL_S)

    async def survey(self) -> None:
        """Connect in both eras and read all lists."""
        for era in self.eras:
            reasons = []
            for url in dict.fromkeys(self.urls.values()):
                try:
                    self.listings[era, url] = await self._listing(era, url)
                except ClientError as problem:
                    reasons.append(str(problem))
            self.refusals.pop(era, None)
            if not any(key[0] == era for key in self.listings):
                self.refusals[era] = reasons[0] if reasons else "nothing to connect to"

    async def close(self) -> None:
        for listing in self.listings.values():
            await listing.client.close()
        await self.http.close()

    def client(self, era: str, url: str) -> ScriptedClient:
        """Another client, not yet open."""
        return ScriptedClient(self.http, url, era, identity=self.identity)

    def listing(self, route: ClientRoute) -> Listing | None:
        return self.listings.get((route.era, self.urls.get(route.server, "")))

    def is_listed(self, route: ClientRoute) -> bool:
        return self.find(route, "tools/list", READY) is not None

    def find(self, route: ClientRoute, method: str, name: str) -> str | None:
        """The name or URI under which the gateway lists an entry of a server."""
        listing = self.listing(route)
        if listing is None:
            return None
        wanted = named(name, route.server)
        return next((shown for shown in listing.entries.get(method, {}) if is_named(shown, wanted)), None)

    def implementation(self) -> str:
        """What the gateway calls itself, with its version."""
        for listing in self.listings.values():
            result = json.loads(listing.client.opening).get("result", {})
            info = result.get("serverInfo") or result.get("_meta", {}).get("io.modelcontextprotocol/serverInfo")
            if isinstance(info, dict):
                return f"{info.get('name', '?')} {info.get('version', '')}".strip()
        return "unknown"

    async def _listing(self, era: str, url: str) -> Listing:
        known = self.listings.get((era, url))
        listing = Listing(known.client if known is not None else self.client(era, url))
        if known is None:
            await listing.client.open(_forget)
        for method in LISTS:
            for key, text in await read_list(listing.client, method, _forget):
                listing.entries.setdefault(method, {})[key] = text
                listing.order.setdefault(method, []).append(key)
        return listing


def is_named(shown: str, wanted: str) -> bool:
    """Whether a gateway shows this name, with something before it, and perhaps other punctuation."""
    return _letters(shown).endswith(_letters(wanted))


async def read_list(client: ScriptedClient, method: str, record: Callable[[Frame], None]) -> list[tuple[str, str]]:
    """All pages: the name or URI of each entry with its exact text. What can't be read is the end."""
    member, key = LISTS[method]
    found: list[tuple[str, str]] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        frame = await client.request(record, method, "" if cursor is None else f'"cursor":{json.dumps(cursor)}')
        page = _Page.read(frame.data)
        found += list(page.entries(member, key))
        cursor = page.cursor
        if cursor is None:
            break
    return found


class _Page(Struct):
    """The members of one result, as text."""

    members: dict[str, Raw]

    @classmethod
    def read(cls, data: str) -> _Page:
        try:
            message = msgspec.json.decode(data.encode("utf-8", "replace"), type=dict[str, Raw])
            return cls(msgspec.json.decode(message.get("result", b"{}"), type=dict[str, Raw]))
        except msgspec.DecodeError:
            return cls({})

    @property
    def cursor(self) -> str | None:
        value = json.loads(bytes(self.members.get("nextCursor", b"null")))
        return value if isinstance(value, str) else None

    def entries(self, member: str, key: str) -> Iterator[tuple[str, str]]:
        for entry in msgspec.json.decode(self.members.get(member, b"[]"), type=list[Raw]):
            text = bytes(entry).decode()
            value = json.loads(text)
            if isinstance(value, dict) and isinstance(value.get(key), str):
                yield value[key], text


def _letters(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.lower())


def _forget(frame: Frame) -> None:
    """The survey is no part of a check's recording."""
