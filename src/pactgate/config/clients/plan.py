"""Plans an import: which servers of which clients become which entries of our file. Pure.

Equal entries of several clients become one. An entry that is in our file already stays as it is there, so an import can be repeated.
Credentials become variables. Must not: read or write files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from pactgate.config.clients.dialect import OurEntry
from pactgate.config.clients.secrets import SecretFinder
from pactgate.config.value_checks import OWN_SERVER_ID, legal_id

_IDENTITY: Final = ("command", "args", "cwd", "url")

State = Literal["new", "there", "differs"]
"""`differs`: our file has the same server with other settings, which stay."""


class FoundServer(NamedTuple):
    """A server in a client's file. `source` is what people call the client."""

    source: str
    name: str
    ours: OurEntry


class PlannedServer(NamedTuple):
    """One server of the plan: under which id it is, or will be, in our file."""

    server: str
    entry: dict[str, Any]
    state: State
    sources: tuple[str, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    asked_for: tuple[str, ...]


class ImportPlan(NamedTuple):
    """`secrets` has the credentials by the variables that stand for them in the entries."""

    servers: tuple[PlannedServer, ...]
    secrets: dict[str, str]

    @property
    def fresh(self) -> tuple[PlannedServer, ...]:
        return tuple(one for one in self.servers if one.state == "new")


def plan_import(
    found: Iterable[FoundServer], existing: Mapping[str, Mapping[str, Any]], known_secrets: Mapping[str, str]
) -> ImportPlan:
    """`existing` are the entries of our file, `known_secrets` the variables that an earlier import wrote down."""
    finder = SecretFinder(known_secrets)
    taken: dict[str, Mapping[str, Any]] = dict(existing)
    planned = []
    for alike in _merged(found):
        first = alike[0]
        name = legal_id(first.name)
        if name == OWN_SERVER_ID:
            name = f"{name}-server"
        entry = finder.replace_in(name, first.ours.entry)
        server, state = _place(name, first.source, entry, existing, taken)
        taken[server] = taken.get(server, entry)
        planned.append(
            PlannedServer(
                server=server,
                entry=entry,
                state=state,
                sources=tuple(dict.fromkeys(one.source for one in alike)),
                names=tuple(dict.fromkeys(one.name for one in alike)),
                notes=tuple(dict.fromkeys(note for one in alike for note in one.ours.notes)),
                asked_for=tuple(dict.fromkeys(name for one in alike for name in one.ours.asked_for)),
            )
        )
    used = json.dumps([one.entry for one in planned if one.state == "new"])
    secrets = {name: value for name, value in finder.values.items() if f"${{{name}}}" in used}
    return ImportPlan(tuple(planned), secrets)


def _merged(found: Iterable[FoundServer]) -> list[list[FoundServer]]:
    """Those that are the same server with the same settings together, in the order of their first."""
    groups: dict[str, list[FoundServer]] = {}
    for one in found:
        groups.setdefault(json.dumps(one.ours.entry, sort_keys=True), []).append(one)
    return list(groups.values())


def _place(
    name: str, source: str, entry: Mapping[str, Any], existing: Mapping[str, Any], taken: Mapping[str, Any]
) -> tuple[str, State]:
    for server, held in existing.items():
        if _settings(held) == _settings(entry):
            return server, "there"
    for server, held in existing.items():
        if _identity(held) == _identity(entry) and server.startswith(name):
            return server, "differs"
    if name not in taken:
        return name, "new"
    wanted = legal_id(f"{name}-{source}")
    number = 2
    while wanted in taken:
        wanted, number = f"{legal_id(f'{name}-{source}')[:46]}-{number}", number + 1
    return wanted, "new"


def _settings(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("enabled", "name", "description")}


def _identity(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get(key) or None for key in _IDENTITY]
