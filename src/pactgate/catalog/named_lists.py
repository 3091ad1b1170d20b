"""What each server lists, as far as the lock file admits it and the operator wants it, under the names that callers use.

Remembers what servers listed before, to tell what has changed. Must not: ask a server, or know who may see an entry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from pactgate.catalog.catalog import KnownNames, ServerCatalog, name_entries
from pactgate.catalog.definition_history import DefinitionHistory
from pactgate.catalog.definition_pins import DefinitionGuard, Pinning
from pactgate.catalog.discovery import DiscoveredLists
from pactgate.catalog.supervisor import Supervisor
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.upstreams.dialer import Session


class NamedLists:
    def __init__(self, emit: Emit, *, naming: str, categories: Mapping[str, str], pinning: Pinning) -> None:
        self._emit = emit
        self._naming = naming
        self._categories = categories
        self._pinning = pinning
        self.guard = DefinitionGuard(pinning, emit, naming)
        """Compares definitions with the lock file."""
        self._named: dict[str, tuple[DiscoveredLists, ServerCatalog]] = {}
        self._history: dict[str, DefinitionHistory] = {}
        self._recalled: set[str] = set()
        """The servers whose lists are still those of an earlier run."""
        self.last: dict[str, ServerCatalog] = {}
        """What each server named last."""

    def configure(self, *, naming: str, categories: Mapping[str, str], pinning: Pinning) -> None:
        """Follow another configuration. What it changes is named again at the next update."""
        if naming != self._naming or pinning != self._pinning:
            self._pinning, self.guard = pinning, DefinitionGuard(pinning, self._emit, naming)
        if naming != self._naming or categories != self._categories:
            self._naming, self._categories, self._named = naming, categories, {}

    def keep(self, kept: Mapping[str, Supervisor], *, wanted: Collection[str], built_in: Collection[str]) -> None:
        """Forget servers that are gone. One that was changed but not `kept` starts anew."""
        self._named = {id_: named for id_, named in self._named.items() if id_ in kept or id_ in built_in}
        self.guard.keep(kept)
        everyone = {*wanted, *built_in}
        self._history = {id_: history for id_, history in self._history.items() if id_ in everyone}
        self._recalled &= everyone
        self.last = {id_: last for id_, last in self.last.items() if id_ in kept}
        for id_ in self._history.keys() - kept.keys() - set(built_in):
            self._history[id_].restart()

    def update(self, supervisor: Supervisor, session: Session | None, *, is_built_in: bool) -> bool:
        """Name what is new of a server. Returns whether its instructions have changed."""
        config, lists = supervisor.config, supervisor.lists
        id_ = config.id
        found = lists.found
        if self._has_lock and not is_built_in and lists.has_answered:
            found = self.guard.admit(config, supervisor.identity, found)
        history = self._history.setdefault(id_, DefinitionHistory(id_))
        told = None if session is None else history.update_instructions(session.identity.instructions)
        if told is not None:
            self._emit(told)
        is_first_answer = id_ in self._recalled and not lists.is_recalled
        if lists.is_recalled and config.start == "eager":
            self._recalled.add(id_)
        else:
            self._recalled.discard(id_)
        if id_ not in self._named or self._named[id_][0] is not found:
            if is_first_answer:
                history.restart()  # a restart confirms what has changed since the last run
            if lists.has_answered:
                for event in history.update(_chosen(lists.found, config)):
                    self._emit(event)
            named = self._name(_chosen(found, config), id_)
            self._named[id_] = (found, named)
            if lists.has_answered:
                self.last[id_] = named
        return told is not None

    def of(self, server: str) -> ServerCatalog:
        return self._named[server][1]

    def own(self, config: ServerConfig, found: DiscoveredLists, session: Session | None) -> ServerCatalog:
        """What a server lists in a caller's own session. Known hints count as in the shared list."""
        if self._has_lock and session is not None:
            found = self.guard.admit_own(config, session.identity, found)
        return self._name(_chosen(found, config), config.id)

    def names(self) -> dict[str, KnownNames]:
        """Every name that a server has had in this run."""
        return {id_: history.names for id_, history in self._history.items()}

    @property
    def _has_lock(self) -> bool:
        return self._pinning.mode != "off"

    def _name(self, found: DiscoveredLists, server: str) -> ServerCatalog:
        hints = self._history[server].hints() if server in self._history else {}
        return name_entries(server, found, self._naming, self._categories, hints)


def _chosen(found: DiscoveredLists, config: ServerConfig) -> DiscoveredLists:
    """What a server offers without the tools that the operator does not want."""
    if config.include_tools is None and not config.exclude_tools:
        return found
    return replace(found, tools=tuple(tool for tool in found.tools if config.serves(tool.key)))
