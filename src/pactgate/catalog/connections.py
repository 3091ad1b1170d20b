"""All configured servers: one supervisor each, and one catalog, replaced as a whole when a server changes.

Servers never wait for each other, and a change of the configuration affects only the servers that it names.
Enforces S0/ECO-002 and S0/ECO-201: a failing server does not affect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.catalog import Catalog, ServerCatalog, oversize_reason
from pactgate.catalog.conflicts import Conflict, ConflictSeverity
from pactgate.catalog.definition_pins import DefinitionGuard, Pinning
from pactgate.catalog.discovery import MAX_LEFT_OUT, TOOLS, DiscoveredLists
from pactgate.catalog.discovery_report import DiscoveryReport, discover_all
from pactgate.catalog.named_lists import NamedLists
from pactgate.catalog.server_row import server_row
from pactgate.catalog.shown_facts import shown_facts
from pactgate.catalog.supervisor import Supervisor
from pactgate.catalog.surfaces import CatalogState, Surfaces, ViewSettings
from pactgate.catalog.waiting import wait_for
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import DiscoveryFailed, Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Tool, split_path
from pactgate.policy.permissions.rules import Permissions
from pactgate.protocol.cache_hints import Hint, together
from pactgate.protocol.messages import encode_json
from pactgate.state.known_lists import KnownLists
from pactgate.upstreams.dialer import Dialer, Session
from pactgate.upstreams.negotiate import Identity

_NOTHING: Final = ServerCatalog()
_NO_PINNING: Final = Pinning()
_MAX_REMOVED_IDS: Final = 1000


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
        self._server_info = server_info
        self._own_resources = own_resources
        self._emit = emit
        self._backoff = backoff
        self._mask = mask
        self._max_age_s = max_age_s
        self._first_list_wait_s = first_list_wait_s
        self._by_server: dict[str, ServerCatalog] = {}
        self._known_lists = known_lists
        self._lists = NamedLists(emit, naming=naming, categories=dict(categories or {}), pinning=pinning)
        self.conflicts: tuple[Conflict, ...] = ()
        """The conflicts that were last found between the servers."""
        self._reserved: dict[str, None] = {}
        """Every id that was configured in this run: a removed server's names go to nobody else until the restart."""
        self._is_started = False
        self._settling_until = 0.0
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
        self._reserve(self.everyone)
        self._permissions = permissions
        self._views = views or ViewSettings({}, {})
        self.surfaces = Surfaces(self._state(), permissions, self._views)
        """What each caller sees now. Replaced as a whole, so a request sees one consistent state."""

    def start(self, offered: Mapping[str, Any] | None = None) -> None:
        """`offered` are the capabilities of the only client there is: servers may list other tools for it."""
        if offered and self._known_lists is not None:
            self._known_lists.offered = encode_json(offered).decode()
        self._is_started = True
        for supervisor in self.everyone.values():
            self._start(supervisor)

    async def stop(self) -> None:
        self._is_started = False
        await asyncio.gather(*(supervisor.stop() for supervisor in self.everyone.values()))

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

    def entries_with(self, server: str, own: DiscoveredLists) -> ServerCatalog:
        """The tools of a caller's own session beside the shared prompts and resources of a server."""
        config, session = self.supervisor(server).config, self.connected(server)
        tools = self._lists.own(config, own, session).tools
        return self._by_server.get(server, _NOTHING)._replace(tools=tools)

    @property
    def everyone(self) -> dict[str, Supervisor]:
        """The configured servers, and those of the gateway itself."""
        return {**self._supervisors, **self._built_in}

    @property
    def guard(self) -> DefinitionGuard:
        """Which servers and entries the lock file holds back."""
        return self._lists.guard

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
        return await self.supervisor(server).ready()

    async def session_for(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> Session:
        """The session for the calls of one caller with these client capabilities."""
        return await self.supervisor(server).session_for(caller, capabilities)

    def signed_in_session(self, server: str, caller: Caller) -> Session | None:
        """The open session with a modern server that has the caller's own grant; None where `session_for` has to be asked."""
        supervisor = self._supervisors.get(server)
        return None if supervisor is None else supervisor.caller_sessions.find(caller)

    def wants_own_session(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> bool:
        """Whether `session_for` would return another session than the shared one."""
        return self.supervisor(server).wants_own_session(caller, capabilities)

    def session_key(self, server: str, caller: Caller, capabilities: Mapping[str, Any]) -> str | None:
        """The key of the session that `session_for` would return; None for the shared one."""
        supervisor = self.supervisor(server)
        if not supervisor.wants_own_session(caller, capabilities):
            return None
        return supervisor.caller_sessions.key_of(caller, capabilities)

    def supervisor(self, server: str) -> Supervisor:
        """Raises GatewayFailure where there is no such server, or the lock file holds it back."""
        supervisor = self._supervisors.get(server) or self._built_in.get(server)
        if supervisor is None:
            raise GatewayFailure(Kind.UNKNOWN_SERVER, f"There is no server {server!r} any more.", server=server)
        self._lists.guard.require(server)
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
        self._lists.configure(naming=naming, categories=dict(categories or {}), pinning=pinning)
        self._supervisors = {id_: kept.get(id_) or self._supervise(config) for id_, config in wanted.items()}
        for id_, item in kept.items():
            item.reconfigure(replace(wanted[id_], enabled=item.config.enabled))
        self._lists.keep(kept, wanted=wanted, built_in=self._built_in)
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
        for lists in [self.everyone[id_].lists for id_ in self.settling(scope)]:
            await wait_for(lists.settled, max(0.0, min(latest, lists.awaited_until) - loop.time()))

    def settling(self, scope: str | None = None) -> list[str]:
        """The servers whose first answer a list waits for."""
        if not self._settling_until:  # nothing was started, perhaps without an event loop
            return []
        now = asyncio.get_running_loop().time()
        return [
            id_
            for id_, item in self.everyone.items()
            if scope in (None, id_) and not item.lists.settled.is_set() and now < item.lists.awaited_until
        ]

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(supervisor) for supervisor in self._supervisors.values()]

    def _row(self, supervisor: Supervisor) -> dict[str, Any]:
        row = server_row(supervisor)
        for method, servers in self.unfiltered.oversized.items():
            if supervisor.config.id in servers:
                row["leftOut"] = [oversize_reason(method), *row["leftOut"]]
        findings = self.guard.findings(supervisor.config.id)
        row["definitionsChanged"] = len(findings)
        row["toolCount"] = len(self._by_server.get(supervisor.config.id, _NOTHING).tools)
        row["leftOut"] = [*map(str, findings[:MAX_LEFT_OUT]), *row["leftOut"]]
        row["trouble"] = row["trouble"] or self.guard.why_held(supervisor.config.id)
        row["hazards"] = [
            conflict.message
            for conflict in self.conflicts
            if conflict.severity is ConflictSeverity.HAZARD and supervisor.config.id in conflict.servers
        ]
        return row

    def lock_state(self, tool: Tool) -> str | None:
        """Whether the definition of a tool is as approved: `approved`, or how it differs; None without a lock file."""
        if not self.guard.compares:
            return None
        found = (one for one in self.guard.findings(tool.server) if one.entries in ("tools", "server"))
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
        return supervisor.trouble or self.guard.why_held(supervisor.config.id)

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
        everyone = self.everyone
        retold = [
            id_
            for id_, supervisor in everyone.items()
            if self._lists.update(supervisor, self.connected(id_), is_built_in=id_ in self._built_in)
        ]
        for id_ in retold:
            self.on_catalog_changed(id_)
        by_server, before = {id_: self._lists.of(id_) for id_ in everyone}, self._by_server
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
        return None if identity is None or self.guard.hides_instructions(server) else identity.instructions

    def identity_of(self, server: str) -> Identity | None:
        """What a server says of itself, if it is connected or a lazy one that would be at its next call."""
        supervisor = self._supervisors.get(server) or self._built_in.get(server)
        return None if supervisor is None else supervisor.identity

    def _reserve(self, ids: Iterable[str]) -> None:
        """Keep these prefixes for their servers. Bounded: the oldest removed ones are forgotten first."""
        now = dict.fromkeys(ids) | dict.fromkeys(self.everyone)
        removed = [id_ for id_ in self._reserved if id_ not in now]
        self._reserved = dict.fromkeys(removed[-_MAX_REMOVED_IDS:]) | now

    def _state(self) -> CatalogState:
        everyone = self.everyone
        return CatalogState(
            by_server={id_: self._by_server.get(id_, _NOTHING) for id_ in self._supervisors},
            built_in={id_: self._by_server.get(id_, _NOTHING) for id_ in self._built_in},
            last=dict(self._lists.last),
            known=self._lists.names(),
            reserved=frozenset(self._reserved),
            missing=self.missing(),
            instructions={id_: text for id_ in everyone if (text := self.instructions_of(id_))},
            server_info=self._server_info,
            own_resources=self._own_resources,
        )


def _ignore(*_: object) -> None:
    return


def _is_same(running: ServerConfig, wanted: ServerConfig) -> bool:
    """Whether a running server can stay: only settings differ that are read at every use."""
    return _lasting(running) == _lasting(wanted)


def _lasting(config: ServerConfig) -> ServerConfig:
    return replace(config, enabled=True, request_timeout_ms=60000, max_retries=0, extensions=())
