"""The index of tools and prompts by full, exposed and bare name, in deterministic order.

An index does not change. The catalog replaces it in one assignment, so a request sees one consistent state. Enforces S0/ECO-003 and D3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Entry, Prompt, Tool

MAX_EXPOSED_CHARS: Final = 64
_HASH_CHARS: Final = 8
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
SEPARATORS: Final = {"double_underscore": "__", "dot": "."}

EntryT = TypeVar("EntryT", bound=Entry)


class EntryKind(NamedTuple):
    """The kind of entry in an index, with the words and failure kinds of its messages."""

    word: str
    method: str
    unknown: Kind
    ambiguous: Kind


TOOL_KIND: Final = EntryKind("tool", "tools/list", Kind.UNKNOWN_TOOL, Kind.AMBIGUOUS_TOOL)
PROMPT_KIND: Final = EntryKind("prompt", "prompts/list", Kind.UNKNOWN_PROMPT, Kind.AMBIGUOUS_PROMPT)


def exposed_name(server: str, name: str, separator: str) -> str:
    """The name that clients see: valid for strict clients, at most 64 characters, a function of the two names alone."""
    wanted = f"{server}{separator}{name}"
    shown = wanted if separator == "." else f"{server}{separator}{_UNSAFE.sub('_', name)}"
    if shown == wanted and len(shown) <= MAX_EXPOSED_CHARS:
        return shown
    mark = hashlib.sha256(f"{server}.{name}".encode()).hexdigest()[:_HASH_CHARS]
    return f"{shown[: MAX_EXPOSED_CHARS - _HASH_CHARS - 1]}_{mark}"


class NameIndex(Generic[EntryT]):
    """The entries, in the order of the configuration and then of each server's list."""

    def __init__(self, named: Mapping[str, tuple[EntryT, ...]], kind: EntryKind) -> None:
        self._kind = kind
        self._entries = tuple(entry for own in named.values() for entry in own)
        self._by_full = {entry.full_name: entry for entry in self._entries}
        self._by_exposed = {entry.exposed_name: entry for entry in self._entries}
        self._by_bare: dict[str, list[EntryT]] = {}
        for entry in self._entries:
            self._by_bare.setdefault(entry.name, []).append(entry)
        self._own = {server: {entry.name: entry for entry in own} for server, own in named.items()}

    def entries(self, scope: str | None = None) -> tuple[EntryT, ...]:
        return self._entries if scope is None else tuple(self._own.get(scope, {}).values())

    def resolve(self, name: str, scope: str | None = None) -> EntryT:
        """The entry with a full, exposed or unique bare name. With `scope`, the entry of that server with this bare name."""
        if scope is not None:
            own = self._own.get(scope, {}).get(name)
            if own is None:
                raise self._unknown(name, scope)
            return own
        entry = self._by_full.get(name) or self._by_exposed.get(name) or self._spelt_otherwise(name)
        if entry is not None:
            return entry
        candidates = self._by_bare.get(name, [])
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise self._ambiguous(name, candidates)
        raise self._unknown(name, None)

    def _spelt_otherwise(self, name: str) -> EntryT | None:
        """Accept `server__name` where exposed names use dots, and for names whose exposed form was changed."""
        server, found, own = name.partition("__")
        return self._by_full.get(f"{server}.{own}") if found else None

    def _unknown(self, name: str, scope: str | None) -> GatewayFailure:
        where = f"the server {scope}" if scope else "any connected server"
        message = f"No {self._kind.word} {name!r} on {where}. {self._kind.method} shows what there is."
        return GatewayFailure(self._kind.unknown, message, tool=self._as_tool(name), server=scope)

    def _ambiguous(self, name: str, candidates: list[EntryT]) -> GatewayFailure:
        names = [entry.full_name for entry in candidates]
        message = f"{name!r} is offered by several servers; say which one: {', '.join(names)}."
        return GatewayFailure(self._kind.ambiguous, message, tool=self._as_tool(name), details={"candidates": names})

    def _as_tool(self, name: str) -> str | None:
        return name if self._kind is TOOL_KIND else None


ToolIndex = NameIndex[Tool]
PromptIndex = NameIndex[Prompt]


def server_of(name: str, servers: Mapping[str, Any]) -> str | None:
    """The configured server that a qualified name begins with, whether or not its lists are known yet."""
    cuts = [position for mark in (".", "__") if (position := name.find(mark)) > 0]
    server = name[: min(cuts)] if cuts else ""
    return server if server in servers else None
