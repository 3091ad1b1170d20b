"""The index of tools and prompts by full, exposed and bare name, in deterministic order.

A name with the prefix of a server means that server or nothing, whether or not the server is connected. A bare name is unique among
everything that the configured servers were last known to offer. So a call for one server never reaches another one while the first is away.
An index does not change. The catalog replaces it in one assignment, so a request sees one consistent state. Enforces S0/ECO-003 and D3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
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
    """The entries: the servers in the order of the configuration, those of each server in the order of their names.

    `reserved` has the ids that are prefixes: of the configured servers, also of those without entries. `known` has the names that each
    server was last known to offer. With `rank` the order is that of the view.
    """

    def __init__(
        self,
        named: Mapping[str, tuple[EntryT, ...]],
        kind: EntryKind,
        *,
        reserved: Collection[str] = (),
        known: Mapping[str, Collection[str]] | None = None,
        rank: Callable[[EntryT], Any] | None = None,
    ) -> None:
        self._kind = kind
        self._reserved = frozenset(reserved) | named.keys()
        entries = [entry for own in named.values() for entry in own]
        self._entries = tuple(entries if rank is None else sorted(entries, key=rank))
        self._by_full = {entry.full_name: entry for entry in self._entries}
        self._by_exposed = {entry.exposed_name: entry for entry in self._entries}
        self._own = {server: {entry.name: entry for entry in own} for server, own in named.items()}
        self._holders = holders_of(self._own, known or {})
        self._by_bare = {entry.name: entry for entry in self._entries if self._is_reachable_by_bare_name(entry)}

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
        if entry is None:
            entry = self._by_bare.get(name)
        if entry is None:
            raise self._not_found(name)
        return entry

    def server_for(self, name: str) -> str | None:
        """The only server that a name without `scope` can mean, connected or not: by its prefix, or as the only one known to offer it."""
        prefix = server_of(name, self._reserved)
        if prefix is not None:
            return prefix
        holders = self._holders.get(name, ())
        return holders[0] if len(holders) == 1 else None

    def _is_reachable_by_bare_name(self, entry: EntryT) -> bool:
        """Whether no other server can be meant by the name: neither one that its prefix names nor one that offers it too."""
        prefix = server_of(entry.name, self._reserved)
        return prefix == entry.server if prefix is not None else len(self._holders[entry.name]) == 1

    def _spelt_otherwise(self, name: str) -> EntryT | None:
        """Accept `server__name` where exposed names use dots, and for names whose exposed form was changed."""
        server, found, own = name.partition("__")
        return self._by_full.get(f"{server}.{own}") if found else None

    def _not_found(self, name: str) -> GatewayFailure:
        holders = self._holders.get(name, ())
        if len(holders) > 1 and server_of(name, self._reserved) is None:
            return self._ambiguous(name, holders)
        server = self.server_for(name)
        return self._unknown(name, server if server in self._own else None)

    def _unknown(self, name: str, server: str | None) -> GatewayFailure:
        where = f"the server {server}" if server else "any connected server"
        message = f"No {self._kind.word} {name!r} on {where}. {self._kind.method} shows what there is."
        return GatewayFailure(self._kind.unknown, message, tool=self._as_tool(name), server=server)

    def _ambiguous(self, name: str, holders: tuple[str, ...]) -> GatewayFailure:
        names = [f"{server}.{name}" for server in holders]
        message = f"{name!r} is offered by several servers; say which one: {', '.join(names)}."
        return GatewayFailure(self._kind.ambiguous, message, tool=self._as_tool(name), details={"candidates": names})

    def _as_tool(self, name: str) -> str | None:
        return name if self._kind is TOOL_KIND else None


ToolIndex = NameIndex[Tool]
PromptIndex = NameIndex[Prompt]


def holders_of(*offered: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """The servers that offer each name, now or as last known."""
    holders: dict[str, dict[str, None]] = {}
    for by_server in offered:
        for server, names in by_server.items():
            for name in names:
                holders.setdefault(name, {})[server] = None
    return {name: tuple(servers) for name, servers in holders.items()}


def server_of(name: str, servers: Collection[str]) -> str | None:
    """The configured server that a qualified name begins with, whether or not its lists are known yet."""
    cuts = [position for mark in (".", "__") if (position := name.find(mark)) > 0]
    server = name[: min(cuts)] if cuts else ""
    return server if server in servers else None
