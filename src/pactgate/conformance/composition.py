"""The recorded servers of a capture for the composition rules: what each server offers, and which request ids it received.

Sessions with the same label are one server. Must not: check anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any, Final

from msgspec import Struct

from pactgate.conformance.bounded import Key, UsedIds, digest
from pactgate.conformance.session_state import SessionState

_PREFIXED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*?__.+|[a-z][a-z0-9-]*\..+", re.DOTALL)
_DESCRIPTION_CHARS: Final = 20_000
_SHARED_IDS: Final = 1000
_READ_CHARS: Final = 512
"""Longer names are not compared by appearance: no person reads them, and folding them is slow."""


class RecordedTool(Struct, frozen=True):
    """A tool of a server: its name and description, and a digest of its schemas."""

    name: str
    description: str
    shape: str


class RecordedServer:
    """One server: everything that the sessions with its label listed."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.session_count = 0
        self.transports: set[str | None] = set()
        self.tools: dict[str, RecordedTool] = {}
        self.prompts: dict[str, None] = {}
        self.uris: dict[str, None] = {}
        self.ids: list[UsedIds] = []

    def add(self, session: SessionState) -> None:
        self.session_count += 1
        self.transports.add(session.head.transport_id)
        self.ids += session.client_ids
        for name, item in session.lists["tools/list"].ever.items():
            self.tools[name] = _offer(name, item.definition)
        self.prompts |= dict.fromkeys(session.lists["prompts/list"].ever)
        self.uris |= dict.fromkeys(session.lists["resources/list"].ever)
        self.uris |= dict.fromkeys(session.lists["resources/templates/list"].ever)

    def used(self, key: Key) -> bool:
        return any(key in ledger for ledger in self.ids)

    def id_count(self) -> int:
        return sum(map(len, self.ids))

    def is_apart_from(self, other: RecordedServer) -> bool:
        """Whether both servers name their transports and share none."""
        return None not in self.transports | other.transports and not self.transports & other.transports


class Composition:
    """The servers of a capture in the order of their first sessions."""

    def __init__(self) -> None:
        self.servers: dict[str, RecordedServer] = {}

    def add(self, session: SessionState) -> None:
        self.servers.setdefault(session.head.label, RecordedServer(session.head.label)).add(session)

    def sharing(
        self, names_of: Callable[[RecordedServer], Iterable[str]]
    ) -> Iterator[tuple[str, list[RecordedServer]]]:
        """Every name that two or more servers offer, with those servers. `names_of` selects the names of one server."""
        holders: dict[str, list[RecordedServer]] = {}
        for server in self.servers.values():
            for name in names_of(server):
                holders.setdefault(name, []).append(server)
        yield from ((name, servers) for name, servers in sorted(holders.items()) if len(servers) > 1)

    def alike(self, reading: Callable[[str], str]) -> Iterator[tuple[list[str], list[RecordedServer]]]:
        """Tools of different servers with different names that `reading` makes equal: the names, and the servers."""
        groups: dict[str, dict[str, list[RecordedServer]]] = {}
        for server in self.servers.values():
            for name in (name for name in server.tools if len(name) <= _READ_CHARS):
                groups.setdefault(reading(name), {}).setdefault(name, []).append(server)
        for _, names in sorted(groups.items()):
            servers = list(dict.fromkeys(server for held in names.values() for server in held))
            if len(names) > 1 and len(servers) > 1:
                yield sorted(names), servers

    def shared_ids(self) -> Iterator[tuple[Key, list[RecordedServer]]]:
        """Request ids that two or more servers received, the first thousand of each pair."""
        found: dict[Key, list[RecordedServer]] = {}
        for one, other in combinations(self.servers.values(), 2):
            fewer, more = sorted((one, other), key=RecordedServer.id_count)
            count = 0
            for key in (key for ledger in fewer.ids for key in ledger):
                if more.used(key):
                    count += 1
                    holders = found.setdefault(key, [])
                    holders += [server for server in (one, other) if server not in holders]
                if count >= _SHARED_IDS:
                    break
        yield from found.items()


def _offer(name: str, definition: dict[str, Any]) -> RecordedTool:
    description = definition.get("description")
    text = description[:_DESCRIPTION_CHARS] if isinstance(description, str) else ""
    shape = {key: definition.get(key) for key in ("inputSchema", "outputSchema")}
    return RecordedTool(name, text, digest(shape))


def is_prefixed(name: str) -> bool:
    """Whether a name has the form `server__tool` or `server.tool`."""
    return _PREFIXED.fullmatch(name) is not None
