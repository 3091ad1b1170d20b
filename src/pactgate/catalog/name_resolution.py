"""From a name or URI to the entry it means, when the catalog does not have it yet: wait for the servers that may still list it.

What the caller's catalog has already is found without this. Must not: say more of an entry to a caller that may not use it than of a name
that nobody has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pactgate.catalog.catalog import Catalog
from pactgate.catalog.connections import Connections
from pactgate.catalog.index import PROMPT_KIND, TOOL_KIND, EntryKind
from pactgate.catalog.near_names import Adviser
from pactgate.catalog.own_catalogs import OwnCatalogs
from pactgate.catalog.uris import ResourceTarget, full_uri, unlisted
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import Caller, Prompt, ServerStatus, Tool
from pactgate.policy.permissions.rules import Denied
from pactgate.policy.permissions.selection import Subject


class NameResolution:
    def __init__(self, connections: Connections, own_catalogs: OwnCatalogs) -> None:
        self._connections = connections
        self._own_catalogs = own_catalogs
        self._advise = Adviser()

    async def tool(
        self, name: str, scope: str | None, caller: Caller, capabilities: Mapping[str, Any]
    ) -> tuple[Catalog, Tool]:
        """The tool for a name, and the catalog it was found in, which may be the caller's own."""
        await self._wait_for(self.server_for(name, scope, caller), caller, TOOL_KIND)
        catalog = await self._own_catalogs.catalog_of(caller, capabilities)
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
        return scope or self._connections.catalog_for(caller).tools.server_for(name)

    async def resource(self, uri: str, caller: Caller) -> ResourceTarget:
        """The server that a URI means. Waits until that server has started, or every server if none lists the URI yet."""
        connections = self._connections
        try:
            await connections.settle(connections.catalog_for(caller).resolve_uri(uri, caller.scope).server)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_RESOURCE:
                raise
            await connections.settle()
        for listing in ("resources", "templates"):
            self._require_not_held(listing, uri, caller)
        return connections.catalog_for(caller).resolve_uri(uri, caller.scope)

    async def prompt(self, name: str, caller: Caller) -> Prompt:
        """The prompt for a name. Waits for the server that the name means, and raises why that server is unreachable."""
        catalog_for = self._connections.catalog_for
        try:
            return catalog_for(caller).prompts.resolve(name, caller.scope)
        except GatewayFailure as failure:
            if failure.kind is not Kind.UNKNOWN_PROMPT:
                raise
        await self._wait_for(caller.scope or catalog_for(caller).prompts.server_for(name), caller, PROMPT_KIND)
        try:
            return catalog_for(caller).prompts.resolve(name, caller.scope)
        except GatewayFailure as failure:
            if failure.kind is Kind.UNKNOWN_PROMPT:
                self._require_not_held("prompts", name, caller)
            raise

    def why_denied(self, kind: EntryKind | None, name: str, scope: str | None, caller: Caller) -> Denied | None:
        """Why a name that does not exist for a caller is denied, if it exists. Without a kind, the name is a URI."""
        access, everything = self._connections.catalog_for(caller).access, self._connections.unfiltered
        if access is None:
            return None
        try:
            if kind is None:
                target = everything.resolve_uri(name, scope)
                return access.why_denied(Subject(target.server, full_uri(*target)))
            if kind is TOOL_KIND:
                full_name = self._connections.surfaces.full_name_of(caller, name)
                return access.why_denied(Subject.of(everything.tools.resolve(full_name, scope)))
            prompt = everything.prompts.resolve(name, scope)
        except GatewayFailure:
            access.why_denied(Subject(scope or "", name))  # so that its time does not tell a name that nobody has
            return None
        return access.why_denied(Subject(prompt.server, prompt.full_name))

    def _require_not_held(self, listing: str, name: str, caller: Caller) -> None:
        """Raise if a name means an entry that the lock file holds back.

        To a caller with permissions or a view it is a name that nobody has: what is not listed can't be told from what is denied.
        """
        try:
            self._connections.guard.require_named(listing, name, caller.scope)
        except GatewayFailure:
            if self._connections.catalog_for(caller).access is None:
                raise
            if listing in ("resources", "templates"):
                raise unlisted(name) from None

    async def _wait_for(self, server: str | None, caller: Caller, kind: EntryKind) -> None:
        """Wait for the first list of a server. Raises why the server is unreachable, which says more than an unknown name."""
        connections = self._connections
        is_seen = server is not None and connections.is_served(server, caller.principal)
        supervisor = connections.everyone.get(server) if server is not None and is_seen else None
        if supervisor is None:
            await connections.settle()
            return
        if supervisor.status is ServerStatus.DISABLED:
            raise GatewayFailure(kind.unknown, f"The server {server} is disabled.", server=server)
        await supervisor.ready()
        if supervisor.lists.failure is not None:
            raise supervisor.lists.failure.shared(verdict=Verdict.DID_NOT_RUN)
        if not supervisor.lists.has_answered or supervisor.lists.is_recalled:
            await supervisor.lists.ask()
        connections.guard.require(supervisor.config.id)
