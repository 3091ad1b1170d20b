"""What each caller sees: one filtered catalog per class of callers, made of one state of all servers.

Names, URIs, lists, suggestions and messages of a caller come from its own catalog, so what is denied can't be told from what does not
exist, whatever the path. Without permissions there are two catalogs: for administrators, who see the gateway's own server, and for
everybody else. A surface is chosen by credentials and URL alone (D24). Bounded: callers and catalogs that are remembered.
Must not: ask what a client says of itself, or what it did before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from pactgate.catalog.catalog import Catalog, KnownNames, ServerCatalog
from pactgate.core.principal import Principal
from pactgate.core.values import ListReader
from pactgate.policy.access import sees_everything
from pactgate.policy.permissions.caller_access import CallerAccess
from pactgate.policy.permissions.rules import CallerKey, Grant, Permissions
from pactgate.policy.permissions.selection import SelectedEntries, Subject

MAX_CALLERS: Final = 4096
MAX_CATALOGS: Final = 256
_NOTHING: Final = ServerCatalog()

EntryT = TypeVar("EntryT")


class CatalogState(Struct, frozen=True, kw_only=True):
    """Everything that catalogs are made of. A change makes a new one."""

    by_server: dict[str, ServerCatalog]
    """The configured servers, in their order."""
    built_in: dict[str, ServerCatalog]
    last: dict[str, ServerCatalog]
    """What each server last offered. Its names stay its own while it is away."""
    known: dict[str, KnownNames]
    reserved: frozenset[str]
    missing: dict[str, str]
    instructions: dict[str, str]
    server_info: bytes
    own_resources: tuple[bytes, ...]

    def catalog(
        self,
        by_server: Mapping[str, ServerCatalog],
        *,
        known: Mapping[str, KnownNames] | None = None,
        reserved: frozenset[str] | None = None,
        access: CallerAccess | None = None,
    ) -> Catalog:
        """The catalog of these servers. Facts about other servers are left out."""
        return Catalog(
            by_server,
            reserved=self.reserved if reserved is None else reserved,
            known={id_: names for id_, names in (known or self.known).items() if id_ in by_server},
            instructions={id_: text for id_, text in self.instructions.items() if id_ in by_server},
            missing={id_: why for id_, why in self.missing.items() if id_ in by_server},
            server_info=self.server_info,
            own_resources=self.own_resources,
            access=access,
        )


class Surfaces:
    """The catalogs of all callers, each made when it is first needed."""

    def __init__(self, state: CatalogState, permissions: Permissions | None, before: Surfaces | None = None) -> None:
        self._state = state
        self._permissions = permissions
        self.unfiltered = state.catalog(state.by_server)
        """Every configured server. For the operator, never for a caller."""
        self._everything: Catalog | None = None
        self._of_caller: dict[str, tuple[Principal, Catalog]] = {}
        self._catalogs: OrderedDict[tuple[CallerKey, bool], Catalog] = OrderedDict()
        held = {id(own) for own in (*state.by_server.values(), *state.last.values())}
        known = {} if before is None else before._entries
        self._entries: dict[str, tuple[ServerCatalog, SelectedEntries]] = {
            server: pair for server, pair in known.items() if id(pair[0]) in held
        }

    @property
    def everything(self) -> Catalog:
        """Every server, those of the gateway itself among them. For administrators and their tools."""
        if self._everything is None:
            self._everything = self._state.catalog({**self._state.by_server, **self._state.built_in})
        return self._everything

    @property
    def held(self) -> int:
        """The number of catalogs that are remembered for classes of callers."""
        return len(self._catalogs)

    def is_made_by(self, permissions: Permissions | None) -> bool:
        return self._permissions is permissions

    def of(self, reader: ListReader) -> Catalog:
        """The catalog of a caller."""
        return self.of_principal(reader.principal)

    def of_principal(self, principal: Principal) -> Catalog:
        if self._permissions is None:
            return self.everything if sees_everything(principal.roles) else self.unfiltered
        held = self._of_caller.get(principal.key)
        if held is not None and (held[0] is principal or held[0] == principal):
            return held[1]
        if len(self._of_caller) >= MAX_CALLERS:
            self._of_caller.clear()
        catalog = self._of_class(self._permissions, principal)
        self._of_caller[principal.key] = principal, catalog
        return catalog

    def callers_of(self, before: Surfaces) -> list[Principal]:
        """Callers of the state before, one for each catalog."""
        return list({id(catalog): principal for principal, catalog in before._of_caller.values()}.values())

    def _of_class(self, permissions: Permissions, principal: Principal) -> Catalog:
        key = permissions.key_of(principal), sees_everything(principal.roles)
        catalog = self._catalogs.get(key)
        if catalog is None:
            catalog = self._catalogs[key] = self._make(permissions, *key)
            if len(self._catalogs) > MAX_CATALOGS:
                self._catalogs.popitem(last=False)
        self._catalogs.move_to_end(key)
        return catalog

    def _make(self, permissions: Permissions, key: CallerKey, sees_own: bool) -> Catalog:
        state = self._state
        by_server: dict[str, ServerCatalog] = {}
        known: dict[str, KnownNames] = {}
        tools: dict[str, Grant] = {}
        prompts: dict[str, Grant] = {}
        listed: list[str] = []
        for id_, own in state.by_server.items():
            if not permissions.may_reach(key, id_):
                continue
            shown, grants = self._filter(permissions, key, id_, own)
            by_server[id_] = shown
            last = state.last.get(id_, _NOTHING)
            remembered = shown if last is own else self._filter(permissions, key, id_, last)[0]
            known[id_] = KnownNames.of_entries(remembered)
            tools.update((tool.full_name, grants[at]) for at, tool in enumerate(own.tools) if at in grants)
            start = len(own.tools)
            prompts.update((one.full_name, grants[at]) for at, one in enumerate(own.prompts, start) if at in grants)
            listed += [item.full_uri for item in (*shown.resources, *shown.templates)]
        if sees_own:
            by_server |= state.built_in
        removed = state.reserved - state.by_server.keys() - state.built_in.keys()
        access = CallerAccess(permissions, key, tools=tools, prompts=prompts, listed=listed)
        return state.catalog(by_server, known=known, reserved=removed | by_server.keys(), access=access)

    def _filter(
        self, permissions: Permissions, key: CallerKey, server: str, own: ServerCatalog
    ) -> tuple[ServerCatalog, dict[int, Grant]]:
        grants = permissions.grants(key, self._selected(server, own)) if own.size else {}
        places = iter(range(own.size))

        def allowed(entries: Sequence[EntryT]) -> tuple[EntryT, ...]:
            return tuple(entry for entry, place in zip(entries, places, strict=False) if place in grants)

        shown = ServerCatalog(
            tools=allowed(own.tools),
            prompts=allowed(own.prompts),
            resources=allowed(own.resources),
            templates=allowed(own.templates),
        )
        return shown, grants

    def _selected(self, server: str, own: ServerCatalog) -> SelectedEntries:
        """Which rules select which entries: once per server and configuration, whatever the number of classes."""
        known = self._entries.get(server)
        if known is not None and known[0] is own:
            return known[1]
        named = [Subject.of(tool) for tool in own.tools]
        named += [Subject(server, prompt.full_name) for prompt in own.prompts]
        named += [Subject(server, item.full_uri) for item in (*own.resources, *own.templates)]
        selected = SelectedEntries(server, named)
        self._entries[server] = own, selected
        return selected
