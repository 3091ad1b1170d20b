"""Stores results that are too large to send, so that their clients can read them in pages (D9).

Bounded in bytes, entries and age: the oldest results of the same subject are dropped first, then the oldest of all. A handle has 128
random bits and is valid only for its owner, as long as the owner may use the tool; for anybody else it does not exist.
Must not: copy or change a result.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import HandleOwner, Tool
from pactgate.protocol.messages import encode_json
from pactgate.state.owned_ids import new_plain_id

PREFIX: Final = "pactgate://results/"
PAGE_KEY: Final = "dev.pactgate/page"
_URI: Final = re.compile(re.escape(PREFIX) + r"([0-9a-f]{32}|[0-9A-Za-z_-]{70})(?:\?page=([1-9][0-9]{0,5}))?", re.ASCII)
_ENTRY_BYTES: Final = 512
"""What an entry costs beside its result."""


class Address(NamedTuple):
    handle: str
    page: int


class Page(Struct, frozen=True, gc=False):
    """One part of a result, as text. All parts in their order are the whole result. Pages count from 1."""

    text: str
    page: int
    pages: int


class _Entry(Struct, frozen=True, gc=False):
    owner: HandleOwner
    tool: Tool
    result: bytes
    until_s: float


def write_uri(handle: str, page: int = 1) -> str:
    return f"{PREFIX}{handle}?page={page}"


def read_uri(uri: str) -> Address | None:
    """The result and the page that a URI names, or None for any other URI. Without a page it is the first."""
    found = _URI.fullmatch(uri)
    return Address(found[1], int(found[2] or 1)) if found else None


class PagedResultStore:
    """The results that are kept. `page_bytes` is what one page takes at most when it is written as a JSON text."""

    def __init__(
        self,
        *,
        max_bytes: int = 33_554_432,
        max_entries: int = 256,
        ttl_s: float = 300.0,
        page_bytes: int = 262_144,
        clock: Callable[[], float] = time.monotonic,
        new_id: Callable[[], str] = new_plain_id,
    ) -> None:
        self._new_id = new_id
        self.held_bytes = 0
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._ttl_s = ttl_s
        # JSON written as a JSON text at most doubles, because its quotes are escaped; a page may begin up to three bytes early.
        self._stride = max(4, (page_bytes - 2) // 2 - 3)
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, owner: HandleOwner, result: bytes, tool: Tool) -> str | None:
        """Store a result of a tool for its owner and return its handle; None if the result alone exceeds the bound."""
        self.sweep()
        cost = len(result) + _ENTRY_BYTES
        if cost > self._max_bytes or self._max_entries < 1:
            return None
        while self.held_bytes + cost > self._max_bytes or len(self._entries) >= self._max_entries:
            own = (handle for handle, entry in self._entries.items() if entry.owner.subject == owner.subject)
            self._drop(next(own, None) or next(iter(self._entries)))
        handle = self._new_id()
        self._entries[handle] = _Entry(owner, tool, result, self._clock() + self._ttl_s)
        self.held_bytes += cost
        return handle

    def keep(self, owner: HandleOwner, result: bytes, tool: Tool, max_response_bytes: int) -> GatewayFailure:
        """Store a result that is too large to send, and return the failure that tells the client where to read it."""
        handle = self.put(owner, result, tool)
        told: dict[str, Any] = {"originalSizeBytes": len(result), "maxResponseBytes": max_response_bytes}
        message = (
            f"{tool.full_name} answered with {len(result)} bytes, more than the {max_response_bytes} an answer may have, "
            "and structured content is not cut."
        )
        if handle is None:
            message += " It was too large to be kept."
        else:
            uri, pages = write_uri(handle), self.pages(handle)
            told |= {"resultUri": uri, "pages": pages, "expiresInMs": int(self._ttl_s * 1000)}
            message += (
                f" The next {self._ttl_s:.0f} s it can be read as a resource in {pages} pages, the first being {uri}."
            )
        return GatewayFailure(
            Kind.RESPONSE_TOO_LARGE,
            message,
            server=tool.server,
            tool=tool.full_name,
            operation="tools/call",
            details=told,
        )

    def pages(self, handle: str) -> int:
        """How many pages a kept result has; none when it is not kept."""
        entry = self._entries.get(handle)
        return 0 if entry is None else max(1, -(-len(entry.result) // self._stride))

    def read(
        self, owner: HandleOwner, handle: str, page: int, may_use: Callable[[Tool], bool] | None = None
    ) -> Page | None:
        """One page of a result that was put by this caller, of a tool that it may still use; None for everything else."""
        entry = self._entries.get(handle)
        if entry is None or entry.owner != owner or self._clock() > entry.until_s:
            return None
        if may_use is not None and not may_use(entry.tool):
            return None
        pages = self.pages(handle)
        if not 1 <= page <= pages:
            return None
        start, end = (self._boundary(entry.result, count * self._stride) for count in (page - 1, page))
        return Page(entry.result[start:end].decode(), page, pages)

    def read_resource(
        self, owner: HandleOwner, uri: str, may_use: Callable[[Tool], bool] | None = None
    ) -> bytes | None:
        """The result of `resources/read` for a page, with the URI of the next one; None where there is none."""
        address = read_uri(uri)
        found = None if address is None else self.read(owner, *address, may_use)
        if address is None or found is None:
            return None
        about: dict[str, Any] = {"page": found.page, "pages": found.pages}
        if found.page < found.pages:
            about["next"] = write_uri(address.handle, found.page + 1)
        kind = "application/json" if found.pages == 1 else "text/plain"
        content = {"uri": uri, "mimeType": kind, "text": found.text}
        return encode_json({"contents": [content], "_meta": {PAGE_KEY: about}})

    def sweep(self) -> None:
        """Drop expired results. Entries are in the order of their age."""
        now = self._clock()
        while self._entries:
            handle, oldest = next(iter(self._entries.items()))
            if now <= oldest.until_s:
                return
            self._drop(handle)

    def forget(self, subject: str) -> None:
        """Drop everything that is kept for a subject, in all its sessions."""
        for handle in [handle for handle, entry in self._entries.items() if entry.owner.subject == subject]:
            self._drop(handle)

    def clear(self) -> None:
        self._entries.clear()
        self.held_bytes = 0

    def _drop(self, handle: str) -> None:
        self.held_bytes -= len(self._entries.pop(handle).result) + _ENTRY_BYTES

    @staticmethod
    def _boundary(text: bytes, place: int) -> int:
        """`place`, or the start of the character that it is inside of."""
        if place >= len(text):
            return len(text)
        while text[place] & 0xC0 == 0x80:
            place -= 1
        return place
