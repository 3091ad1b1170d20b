"""The method table: initialize, discover, ping, lists, and what is forwarded. Each handler returns bytes shaped for the caller's era."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.catalog.discovery import TOOLS
from pactgate.catalog.own_catalogs import OwnCatalogs
from pactgate.catalog.tool_groups import EXTENSION as GROUPS
from pactgate.catalog.tool_groups import ToolGroups, is_known_to
from pactgate.core.context import ExecutionContext
from pactgate.core.display import cut
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller
from pactgate.pipeline import capabilities, status
from pactgate.pipeline.capabilities import relayable_of
from pactgate.pipeline.change_notifications import ChangeNotifications
from pactgate.pipeline.forward import Forward
from pactgate.pipeline.kernel import EXTENSION, Handler, unknown_method
from pactgate.pipeline.notification_relay import NotificationRelay
from pactgate.pipeline.tool_call import ToolCall
from pactgate.protocol import messages, modern
from pactgate.protocol.cache_hints import STALE
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import METHODS, MODERN_VERSIONS, Era

_MAX_REASON_CHARS: Final = 200
_MAX_INSTRUCTIONS_CHARS: Final = 32_768
"""Of one server beside the others: every client of `/mcp` gets the instructions of all of them."""


class Handlers:
    """The method table over the catalog."""

    def __init__(
        self,
        connections: Connections,
        own_catalogs: OwnCatalogs,
        tool_call: ToolCall,
        forward: Forward,
        changes: ChangeNotifications,
        relaying: NotificationRelay,
        server_info: dict[str, Any],
    ) -> None:
        self._connections = connections
        self._own_catalogs = own_catalogs
        self._tool_call = tool_call
        self._forward = forward
        self._changes = changes
        self._relaying = relaying
        self._server_info = server_info

    def table(self) -> dict[str, Handler]:
        return {
            "tools/call": self._tool_call.run,
            "tools/list": self.list_entries,
            "prompts/list": self.list_entries,
            "prompts/get": self._forward.get_prompt,
            "resources/list": self.list_entries,
            "resources/templates/list": self.list_entries,
            "resources/read": self._forward.read_resource,
            "resources/subscribe": self._changes.subscribe,
            "resources/unsubscribe": self._changes.unsubscribe,
            modern.LISTEN: self._changes.listen,
            "logging/setLevel": self._relaying.set_level,
            "completion/complete": self._forward.complete,
            **{method: self._forward.pass_on for method in METHODS if method.startswith("tasks/")},
            EXTENSION: self._forward.pass_on,
            "initialize": self.initialize,
            "server/discover": self.discover,
            "ping": self.ping,
            "groups/list": self.list_groups,
            "groups/get": self.get_group,
        }

    async def initialize(self, ctx: ExecutionContext, request: Request) -> bytes:
        """The answer of the handshake; the frontend has already agreed on the version.

        The merged view answers at once. The endpoint of one server waits for that server, whose name and capabilities it shows.
        """
        await self._settle_scope(ctx.caller.scope)
        about = self._about(ctx.caller, Era.LEGACY)
        return encode_json(
            {"protocolVersion": ctx.caller.version, "serverInfo": self._identity(ctx.caller.scope), **about}
        )

    async def discover(self, ctx: ExecutionContext, request: Request) -> bytes:
        await self._settle_scope(ctx.caller.scope)
        about = {name: Raw(encode_json(fact)) for name, fact in self._about(ctx.caller, Era.MODERN).items()}
        about["supportedVersions"] = Raw(encode_json(MODERN_VERSIONS))
        info = encode_json(self._identity(ctx.caller.scope))
        hint = self._connections.freshness(request.method, ctx.caller)
        return encode_json(modern.complete(about, info, cacheable=True)).removesuffix(STALE.encode()) + hint.encode()

    async def ping(self, ctx: ExecutionContext, request: Request) -> bytes:
        return b"{}"

    async def list_entries(self, ctx: ExecutionContext, request: Request) -> bytes:
        """Return the whole list on one page. The gateway gives out no cursors, so it refuses every cursor."""
        _require_no_cursor(request)
        caller = ctx.caller
        await self._connections.settle(caller.scope)
        hint = self._connections.freshness(request.method, caller)
        if request.method == TOOLS.method and caller.capabilities:
            catalog = await self._own_catalogs.catalog_of(caller, relayable_of(caller, Era.LEGACY))
        else:
            catalog = self._connections.catalog_for(caller)
        return catalog.listing(request.method, caller.scope, caller.version, hint)

    async def list_groups(self, ctx: ExecutionContext, request: Request) -> bytes:
        groups = await self._groups(ctx.caller, request)
        _require_no_cursor(request)
        return self._complete(groups.listing())

    async def get_group(self, ctx: ExecutionContext, request: Request) -> bytes:
        groups = await self._groups(ctx.caller, request)
        name = modern.values_of(request).get("name")
        found = groups.get(name) if isinstance(name, str) else None
        if found is None:
            # The draft wants the code of an unknown resource: here that of its revision, which has no -32002 any more.
            message = f"There is no group {str(name)[:100]!r}. groups/list shows what there is."
            raise GatewayFailure(Kind.UNKNOWN_RESOURCE, message)
        return self._complete(found)

    async def _groups(self, caller: Caller, request: Request) -> ToolGroups:
        """The groups at this path for this caller. Without them the methods do not exist."""
        await self._connections.settle()
        groups = self._connections.catalog_for(caller).groups
        if groups is None or not is_known_to(caller.capabilities):
            raise unknown_method(request.method, None)
        return groups

    def _complete(self, result: dict[str, Raw]) -> bytes:
        return encode_json(modern.complete(result, encode_json(self._server_info), cacheable=False))

    async def _settle_scope(self, scope: str | None) -> None:
        if scope is not None:
            await self._connections.settle(scope)

    def _about(self, caller: Caller, era: Era) -> dict[str, Any]:
        about: dict[str, Any] = {"capabilities": self._capabilities(caller, era)}
        instructions = self._instructions(caller)
        if instructions:
            about["instructions"] = instructions
        return about

    def _capabilities(self, caller: Caller, era: Era) -> dict[str, Any]:
        """The capabilities of the merged view, or those of one server on its own endpoint."""
        scope = caller.scope
        if scope is None:
            seen = self._connections.catalog_for(caller).servers
            identities = (item.identity for id_, item in self._connections.servers.items() if id_ in seen)
            offered = (each.capabilities for each in identities if each is not None)
            is_starting = not set(seen).isdisjoint(self._connections.settling())
            merged = capabilities.merged(offered, is_starting=is_starting)
            has_groups = era is Era.MODERN and self._connections.catalog_for(caller).groups is not None
            return {**merged, "extensions": {GROUPS: {}}} if has_groups else merged
        identity = self._connections.identity_of(scope)
        if identity is None:
            return capabilities.alone(None)
        return capabilities.alone(identity.capabilities, is_same_era=identity.era is era)

    def _identity(self, scope: str | None) -> dict[str, Any]:
        """On `/mcp/{serverId}` a server shows its own name, where it gave a usable one."""
        identity = self._connections.identity_of(scope) if scope is not None else None
        own = identity.server_info if identity else {}
        is_usable = isinstance(own.get("name"), str) and isinstance(own.get("version"), str)
        return own if is_usable else self._server_info

    def _instructions(self, caller: Caller) -> str:
        """The instructions of the servers that the caller sees, and those of them that are unavailable (D14)."""
        parts: list[str] = []
        scope, catalog = caller.scope, self._connections.catalog_for(caller)
        for id_ in self._connections.servers:
            is_shown = id_ in catalog.servers and scope in (None, id_)
            text = self._connections.instructions_of(id_) if is_shown else None
            if not text:
                continue
            parts.append(text if scope is not None else f"## {id_}\n{cut(text, _MAX_INSTRUCTIONS_CHARS)}")
        starting = self._connections.settling(scope)
        missing = {id_: why for id_, why in catalog.missing.items() if scope in (None, id_)}
        lines = [f"- {id_}: {why[:_MAX_REASON_CHARS]}" for id_, why in missing.items() if id_ not in starting]
        if lines:
            parts.append("Not available at the moment:\n" + "\n".join(lines))
        shown = [id_ for id_ in starting if id_ in self._connections.servers and id_ in catalog.servers]
        if shown:
            parts.append(f"Still starting: {', '.join(shown)}. The resource {status.URI} has their instructions.")
        return "\n\n".join(parts)


def _require_no_cursor(request: Request) -> None:
    cursor = None if request.params is None else messages.members(request.params).get("cursor")
    if cursor is not None and bytes(cursor) != b"null":
        raise GatewayFailure(Kind.INVALID_PARAMS, "That cursor is not one this server gave; list from the start.")
