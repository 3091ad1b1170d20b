"""Conflicts between servers: shared names, lookalike names, descriptions that mention the tools of another server or hide characters.

The requirement documents call them composition hazards. The gateway tells servers apart by the names it exposes; a conflict is what a
client, a model or a person may still confuse. Severity `hazard` needs a look, `note` is informational. Pure, linear in the size of
the lists, bounded in its output. Must not: hide or rename anything, or quote more of a server's text than a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct, to_builtins

from pactgate.catalog.index import server_of
from pactgate.catalog.lookalikes import drawn, fold, separated
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import cut
from pactgate.core.hidden_characters import find_hidden, hidden_in
from pactgate.core.values import Entry, Resource, Tool
from pactgate.protocol import messages

if TYPE_CHECKING:  # checking a configuration must not import the whole catalog
    from pactgate.catalog.catalog import Catalog

MAX_CONFLICTS: Final = 200
_NAME_CHARS: Final = 80
_NAMED: Final = 4
"""How many names a message lists before it counts the rest."""
_QUALIFIED: Final = re.compile(r"(?<![\w.-])[a-z][a-z0-9-]{0,49}(?:\.|__)[\w.-]+")
_COSMETIC: Final = ("_meta", "icons")


class ConflictSeverity(StrEnum):
    HAZARD = "hazard"
    NOTE = "note"


HAZARD, NOTE = ConflictSeverity.HAZARD, ConflictSeverity.NOTE


class ConflictKind(StrEnum):
    """In the order of the report."""

    LOOK_ALIKE_SERVERS = "look_alike_servers"
    DUPLICATE_SERVER = "duplicate_server"
    HIDDEN_CHARACTERS = "hidden_characters"
    FOREIGN_TOOL_NAMED = "foreign_tool_named"
    FOREIGN_NAME_CLAIMED = "foreign_name_claimed"
    LOOK_ALIKE_NAMES = "look_alike_names"
    TOOL_SHADOWING = "tool_shadowing"
    TOOL_NAMESPACE_OVERLAP = "tool_namespace_overlap"
    NAMES_EQUAL_AFTER_FOLDING = "names_equal_after_folding"
    PROMPT_OVERLAP = "prompt_overlap"
    URI_OVERLAP = "uri_overlap"
    NOT_SHOWN = "not_shown"


class Conflict(Struct, frozen=True):
    """One conflict. `subject` is the name in question, `servers` are all servers involved, `message` is a sentence."""

    kind: ConflictKind
    subject: str
    servers: tuple[str, ...]
    message: str
    severity: ConflictSeverity


def find_conflicts(catalog: Catalog) -> tuple[Conflict, ...]:
    """All conflicts in a catalog, the most severe first. The same catalog gives the same conflicts."""
    tools, prompts = catalog.tools.entries(), catalog.prompts.entries()
    resources, templates = catalog.resources.entries(), catalog.templates.entries()
    listed: tuple[Entry | Resource, ...] = (*tools, *prompts, *resources, *templates)
    servers = sorted({entry.server for entry in listed} | catalog.missing.keys())
    claimable = catalog.reserved | set(servers)
    return _told(
        [
            *_look_alike_servers(servers),
            *_hidden_characters(listed, catalog.instructions),
            *_neighbours_named(listed, tools),
            *_neighbours_claimed("tool", tools, claimable),
            *_neighbours_claimed("prompt", prompts, claimable),
            *_look_alikes("tool", tools),
            *_look_alikes("prompt", prompts),
            *_shared_tools(tools),
            *_shared_prompts(prompts),
            *_shared_uris("resource", resources),
            *_shared_uris("resource template", templates),
        ]
    )


def find_static_conflicts(servers: Iterable[ServerConfig]) -> tuple[Conflict, ...]:
    """The conflicts that the configuration alone shows, before any server runs."""
    enabled = [server for server in servers if server.enabled]
    return _told([*_look_alike_servers(sorted(server.id for server in enabled)), *_configured_twice(enabled)])


def merge(*findings: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """The union of several findings about the same servers."""
    return _told([conflict for found in findings for conflict in found if conflict.kind is not ConflictKind.NOT_SHOWN])


def _told(found: Iterable[Conflict]) -> tuple[Conflict, ...]:
    ordered = sorted(set(found), key=_rank)
    if len(ordered) <= MAX_CONFLICTS:
        return tuple(ordered)
    rest = ordered[MAX_CONFLICTS - 1 :]
    severity = HAZARD if any(one.severity is HAZARD for one in rest) else NOTE
    more = Conflict(ConflictKind.NOT_SHOWN, "", (), f"There are {len(rest)} more of these.", severity)
    return (*ordered[: MAX_CONFLICTS - 1], more)


def _rank(conflict: Conflict) -> tuple[bool, int, str, tuple[str, ...], str]:
    is_note = conflict.severity is NOTE
    return is_note, _ORDER[conflict.kind], conflict.subject, conflict.servers, conflict.message


_ORDER: Final = {kind: place for place, kind in enumerate(ConflictKind)}


# -- conflicts between server ids


def _look_alike_servers(ids: Sequence[str]) -> Iterator[Conflict]:
    for alike in _grouped(ids, lambda id_: drawn(id_).replace("_", "")):
        if len(alike) > 1:
            message = f"The servers {_names(alike)} look alike: a person or a model may take one for another."
            yield Conflict(ConflictKind.LOOK_ALIKE_SERVERS, alike[0], tuple(alike), message, HAZARD)


def _configured_twice(servers: Sequence[ServerConfig]) -> Iterator[Conflict]:
    for same in _grouped(servers, _identity):
        if len(same) > 1:
            ids = sorted(server.id for server in same)
            what = "serve the same file" if same[0].tools is not None else "call the same address"
            if same[0].command is not None:
                what = "start the same program"
            message = f"{_names(ids)} {what} in the same way: everything it offers is there {len(ids)} times."
            yield Conflict(ConflictKind.DUPLICATE_SERVER, ids[0], tuple(ids), message, HAZARD)


def _identity(server: ServerConfig) -> Any:
    """The settings that identify a server. The same program with other credentials is another server."""
    url = None if server.url is None else server.url.rstrip("/")
    given = (sorted(pairs.items()) for pairs in (server.env, server.headers))
    tools = sorted(endpoint.name for endpoint in server.endpoints or ())
    document = to_builtins((server.openapi, server.include, server.exclude, server.credentials, server.tls))
    ours = (server.tools, server.base_url, tools, document)
    return json.dumps([server.command, server.args, server.cwd, url, *given, *ours])


# -- conflicts in descriptions


def _hidden_characters(listed: Sequence[Entry | Resource], instructions: Mapping[str, str]) -> Iterator[Conflict]:
    """Definitions and instructions with characters that a model reads and a person does not see."""
    for entry in listed:
        # A control character in JSON is an escape, any other hidden character an escape or not ASCII.
        if entry.definition.isascii() and b"\\" not in entry.definition:
            continue
        found = hidden_in(messages.value(entry.definition))
        if found is not None:
            who = entry.full_uri if isinstance(entry, Resource) else entry.full_name
            place = _spelt(".".join(map(str, found.place)) or "its names")
            what = f"The definition of {_spelt(who)} has the invisible character {found.code_point} in {place}"
            yield _hidden(cut(who, _NAME_CHARS), entry.server, what)
    for server, text in instructions.items():
        code_point = find_hidden(text)
        if code_point is not None:
            yield _hidden(server, server, f"The instructions of {server} have the invisible character {code_point}")


def _hidden(subject: str, server: str, what: str) -> Conflict:
    message = f"{what}: a model reads what a person can't see."
    return Conflict(ConflictKind.HIDDEN_CHARACTERS, subject, (server,), message, HAZARD)


def _neighbours_named(listed: Sequence[Entry | Resource], tools: Sequence[Tool]) -> Iterator[Conflict]:
    """Definitions that mention a tool of another server, in any text member."""
    by_name = {name: tool for tool in tools for name in (tool.full_name, tool.exposed_name)}
    if len(_servers(listed)) < 2:
        return
    for entry in listed:
        named = {tool.full_name: tool.server for tool in _tools_in(entry, by_name) if tool.server != entry.server}
        if named:
            who = entry.full_uri if isinstance(entry, Resource) else entry.full_name
            message = (
                f"The definition of {_spelt(who)} speaks of {_names(sorted(named))}, which another server offers: "
                "it may lead a model from one server to the other."
            )
            servers = (entry.server, *sorted(set(named.values())))
            yield Conflict(ConflictKind.FOREIGN_TOOL_NAMED, cut(who, _NAME_CHARS), servers, message, HAZARD)


def _tools_in(entry: Entry | Resource, by_name: dict[str, Tool]) -> Iterator[Tool]:
    for text in _texts(messages.value(entry.definition)):
        for name in _QUALIFIED.findall(text):
            tool = by_name.get(name) or by_name.get(name.rstrip(".-"))
            if tool is not None:
                yield tool


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if "." in one or "__" in one:  # no other text can contain a qualified name
                yield one
        elif isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


# -- conflicts between names


def _neighbours_claimed(noun: str, entries: Sequence[Entry], servers: Collection[str]) -> Iterator[Conflict]:
    """Entries with a name such as `files.read` or `files__read` that do not belong to `files`."""
    qualified = {form(entry.full_name): entry for entry in entries for form in (drawn, separated)}
    for entry in entries:
        other = qualified.get(separated(entry.name)) or qualified.get(drawn(entry.name))
        if other is not None and other.server != entry.server:
            yield _claim(noun, entry, other.server, f"as if it were {_spelt(other.full_name)}", HAZARD)
            continue
        prefix = server_of(entry.name, servers)
        if prefix is not None and prefix != entry.server:
            yield _claim(noun, entry, prefix, f"as if it belonged to {prefix}", NOTE)


def _claim(noun: str, entry: Entry, other: str, as_if: str, severity: ConflictSeverity) -> Conflict:
    message = f"{entry.server} offers a {noun} that calls itself {_spelt(entry.name)}, {as_if}."
    subject = cut(entry.full_name, _NAME_CHARS)
    return Conflict(ConflictKind.FOREIGN_NAME_CLAIMED, subject, (entry.server, other), message, severity)


def _look_alikes(noun: str, entries: Sequence[Entry]) -> Iterator[Conflict]:
    """Different names on different servers that a program or a person may confuse."""
    for alike in _grouped(entries, lambda entry: separated(entry.name)):
        if len({fold(entry.name) for entry in alike}) == 1:
            kind, why = ConflictKind.NAMES_EQUAL_AFTER_FOLDING, "differ only in case or in the form of letters"
        else:
            kind, why = ConflictKind.LOOK_ALIKE_NAMES, "differ only in what stands between words"
        yield from _likeness(noun, alike, why, kind, NOTE)
    for alike in _grouped(entries, lambda entry: drawn(entry.name)):
        if len({separated(entry.name) for entry in alike}) > 1:
            why = "look alike and are not the same"
            yield from _likeness(noun, alike, why, ConflictKind.LOOK_ALIKE_NAMES, HAZARD)


def _likeness(
    noun: str, alike: Sequence[Entry], why: str, kind: ConflictKind, severity: ConflictSeverity
) -> Iterator[Conflict]:
    names, servers = sorted({entry.name for entry in alike}), _servers(alike)
    if len(names) > 1 and len(servers) > 1:
        whole = _names(sorted(entry.full_name for entry in alike))
        yield Conflict(kind, cut(names[0], _NAME_CHARS), servers, f"The {noun}s {whole} {why}.", severity)


def _shared_tools(tools: Sequence[Tool]) -> Iterator[Conflict]:
    for same, servers in _shared(tools, lambda tool: tool.name):
        name = _spelt(same[0].name)
        if _is_one_definition(same):
            kind, severity = ConflictKind.TOOL_NAMESPACE_OVERLAP, NOTE
            message = f"{_names(servers)} offer the same tool {name}; without the server's name it can't be called."
        else:
            kind, severity = ConflictKind.TOOL_SHADOWING, HAZARD
            message = (
                f"{_names(servers)} offer different tools under the name {name}: "
                "a client that leaves the server's name out may mean either."
            )
        yield Conflict(kind, cut(same[0].name, _NAME_CHARS), servers, message, severity)


def _shared_prompts(prompts: Sequence[Entry]) -> Iterator[Conflict]:
    for same, servers in _shared(prompts, lambda prompt: prompt.name):
        is_one = _is_one_definition(same)
        message = f"{_names(servers)} offer {'the same prompt' if is_one else 'different prompts under the name'} {_spelt(same[0].name)}."
        severity = NOTE if is_one else HAZARD
        yield Conflict(ConflictKind.PROMPT_OVERLAP, cut(same[0].name, _NAME_CHARS), servers, message, severity)


def _shared_uris(noun: str, resources: Sequence[Resource]) -> Iterator[Conflict]:
    for same, servers in _shared(resources, lambda resource: resource.uri):
        uri = same[0].uri
        message = (
            f"{_names(servers)} list the {noun} {_spelt(uri)}; without the server's name in front it can't be read."
        )
        yield Conflict(ConflictKind.URI_OVERLAP, cut(uri, _NAME_CHARS), servers, message, NOTE)


def _is_one_definition(entries: Sequence[Entry]) -> bool:
    if len({entry.digest for entry in entries}) == 1:
        return True
    return len({_meaning(entry) for entry in entries}) == 1


def _meaning(entry: Entry) -> str:
    """The definition without order, spacing and icons, which do not change its meaning."""
    members = messages.value(entry.definition)
    kept = {name: member for name, member in members.items() if name not in _COSMETIC}
    return json.dumps(kept, sort_keys=True, default=str)


# -- helpers

_Item = TypeVar("_Item")
_Owned = TypeVar("_Owned", Tool, Entry, Resource)


def _grouped(items: Iterable[_Item], key: Callable[[_Item], Any]) -> Iterable[list[_Item]]:
    groups: dict[Any, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.values()


def _shared(entries: Iterable[_Owned], key: Callable[[_Owned], str]) -> Iterator[tuple[list[_Owned], tuple[str, ...]]]:
    for same in _grouped(entries, key):
        servers = _servers(same)
        if len(servers) > 1:
            yield same, servers


def _servers(entries: Iterable[Entry | Resource]) -> tuple[str, ...]:
    return tuple(sorted({entry.server for entry in entries}))


def _names(names: Sequence[str]) -> str:
    shown = [_spelt(name) for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return f"{', '.join(shown)} and {len(names) - _NAMED} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _spelt(name: str) -> str:
    """A name with non-ASCII characters as escapes, so that it can't be confused with another."""
    short = cut(name, _NAME_CHARS)
    return short if name.isascii() else short.encode("unicode_escape").decode("ascii")
