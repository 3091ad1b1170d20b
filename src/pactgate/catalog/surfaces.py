"""What each caller sees: one filtered catalog per class of callers, made of one state of all servers.

Names, URIs, lists, suggestions and messages of a caller come from its own catalog, so what is denied can't be told from what does not
exist, whatever the path. Without permissions there are two catalogs: for administrators, who see the gateway's own server, and for
everybody else. A surface is chosen by credentials and URL alone (D24). Bounded: callers and catalogs that are remembered.
Must not: ask what a client says of itself, or what it did before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pactgate.catalog.catalog import Catalog, KnownNames, ServerCatalog
from pactgate.catalog.search_surface import search_tools
from pactgate.catalog.views import BoundTool, View
from pactgate.config.sections.permissions import CallerClass
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.principal import Principal
from pactgate.core.values import ListReader, Tool
from pactgate.policy.access import sees_everything
from pactgate.policy.permissions.caller_access import CallerAccess
from pactgate.policy.permissions.rules import UNRESTRICTED, CallerKey, Grant, Permissions, class_of
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
        bound: Mapping[str, BoundTool] | None = None,
        rank: Callable[[Any], Any] | None = None,
        pinned: Callable[[Tool], bool] | None = None,
        other_views: Mapping[str, Callable[[Tool], bool]] | None = None,
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
            bound=bound,
            rank=rank,
            pinned=pinned,
            other_views=other_views,
        )


class ViewSettings(Struct, frozen=True, eq=False):
    """The views of a configuration, and the classes of callers that have one."""

    views: Mapping[str, View]
    callers: Mapping[str, CallerClass]


class _Key(NamedTuple):
    caller: CallerKey | None
    sees_own: bool
    view: str | None


class Surfaces:
    """The catalogs of all callers, each made when it is first needed."""

    def __init__(
        self,
        state: CatalogState,
        permissions: Permissions | None,
        views: ViewSettings | None = None,
        before: Surfaces | None = None,
    ) -> None:
        self._state = state
        self._permissions = permissions
        self._views = views or ViewSettings({}, {})
        self._of_class = {name: one.view for name, one in self._views.callers.items() if one.view is not None}
        self.unfiltered = state.catalog(state.by_server)
        """Every configured server. For the operator, never for a caller."""
        self._is_plain = permissions is None and not self._of_class
        self._everything: Catalog | None = None
        self._of_caller: dict[tuple[str, str | None], tuple[Principal, Catalog]] = {}
        self._catalogs: OrderedDict[_Key, Catalog] = OrderedDict()
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
        """The number of catalogs that are remembered for classes of callers and views."""
        return len(self._catalogs)

    def is_made_by(self, permissions: Permissions | None, views: ViewSettings) -> bool:
        return self._permissions is permissions and self._views is views

    def has_view(self, name: str) -> bool:
        return name in self._views.views

    def of(self, reader: ListReader) -> Catalog:
        """The catalog of a caller at its path."""
        if reader.view is None and self._is_plain and not reader.principal.roles:  # most calls
            return self.unfiltered
        return self.of_principal(reader.principal, self._view_of(reader) if self._of_class else reader.view)

    def full_name_of(self, reader: ListReader, name: str) -> str:
        """The full name of a tool that the view of a caller renames, allowed or not; any other name as it is."""
        view = self._views.views.get(self._view_of(reader) or "")
        renamed = {} if view is None else view.settings.rename
        return next((full_name for full_name, shown in renamed.items() if shown == name), name)

    def _view_of(self, reader: ListReader) -> str | None:
        if reader.view is None and reader.scope is None and self._of_class:
            return self._of_class.get(class_of(reader.principal, self._views.callers) or "")
        return reader.view

    def of_principal(self, principal: Principal, view: str | None = None) -> Catalog:
        """The catalog of a caller, in a view or without one."""
        if self._permissions is None and view is None:
            return self.everything if sees_everything(principal.roles) else self.unfiltered
        held = self._of_caller.get((principal.key, view))
        if held is not None and (held[0] is principal or held[0] == principal):
            return held[1]
        if len(self._of_caller) >= MAX_CALLERS:
            self._of_caller.clear()
        catalog = self._look_up(principal, view)
        self._of_caller[principal.key, view] = principal, catalog
        return catalog

    def shown_in(self, view: str) -> tuple[Tool, ...]:
        """The tools in the list of a view, whatever permissions leave of them. For the operator."""
        alone = Surfaces(self._state, None, self._views)
        return alone._look_up(Principal(""), view).listed_tools()

    def beside(self, own: Mapping[str, ServerCatalog]) -> Surfaces:
        """The same, with other entries of some servers: those that a caller's own session with them has."""
        state = replace(self._state, by_server={**self._state.by_server, **own})
        return Surfaces(state, self._permissions, self._views, self)

    def callers_of(self, before: Surfaces) -> list[tuple[Principal, str | None]]:
        """Callers of the state before, with their views, one for each catalog."""
        known = {id(catalog): (principal, key[1]) for key, (principal, catalog) in before._of_caller.items()}
        return list(known.values())

    def _look_up(self, principal: Principal, view: str | None) -> Catalog:
        caller = None if self._permissions is None else self._permissions.key_of(principal)
        key = _Key(caller, view is None and sees_everything(principal.roles), view)
        catalog = self._catalogs.get(key)
        if catalog is None:
            catalog = self._catalogs[key] = self._make(key, None if view is None else self._views.views.get(view))
            if len(self._catalogs) > MAX_CATALOGS:
                self._catalogs.popitem(last=False)
                self._of_caller.clear()  # it may hold what was let go
        self._catalogs.move_to_end(key)
        return catalog

    def _make(self, key: _Key, view: View | None) -> Catalog:
        state, caller = self._state, key.caller
        by_server: dict[str, ServerCatalog] = {}
        known: dict[str, KnownNames] = {}
        tools: dict[str, Grant] = {}
        prompts: dict[str, Grant] = {}
        for id_, own in state.by_server.items():
            if not self._may_reach(caller, id_) or not (key.view is None if view is None else view.may_show(id_)):
                continue  # a view that a reload has removed has nothing
            shown, grants = self._filter(caller, view, id_, own)
            last = state.last.get(id_, _NOTHING)
            known[id_] = KnownNames.of_entries(shown if last is own else self._filter(caller, view, id_, last)[0])
            by_server[id_] = shown
            tools |= {tool.full_name: grants[tool.full_name, True] for tool in shown.tools}
            prompts |= {prompt.full_name: grants[prompt.full_name, False] for prompt in shown.prompts}
        bound: dict[str, BoundTool] = {}
        if view is not None:
            by_server = {id_: _bind(view, own, bound) for id_, own in by_server.items()}
            if view.is_search:
                by_server[OWN_SERVER_ID] = ServerCatalog(tools=search_tools(splits_calls=view.settings.split_calls))
        if key.sees_own:
            by_server |= state.built_in
        removed = state.reserved - state.by_server.keys() - state.built_in.keys()
        listed = [item.full_uri for own in by_server.values() for item in (*own.resources, *own.templates)]
        access = CallerAccess(self._permissions, caller, tools=tools, prompts=prompts, listed=listed, view=view)
        return state.catalog(
            by_server,
            known=known,
            reserved=removed | by_server.keys(),
            access=access,
            bound=None if view is None else bound,
            rank=None if view is None else view.rank,
            pinned=view.is_pinned if view is not None and view.settings.surface != "full" else None,
            other_views=self._other_views(view) if view is not None and view.has_groups else None,
        )

    def _other_views(self, view: View) -> dict[str, Callable[[Tool], bool]]:
        """The views that are groups in this one, each with what it would show."""
        return {name: other.has_tool for name, other in self._views.views.items() if other is not view}

    def _may_reach(self, caller: CallerKey | None, server: str) -> bool:
        return self._permissions is None or caller is None or self._permissions.may_reach(caller, server)

    def _filter(
        self, caller: CallerKey | None, view: View | None, server: str, own: ServerCatalog
    ) -> tuple[ServerCatalog, dict[tuple[str, bool], Grant]]:
        """The entries of a server that are allowed and shown; and the grants, by full name and whether it is a tool."""
        found = dict.fromkeys(range(own.size), UNRESTRICTED)
        if self._permissions is not None and caller is not None and own.size:
            found = self._permissions.grants(caller, self._selected(server, own))
        places = iter(range(own.size))

        def allowed(entries: Sequence[EntryT], is_shown: Callable[[EntryT], bool] | None) -> tuple[EntryT, ...]:
            kept = [entry for entry, place in zip(entries, places, strict=False) if place in found]
            return tuple(kept if is_shown is None else filter(is_shown, kept))

        start = len(own.tools)
        grants = {(tool.full_name, True): found[at] for at, tool in enumerate(own.tools) if at in found}
        grants |= {(one.full_name, False): found[at] for at, one in enumerate(own.prompts, start) if at in found}
        shown = ServerCatalog(
            tools=allowed(own.tools, view.has_tool if view else None),
            prompts=allowed(own.prompts, view.has_prompt if view else None),
            resources=allowed(own.resources, view.has_resource if view else None),
            templates=allowed(own.templates, view.has_resource if view else None),
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


def _bind(view: View, own: ServerCatalog, bound: dict[str, BoundTool]) -> ServerCatalog:
    shown = []
    for tool in own.tools:
        made, bound[tool.full_name] = view.bind(tool)
        shown.append(made)
    return own._replace(tools=tuple(shown))
