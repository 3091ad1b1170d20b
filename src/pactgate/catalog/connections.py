"""All configured servers: one supervisor each, and one catalog, replaced as a whole when a server changes.

Servers never wait for each other, and a change of the configuration affects only the servers that it names.
Enforces S0/ECO-002 and S0/ECO-201: a failing server does not affect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.caller_sessions import session_key
from pactgate.catalog.catalog import Catalog, ServerCatalog, name_entries, oversize_reason
from pactgate.catalog.conflicts import Conflict, ConflictSeverity
from pactgate.catalog.definition_history import DefinitionHistory
from pactgate.catalog.definition_pins import DefinitionGuard, Pinning
from pactgate.catalog.discovery import MAX_LEFT_OUT, TOOLS, DiscoveredLists
from pactgate.catalog.discovery_report import DiscoveryReport, discover_all
from pactgate.catalog.index import PROMPT_KIND, TOOL_KIND, EntryKind
from pactgate.catalog.near_names import Adviser
from pactgate.catalog.shown_facts import shown_facts
from pactgate.catalog.supervisor import Supervisor
from pactgate.catalog.surfaces import CatalogState, Surfaces, ViewSettings
from pactgate.catalog.uris import ResourceTarget, full_uri, unlisted
from pactgate.catalog.waiting import wait_for
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import DiscoveryFailed, Emit
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Prompt, ServerStatus, Tool, split_path
from pactgate.policy.permissions.rules import Denied, Permissions
from pactgate.policy.permissions.selection import Subject
from pactgate.protocol.cache_hints import Hint, together
from pactgate.protocol.messages import encode_json
from pactgate.state.known_lists import KnownLists
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.negotiate import Identity

_NOTHING: Final = ServerCatalog()
_NO_PINNING: Final = Pinning()
_MAX_REMOVED_IDS: Final = 1000
_MAX_OWN_CATALOGS: Final = 64


class ServerChanges(Struct, frozen=True):
    """The servers that a new configuration added, removed and changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Connections:
    """The configured servers by id, and the catalog of the connected ones.

    Everything a caller is answered from comes from `catalog_for`; `unfiltered` is for the operator alone. `built_in` are servers of the
    gateway itself, which only callers with the right role see.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        make_dialer: Callable[[ServerConfig], Dialer],
        *,
        naming: str,
        categories: Mapping[str, str] | None = None,
        server_info: bytes,
        own_resources: tuple[bytes, ...] = (),
        emit: Emit,
        backoff: Backoff | None = None,
        mask: Callable[[str], str] = str,
        max_age_s: float = 60.0,
        first_list_wait_s: float = 60.0,
        built_in: Iterable[ServerConfig] = (),
        permissions: Permissions | None = None,
        views: ViewSettings | None = None,
        pinning: Pinning = _NO_PINNING,
        known_lists: KnownLists | None = None,
    ) -> None:
        self._make_dialer = make_dialer
        self._naming = naming
        self._categories = dict(categories or {})
        self._server_info = server_info
        self._own_resources = own_resources
        self._emit = emit
        self._backoff = backoff
        self._mask = mask
        self._max_age_s = max_age_s
        self._first_list_wait_s = first_list_wait_s
        self._named: dict[str, tuple[DiscoveredLists, ServerCatalog]] = {}
        self._by_server: dict[str, ServerCatalog] = {}
        self._history: dict[str, DefinitionHistory] = {}
        self._recalled: set[str] = set()
        """The servers whose lists are still those of an earlier run."""
        self._known_lists = known_lists
        self._pinning = pinning
        self._guard = DefinitionGuard(pinning, emit, naming)
        self.conflicts: tuple[Conflict, ...] = ()
        """The conflicts that were last found between the servers."""
        self._reserved: dict[str, None] = {}
        """Every id that was configured in this run: a removed server's names go to nobody else until the restart."""
        self._is_started = False
        self._settling_until = 0.0
        self._advise = Adviser()
        self.on_catalog_changed: Callable[[str], None] = _ignore
        """Called with the id of each server whose entries changed, after the new catalog is in place."""
        self.on_lists_changed: Callable[[str, set[str], set[str]], None] = _ignore
        """Called with a server, its lists that differ and its lists that it announced as changed, after the new catalog is in place."""
        self.on_surfaces_changed: Callable[[Surfaces], None] = _ignore
        """Called with what callers saw before, after what they see now is in place."""
        self.on_updated: Callable[[str, str], None] = _ignore
        """Called with a server and the URI, as the server spells it, of an updated resource."""
        self._supervisors = {config.id: self._supervise(config) for config in servers}
        # Without events: the gateway's own server is always there, so they tell an operator nothing.
        self._built_in = {config.id: self._supervise(config, _ignore) for config in built_in}
        self._reserve(self._everyone)
        self._permissions = permissions
        self._last: dict[str, ServerCatalog] = {}
        self._views = views or ViewSettings({}, {})
        self.surfaces = Surfaces(self._state(), permissions, self._views)
        """What each caller sees now. Replaced as a whole, so a request sees one consistent state."""
        self._own_catalogs: dict[str, tuple[Catalog, dict[str, DiscoveredLists], Catalog]] = {}
        """For callers with lists of their own: what each was made from, and the catalog. The oldest goes first."""

    def start(self) -> None:
        self._is_started = True
        for supervisor in self._everyone.values():
            self._start(supervisor)

    async def stop(self) -> None:
        self._is_started = False
        await asyncio.gather(*(supervisor.stop() for supervisor in self._everyone.values()))

    @property
    def servers(self) -> dict[str, Supervisor]:
        """The configured servers. Read only: a change makes a new dictionary."""
        return self._supervisors

    @property
    def unfiltered(self) -> Catalog:
        """The catalog of all configured servers, for the operator: no caller may be answered from it."""
        return self.surfaces.unfiltered

    def catalog_for(self, caller: Caller) -> Catalog:
        """The catalog that a caller sees: whatever is not in it does not exist for this caller."""
        return self.surfaces.of(caller)

    def is_served(self, path: str, principal: Principal) -> bool:
        """Whether there is something for a caller at a path below `/mcp/`: a server that exists for it, or a view."""
        server, view = split_path(path)
        if view is not None:
            return self.surfaces.has_view(view)
        return server in self.surfaces.of_principal(principal).servers

    def shown_to(self, principal: Principal, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Facts about the gateway as a caller sees them; None where no permissions are configured."""
        catalog = self.surfaces.of_principal(principal)
        return None if catalog.access is None else shown_facts(facts, catalog)

    async def catalog_of(self, caller: Caller, capabilities: Mapping[str, Any]) -> Catalog:
        """The catalog for one caller: servers with `isolation: session` are asked for their tools in the caller's own session."""
        base = self.catalog_for(caller)
        asked = [
            id_
            for id_, supervisor in self._supervisors.items()
            if caller.scope in (None, id_)
            and id_ in base.servers
            and supervisor.has_lists_of(caller, capabilities)
            and self._guard.why_held(id_) is None
        ]
        lists = await asyncio.gather(*(self._own_lists(id_, caller, capabilities) for id_ in asked))
        own = {id_: found for id_, found in zip(asked, lists, strict=True) if found is not None}
        if not own:
            return base
        key = encode_json([session_key(caller, capabilities), caller.principal.key, caller.scope, caller.view]).decode()
        known = self._own_catalogs.pop(key, None)
        if known is None or known[0] is not base or known[1] != own:
            entries = {id_: self._own_entries(id_, own[id_]) for id_ in own}
            known = base, own, self.surfaces.beside(entries).of(caller)
        self._own_catalogs[key] = known
        if len(self._own_catalogs) > _MAX_OWN_CATALOGS:
            del self._own_catalogs[next(iter(self._own_catalogs))]
        return known[2]

    async def _own_lists(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> DiscoveredLists | None:
        """None where the session or its lists fail: the shared list is better than none."""
        try:
            return await self._supervisor(server).lists_of(caller, capabilities)
        except GatewayFailure as failure:
            self._emit(DiscoveryFailed(server, self._mask(failure.message)))
            return None

    def _own_entries(self, server: str, found: DiscoveredLists) -> ServerCatalog:
        """The tools of a caller's own session beside the shared prompts and resources. Known hints count as in the shared list."""
        hints = self._history[server].hints() if server in self._history else {}
        session = self.connected(server)
        if self._has_lock and session is not None:
            found = self._guard.admit_own(self._supervisors[server].config, session.identity, found)
        chosen = _chosen(found, self._supervisor(server).config)
        named = name_entries(server, chosen, self._naming, self._categories, hints)
        return self._by_server.get(server, _NOTHING)._replace(tools=named.tools)

    @property
    def _everyone(self) -> dict[str, Supervisor]:
        return {**self._supervisors, **self._built_in}

    def forget(self, subject: str) -> None:
        """End what servers have open for a subject that may no longer call."""
        for supervisor in self._supervisors.values():
            supervisor.caller_sessions.forget(subject)

    def connected(self, server: str) -> Session | None:
        """The session of a server that is connected right now."""
        supervisor = self._supervisors.get(server) or self._built_in.get(server)
        session = supervisor.session if supervisor is not None else None
        return session if session is not None and session.peer.is_open else None

    async def session(self, server: str) -> Session:
        return await self._supervisor(server).ready()

    async def session_for(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> Session:
        """The session for the calls of one caller with these client capabilities."""
        return await self._supervisor(server).session_for(caller, capabilities)

    def signed_in_session(self, server: str, caller: Caller) -> Session | None:
        """The open session with a modern server that has the caller's own grant; None where `session_for` has to be asked."""
        supervisor = self._supervisors.get(server)
        return None if supervisor is None else supervisor.caller_sessions.find(caller)

    def wants_own_session(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> bool:
        """Whether `session_for` would return another session than the shared one."""
        return self._supervisor(server).wants_own_session(caller, capabilities)

    def session_key(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> str | None:
        """The key of the session that `session_for` would return; None for the shared one."""
        supervisor = self._supervisor(server)
        if not supervisor.wants_own_session(caller, capabilities):
            return None
        return supervisor.caller_sessions.key_of(caller, capabilities)

    def _supervisor(self, server: str) -> Supervisor:
        supervisor = self._supervisors.get(server) or self._built_in.get(server)
        if supervisor is None:
            raise GatewayFailure(Kind.UNKNOWN_SERVER, f"There is no server {server!r} any more.", server=server)
        self._guard.require(server)
        return supervisor

    async def apply(
        self,
        servers: Iterable[ServerConfig],
        *,
        naming: str,
        categories: Mapping[str, str] | None = None,
        permissions: Permissions | None = None,
        views: ViewSettings | None = None,
        pinning: Pinning = _NO_PINNING,
    ) -> ServerChanges:
        """Apply a list of servers: end those it lacks, restart changed ones, leave the others alone.

        Permissions are in force before anything is waited for: the next call meets them.
        """
        self._permissions = permissions
        self._views = views or self._views
        wanted = {config.id: config for config in servers}
        before = self._supervisors
        kept = {id_: item for id_, item in before.items() if id_ in wanted and _is_same(item.config, wanted[id_])}
        if naming != self._naming or pinning != self._pinning:
            self._pinning, self._guard = pinning, DefinitionGuard(pinning, self._emit, naming)
        if naming != self._naming or dict(categories or {}) != self._categories:
            self._naming, self._categories, self._named = naming, dict(categories or {}), {}
        self._supervisors = {id_: kept.get(id_) or self._supervise(config) for id_, config in wanted.items()}
        for id_, item in kept.items():
            item.reconfigure(replace(wanted[id_], enabled=item.config.enabled))
        self._named = {id_: named for id_, named in self._named.items() if id_ in kept or id_ in self._built_in}
        self._guard.keep(kept)
        self._history = {id_: history for id_, history in self._history.items() if id_ in self._everyone}
        self._recalled &= self._everyone.keys()
        self._last = {id_: last for id_, last in self._last.items() if id_ in kept}
        for id_ in self._history.keys() - kept.keys() - self._built_in.keys():
            self._history[id_].restart()
        self._reserve(wanted)
        self._changed()  # at once: the names of an added server are its own before it has connected
        toggled = [id_ for id_, item in kept.items() if item.config.enabled != wanted[id_].enabled]
        for id_, supervisor in self._supervisors.items():
            if self._is_started and id_ not in kept:
                self._start(supervisor)
        ended = [item.stop() for id_, item in before.items() if id_ not in kept]
        await asyncio.gather(*ended, *(self.set_enabled(id_, wanted[id_].enabled) for id_ in toggled))
        self._changed()
        return ServerChanges(
            added=tuple(id_ for id_ in wanted if id_ not in before),
            removed=tuple(id_ for id_ in before if id_ not in wanted),
            changed=tuple(id_ for id_ in wanted if id_ in before and (id_ not in kept or id_ in toggled)),
        )

    async def set_enabled(self, server: str, enabled: bool) -> None:
        supervisor = self._supervisors[server]
        if enabled:
            supervisor.enable()
            self._settle_until(supervisor.lists.awaited_until)
        else:
            await supervisor.disable()

    async def discover(
        self, *, only: Collection[str] | None = None, force: bool = False, include_disabled: bool = False
    ) -> DiscoveryReport:
        """One row per server. A list younger than the discovery interval is not fetched again unless forced."""
        return await discover_all(
            self._supervisors, only=only, force=force, include_disabled=include_disabled, max_age_s=self._max_age_s
        )

    def _start(self, supervisor: Supervisor) -> None:
        supervisor.start()
        self._settle_until(supervisor.lists.awaited_until)

    def _settle_until(self, moment: float) -> None:
        self._settling_until = max(self._settling_until, moment)

    async def settle(self, scope: str | None = None) -> None:
        """Wait until every server, or the one of `scope`, has answered its lists or failed once since it was started.

        Each server is waited for as long as its own time to connect, and all of them as long as `discovery.firstListWaitMs`. Most
        clients list once, so a list without a server that is still starting hides the tools of this server for the whole session.
        """
        loop = asyncio.get_running_loop()
        if loop.time() >= self._settling_until:
            return
        latest = loop.time() + self._first_list_wait_s
        for lists in [self._everyone[id_].lists for id_ in self.settling(scope)]:
            await wait_for(lists.settled, max(0.0, min(latest, lists.awaited_until) - loop.time()))

    def settling(self, scope: str | None = None) -> list[str]:
        """The servers whose first answer a list waits for."""
        if not self._settling_until:  # nothing was started, perhaps without an event loop
            return []
        now = asyncio.get_running_loop().time()
        return [
            id_
            for id_, item in self._everyone.items()
            if scope in (None, id_) and not item.lists.settled.is_set() and now < item.lists.awaited_until
        ]

    async def resolve(
        self,
        name: str,
        scope: str | None,
        caller: Caller,
        lister: Callable[[], Awaitable[Catalog]] | None = None,
    ) -> tuple[Catalog, Tool]:
        """The tool for a name the catalog does not have yet: wait for the servers that may still list it, then look it up again.

        `lister` gives the catalog of a caller that may have lists of its own. Returns the catalog too.
        """
        await self._wait_for(self.server_for(name, scope, caller), caller, TOOL_KIND)
        catalog = self.catalog_for(caller) if lister is None else await lister()
        try:
            return catalog, catalog.tools.resolve(name, scope)
        except GatewayFailure as failure:
            if failure.kind is Kind.UNKNOWN_TOOL:
                self._require_not_held("tools", name, caller)
                away = () if scope is not None or failure.server is not None else tuple(catalog.missing)
                said = self._advise(name, (tool.full_name for tool in catalog.tools.entries(scope)), away)
                failure.reword(lambda message: f"{message} {said}".rstrip())
            raise

    def server_for(self, name: str, scope: str | None, caller: Caller) -> str | None:
        """The only server that the name of a tool can mean, connected or not; None if there is no such server."""
        return scope or self.catalog_for(caller).tools.server_for(name)

    async def resolve_uri(self, uri: str, caller: Caller) -> ResourceTarget:
        """The server that a URI means. Waits until that server has started, or every server if none lists the URI yet."""
        try:
            await self.settle(self.catalog_for(caller).resolve_uri(uri, caller.scope).server)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_RESOURCE:
                raise
            await self.settle()
        for listing in ("resources", "templates"):
            self._require_not_held(listing, uri, caller)
        return self.catalog_for(caller).resolve_uri(uri, caller.scope)

    async def resolve_prompt(self, name: str, caller: Caller) -> Prompt:
        """The prompt for a name. Waits for the server that the name means, and raises why that server is unreachable."""
        try:
            return self.catalog_for(caller).prompts.resolve(name, caller.scope)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_PROMPT:
                raise
        await self._wait_for(caller.scope or self.catalog_for(caller).prompts.server_for(name), caller, PROMPT_KIND)
        try:
            return self.catalog_for(caller).prompts.resolve(name, caller.scope)
        except GatewayFailure as failure:
            if failure.kind is Kind.UNKNOWN_PROMPT:
                self._require_not_held("prompts", name, caller)
            raise

    def _require_not_held(self, listing: str, name: str, caller: Caller) -> None:
        """Raise if a name means an entry that the lock file holds back.

        To a caller with permissions or a view it is a name that nobody has: what is not listed can't be told from what is denied.
        """
        try:
            self._guard.require_named(listing, name, caller.scope)
        except GatewayFailure:
            if self.catalog_for(caller).access is None:
                raise
            if listing in ("resources", "templates"):
                raise unlisted(name) from None

    def why_denied(self, kind: EntryKind | None, name: str, scope: str | None, caller: Caller) -> Denied | None:
        """Why a name that does not exist for a caller is denied, if it exists. Without a kind, the name is a URI."""
        access, everything = self.catalog_for(caller).access, self.unfiltered
        if access is None:
            return None
        try:
            if kind is None:
                target = everything.resolve_uri(name, scope)
                return access.why_denied(Subject(target.server, full_uri(*target)))
            if kind is TOOL_KIND:
                full_name = self.surfaces.full_name_of(caller, name)
                return access.why_denied(Subject.of(everything.tools.resolve(full_name, scope)))
            prompt = everything.prompts.resolve(name, scope)
        except GatewayFailure:
            access.why_denied(Subject(scope or "", name))  # so that its time does not tell a name that nobody has
            return None
        return access.why_denied(Subject(prompt.server, prompt.full_name))

    async def _wait_for(self, server: str | None, caller: Caller, kind: EntryKind) -> None:
        """Wait for the first list of a server. Raises why the server is unreachable, which says more than an unknown name."""
        is_seen = server is not None and self.is_served(server, caller.principal)
        supervisor = self._everyone.get(server) if server is not None and is_seen else None
        if supervisor is None:
            await self.settle()
            return
        if supervisor.status is ServerStatus.DISABLED:
            raise GatewayFailure(kind.unknown, f"The server {server} is disabled.", server=server)
        await supervisor.ready()
        if supervisor.lists.failure is not None:
            raise supervisor.lists.failure.shared(verdict=Verdict.DID_NOT_RUN)
        if not supervisor.lists.has_answered or supervisor.lists.is_recalled:
            await supervisor.lists.ask()
        self._guard.require(supervisor.config.id)

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(supervisor) for supervisor in self._supervisors.values()]

    def _row(self, supervisor: Supervisor) -> dict[str, Any]:
        row = supervisor.row()
        for method, servers in self.unfiltered.oversized.items():
            if supervisor.config.id in servers:
                row["leftOut"] = [oversize_reason(method), *row["leftOut"]]
        findings = self._guard.findings(supervisor.config.id)
        row["definitionsChanged"] = len(findings)
        row["toolCount"] = len(self._by_server.get(supervisor.config.id, _NOTHING).tools)
        row["leftOut"] = [*map(str, findings[:MAX_LEFT_OUT]), *row["leftOut"]]
        row["trouble"] = row["trouble"] or self._guard.why_held(supervisor.config.id)
        row["hazards"] = [
            conflict.message
            for conflict in self.conflicts
            if conflict.severity is ConflictSeverity.HAZARD and supervisor.config.id in conflict.servers
        ]
        return row

    def lock_state(self, tool: Tool) -> str | None:
        """Whether the definition of a tool is as approved: `approved`, or how it differs; None without a lock file."""
        if not self._guard.compares:
            return None
        found = (one for one in self._guard.findings(tool.server) if one.entries in ("tools", "server"))
        return next((one.change for one in found if one.entries == "server" or one.name == tool.name), "approved")

    def freshness(self, method: str, caller: Caller) -> Hint:
        """The cache hint of a list: the shortest time to live among the servers that contribute to it.

        A list that differs between callers is never shared between them: with permissions that is every list, and that of all tools
        always, because administrators see more tools.
        """
        scope, catalog = caller.scope, self.catalog_for(caller)
        servers = [(id_, self._supervisors[id_]) for id_ in catalog.servers if id_ in self._supervisors]
        hints = [item.hint(method) for id_, item in servers if scope is None or scope == id_]
        hint = together(hint for hint in hints if hint is not None)
        is_own = catalog.access is not None or (scope is None and method == TOOLS.method)
        return Hint(hint.ttl_ms) if is_own else hint

    def missing(self) -> dict[str, str]:
        """The enabled servers that are unavailable now, each with the reason."""
        return {id_: why for id_, item in self._supervisors.items() if (why := self._trouble(item)) is not None}

    def _trouble(self, supervisor: Supervisor) -> str | None:
        return supervisor.trouble or self._guard.why_held(supervisor.config.id)

    def _supervise(self, config: ServerConfig, emit: Emit | None = None) -> Supervisor:
        return Supervisor(
            config,
            self._make_dialer(config),
            self._changed,
            emit or self._emit,
            backoff=self._backoff,
            mask=self._mask,
            max_age_s=self._max_age_s,
            on_updated=lambda server, uri: self.on_updated(server, uri),
            known_lists=self._known_lists,
        )

    def _changed(self) -> None:
        """Name new entries and replace the catalog in one assignment."""
        everyone = self._everyone
        for id_, supervisor in everyone.items():
            found = self._admitted(id_, supervisor)
            history = self._history.setdefault(id_, DefinitionHistory(id_))
            self._check_instructions(id_, history)
            is_first_answer = id_ in self._recalled and not supervisor.lists.is_recalled
            if supervisor.lists.is_recalled and supervisor.config.start == "eager":
                self._recalled.add(id_)
            else:
                self._recalled.discard(id_)
            if id_ not in self._named or self._named[id_][0] is not found:
                chosen = _chosen(found, supervisor.config)
                if is_first_answer:
                    history.restart()  # a restart confirms what has changed since the last run
                if supervisor.lists.has_answered:
                    for event in history.update(_chosen(supervisor.lists.found, supervisor.config)):
                        self._emit(event)
                hints = history.hints()
                named = name_entries(id_, chosen, self._naming, self._categories, hints)
                self._named[id_] = (found, named)
                if supervisor.lists.has_answered:
                    self._last[id_] = named
        by_server, before = {id_: self._named[id_][1] for id_ in everyone}, self._by_server
        is_reordered = [*by_server] != [*before]
        has_changed = is_reordered or by_server != before or self.missing() != self.unfiltered.missing
        if has_changed or not self.surfaces.is_made_by(self._permissions, self._views):
            changed = [id_ for id_ in {**before, **by_server} if by_server.get(id_) != before.get(id_)]
            self._by_server = by_server
            old, self.surfaces = self.surfaces, Surfaces(self._state(), self._permissions, self._views, self.surfaces)
            self._warm(old)
            self.on_surfaces_changed(old)
            self._tell_oversized(old.unfiltered, self.unfiltered)
            for id_ in changed:
                self.on_catalog_changed(id_)
        self._tell_lists(before, by_server)

    def _warm(self, before: Surfaces) -> None:
        """Make the catalogs that callers need, one at a time between other work, so that hardly a call has to."""
        now, callers = self.surfaces, self.surfaces.callers_of(before)

        def make_next() -> None:
            if callers and self.surfaces is now:
                now.of_principal(*callers.pop())
                asyncio.get_running_loop().call_soon(make_next)

        if self._is_started and callers:
            asyncio.get_running_loop().call_soon(make_next)

    @property
    def _has_lock(self) -> bool:
        return self._pinning.mode != "off"

    def _admitted(self, server: str, supervisor: Supervisor) -> DiscoveredLists:
        """What may be listed of a server: everything, or what is as in the lock file."""
        lists = supervisor.lists
        if not self._has_lock or server in self._built_in or not lists.has_answered:
            return lists.found
        return self._guard.admit(supervisor.config, supervisor.identity, lists.found)

    def _check_instructions(self, server: str, history: DefinitionHistory) -> None:
        session = self.connected(server)
        event = None if session is None else history.update_instructions(session.identity.instructions)
        if event is not None:
            self._emit(event)
            self.on_catalog_changed(server)

    def _tell_oversized(self, old: Catalog, new: Catalog) -> None:
        for method, servers in new.oversized.items():
            for server in servers:
                if server not in old.oversized[method]:
                    self._emit(DiscoveryFailed(server, oversize_reason(method)))

    def _tell_lists(self, before: Mapping[str, ServerCatalog], by_server: Mapping[str, ServerCatalog]) -> None:
        for id_ in {**before, **by_server}:
            old, new = before.get(id_, _NOTHING), by_server.get(id_, _NOTHING)
            supervisor = self._supervisors.get(id_)
            said = supervisor.lists.take_announced() if supervisor is not None else set()
            differing = old.differing(new) if old is not new else set()
            if differing or said:
                self.on_lists_changed(id_, differing, said)

    def instructions_of(self, server: str) -> str | None:
        """What a connected server tells models about itself, unless the lock file has other instructions."""
        identity = self.identity_of(server)
        return None if identity is None or self._guard.hides_instructions(server) else identity.instructions

    def identity_of(self, server: str) -> Identity | None:
        """What a server says of itself, if it is connected or a lazy one that would be at its next call."""
        supervisor = self._supervisors.get(server) or self._built_in.get(server)
        return None if supervisor is None else supervisor.identity

    def _reserve(self, ids: Iterable[str]) -> None:
        """Keep these prefixes for their servers. Bounded: the oldest removed ones are forgotten first."""
        now = dict.fromkeys(ids) | dict.fromkeys(self._everyone)
        removed = [id_ for id_ in self._reserved if id_ not in now]
        self._reserved = dict.fromkeys(removed[-_MAX_REMOVED_IDS:]) | now

    def _state(self) -> CatalogState:
        everyone = self._everyone
        return CatalogState(
            by_server={id_: self._by_server.get(id_, _NOTHING) for id_ in self._supervisors},
            built_in={id_: self._by_server.get(id_, _NOTHING) for id_ in self._built_in},
            last=dict(self._last),
            known={id_: self._history[id_].names for id_ in everyone if id_ in self._history},
            reserved=frozenset(self._reserved),
            missing=self.missing(),
            instructions={id_: text for id_ in everyone if (text := self.instructions_of(id_))},
            server_info=self._server_info,
            own_resources=self._own_resources,
        )


def _chosen(found: DiscoveredLists, config: ServerConfig) -> DiscoveredLists:
    """What a server offers without the tools that the operator does not want."""
    if config.include_tools is None and not config.exclude_tools:
        return found
    return replace(found, tools=tuple(tool for tool in found.tools if config.serves(tool.key)))


def _ignore(*_: object) -> None:
    return


def _is_same(running: ServerConfig, wanted: ServerConfig) -> bool:
    """Whether a running server can stay: only settings differ that are read at every use."""
    return _lasting(running) == _lasting(wanted)


def _lasting(config: ServerConfig) -> ServerConfig:
    return replace(config, enabled=True, request_timeout_ms=60000, max_retries=0, extensions=())
