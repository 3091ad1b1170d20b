"""What one server has offered so far in this run: the names that stay its own while it is away, and how its definitions changed.

A client or a person approves a tool by its definition, so a definition that changes later is an event. A server can't loosen the category
of its own tool either: hints that appear after the first listing of a tool are not believed until the operator confirms them with
`categories`, changes the entry of the server, or restarts the gateway. Survives lost connections and failed lists. Bounded.
Must not: change or hold back a definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pactgate.catalog.catalog import KnownNames
from pactgate.catalog.discovery import MAX_ENTRIES, DiscoveredEntry, DiscoveredLists, DiscoveredTool
from pactgate.core.display import cut
from pactgate.core.events import EntriesChanged, Event, ToolChanged
from pactgate.policy.categories import HINTS, categorise
from pactgate.protocol import messages

MAX_TOLD: Final = 20
"""Changed tools of one listing with an event each. The rest is counted."""
MAX_REMEMBERED: Final = 2 * MAX_ENTRIES
"""Tools of one server, with those that it does not offer any more: one that comes back is not a new one."""
_NAMED: Final = 5
_NAME_CHARS: Final = 80

ToolHints = dict[str, Any]


class _KnownTool(NamedTuple):
    """The last definition of a tool, empty if the server does not offer it now, and the hints that count for its category."""

    digest: str
    definition: bytes
    hints: ToolHints


class DefinitionHistory:
    """The history of one server. `names` are those of its last complete answer."""

    def __init__(self, server: str) -> None:
        self.names = KnownNames()
        self._server = server
        self._tools: dict[str, _KnownTool] = {}
        self._others: dict[str, dict[str, str]] = {}
        self._instructions: tuple[str | None] | None = None
        self._is_first = True
        self._has_forgotten = False

    def restart(self) -> None:
        """Begin anew, because the operator changed the entry of the server. The names stay its own meanwhile."""
        self._tools, self._others, self._instructions = {}, {}, None
        self._is_first, self._has_forgotten = True, False

    def hints(self) -> Mapping[str, ToolHints]:
        """The hints that count for the category of each tool."""
        return {name: known.hints for name, known in self._tools.items() if known.definition}

    def update(self, found: DiscoveredLists) -> list[Event]:
        """Remember an answer. Returns an event for each changed tool, and one per list with the numbers."""
        told = [*self._update_tools(found.tools), *self._update_others(found)]
        self.names = KnownNames.of(found)
        events, self._is_first = ([] if self._is_first else told), False
        return events

    def update_instructions(self, text: str | None) -> EntriesChanged | None:
        """Remember the instructions of a connected server. Returns an event if they were others before."""
        if self._instructions == (text,):
            return None
        is_first, self._instructions = self._instructions is None, (text,)
        return None if is_first else self._entries_changed("instructions", 0, 0, 1, ())

    def _update_tools(self, tools: Sequence[DiscoveredTool]) -> Iterator[Event]:
        before = self.names.tools if not self._is_first else frozenset()
        added = [tool.key for tool in tools if tool.key not in before]
        changed = [event for tool in tools if (event := self._update_tool(tool)) is not None]
        removed = sorted(before - {tool.key for tool in tools})
        for name in removed:
            if name in self._tools:
                self._tools[name] = self._tools[name]._replace(definition=b"")
        self._forget_some()
        yield from changed[:MAX_TOLD]
        if added or removed or len(changed) > MAX_TOLD:
            names = [*added, *removed, *(event.tool for event in changed)]
            yield self._entries_changed("tools", len(added), len(removed), len(changed), names)

    def _update_tool(self, tool: DiscoveredTool) -> ToolChanged | None:
        known = self._tools.get(tool.key)
        if known is not None and known.digest == tool.digest and known.definition:
            return None
        hints = self._believed(known, tool)
        self._tools[tool.key] = _KnownTool(tool.digest, tool.definition, hints)
        if known is None or known.digest == tool.digest:
            return None
        members = _differing(known.definition, tool.definition)
        ignored = tuple(hint for hint in HINTS if hints.get(hint) != tool.annotations.get(hint))
        if not members:  # the same definition, written differently
            return None
        return ToolChanged(self._server, cut(tool.key, _NAME_CHARS), members, known.digest, tool.digest, ignored)

    def _believed(self, known: _KnownTool | None, tool: DiscoveredTool) -> ToolHints:
        said: ToolHints = {hint: tool.annotations[hint] for hint in HINTS if hint in tool.annotations}
        if tool.contract is not None:  # the operator's own code
            return said
        if known is None:
            return {} if self._has_forgotten else said
        return _without_looser(known.hints, said)

    def _update_others(self, found: DiscoveredLists) -> Iterator[Event]:
        lists: dict[str, tuple[DiscoveredEntry, ...]] = {
            "prompts": found.prompts,
            "resources": found.resources,
            "resource templates": found.templates,
        }
        for name, entries in lists.items():
            before, now = self._others.get(name, {}), {entry.key: entry.digest for entry in entries}
            self._others[name] = now
            changed = [key for key in now if before.get(key, now[key]) != now[key]]
            # Resources come and go with what they show; only a definition that becomes another one is worth an event.
            added = [key for key in now if key not in before] if name != "resources" else []
            removed = [key for key in before if key not in now] if name != "resources" else []
            if added or removed or changed:
                yield self._entries_changed(name, len(added), len(removed), len(changed), [*changed, *added, *removed])

    def _entries_changed(
        self, name: str, added: int, removed: int, changed: int, names: Sequence[str]
    ) -> EntriesChanged:
        shown = tuple(cut(one, _NAME_CHARS) for one in names[:_NAMED])
        return EntriesChanged(self._server, name, added, removed, changed, shown)

    def _forget_some(self) -> None:
        """Forget the oldest removed tools. From then on a tool may have been known before, so hints of new tools are not believed."""
        too_many = len(self._tools) - MAX_REMEMBERED
        if too_many > 0:
            gone = [name for name, known in self._tools.items() if not known.definition]
            for name in gone[:too_many]:
                del self._tools[name]
            self._has_forgotten = True


def _without_looser(known: ToolHints, said: ToolHints) -> ToolHints:
    """What a server says now, but for hints that loosen what it said before."""
    before, now = categorise("", known, {}), categorise("", said, {})
    looser: tuple[str, ...] = ()
    if now.is_read_only and not before.is_read_only:
        looser = ("readOnlyHint", "destructiveHint")
    if said.get("idempotentHint") is True and before.is_idempotent is not True:
        looser += ("idempotentHint",)
    kept = {hint: known[hint] for hint in looser if hint in known}
    return {**{hint: value for hint, value in said.items() if hint not in looser}, **kept}


def _differing(old: bytes, new: bytes) -> tuple[str, ...]:
    """The members of two definitions that differ in value."""
    if not old:
        return ("definition",)
    before, now = messages.value(old), messages.value(new)
    names = dict.fromkeys([*before, *now])
    return tuple(cut(name, _NAME_CHARS) for name in names if _differs(name, before, now))[:MAX_TOLD]


def _differs(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return (name in before) != (name in now) or before.get(name) != now.get(name)
