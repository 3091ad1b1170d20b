"""A snapshot of everything that clients can call: indexes of tools, prompts, resources and templates, and the encoded lists.

A catalog does not change: every change makes a new one. Each list is encoded once and cached, so that a list request costs only sending.
The `_meta` of a list names the servers that are missing from it (D14).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from pactgate.catalog.discovery import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    DiscoveredEntry,
    DiscoveredLists,
    DiscoveredTool,
    ListMethod,
)
from pactgate.catalog.index import PROMPT_KIND, SEPARATORS, TOOL_KIND, NameIndex, PromptIndex, ToolIndex, exposed_name
from pactgate.catalog.search_surface import SearchSurface, is_search_tool
from pactgate.catalog.tool_groups import ToolGroups
from pactgate.catalog.uris import ResourceTarget, UriIndex, full_uri, resolve_uri, unlisted
from pactgate.catalog.views import BoundTool
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.contract import Contract
from pactgate.core.values import Entry, Prompt, Resource, Tool, Traits
from pactgate.policy.categories import HINTS, categorise
from pactgate.policy.permissions.caller_access import CallerAccess
from pactgate.policy.permissions.rules import Denied, Grant
from pactgate.protocol import messages, modern
from pactgate.protocol.cache_hints import STALE, Hint
from pactgate.protocol.downgrade import MODERN_SHAPE, fit_tool, list_shape, name_ui
from pactgate.protocol.messages import encode_json

MISSING_KEY: Final = "dev.pactgate/missing"
"""In the `_meta` of a list: the servers that are unavailable at the moment, each with the reason."""


MAX_MERGED_BYTES: Final = 8 * 1024 * 1024
"""The definitions of all servers in one list: a message of more is refused by clients, as by this gateway (`maxUpstreamFrameBytes`)."""
_METHODS: Final = (TOOLS.method, PROMPTS.method, RESOURCES.method, TEMPLATES.method)


class ServerCatalog(NamedTuple):
    """The tools, prompts and resources of one server, under the names that clients use."""

    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Resource, ...] = ()

    def size_of(self, method: str) -> int:
        """The bytes that this server adds to the list of all servers."""
        if method in (TOOLS.method, PROMPTS.method):
            named: tuple[Entry, ...] = self.tools if method == TOOLS.method else self.prompts
            return sum(len(entry.exposed_definition) for entry in named)
        return sum(
            len(item.full_definition) for item in (self.resources if method == RESOURCES.method else self.templates)
        )

    @property
    def size(self) -> int:
        return sum(map(len, self))

    def differing(self, other: ServerCatalog) -> set[str]:
        """Which lists differ, by the names in their `list_changed` notifications."""
        pairs = {
            "tools": (self.tools, other.tools),
            "prompts": (self.prompts, other.prompts),
            "resources": ((self.resources, self.templates), (other.resources, other.templates)),
        }
        return {kind for kind, (mine, others) in pairs.items() if mine != others}


class KnownNames(NamedTuple):
    """The names that a server offered when it last answered its lists. They stay its own while it is away."""

    tools: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    templates: frozenset[str] = frozenset()

    @classmethod
    def of(cls, found: DiscoveredLists) -> KnownNames:
        lists = (found.tools, found.prompts, found.resources, found.templates)
        return cls(*(frozenset(entry.key for entry in entries) for entries in lists))

    @classmethod
    def of_entries(cls, own: ServerCatalog) -> KnownNames:
        names = (frozenset(entry.name for entry in entries) for entries in (own.tools, own.prompts))
        uris = (frozenset(item.uri for item in items) for items in (own.resources, own.templates))
        return cls(*names, *uris)


def name_entries(
    server: str,
    found: DiscoveredLists,
    naming: str,
    categories: Mapping[str, str] | None = None,
    hints: Mapping[str, dict[str, Any]] | None = None,
) -> ServerCatalog:
    """The entries under the names that clients use. `hints` are those that count for the category of a tool, by its name."""
    separator, believed = SEPARATORS[naming], hints or {}
    return ServerCatalog(
        tools=tuple(
            _tool(server, tool, separator, categories or {}, believed.get(tool.key, tool.annotations))
            for tool in found.tools
        ),
        prompts=tuple(_prompt(server, prompt, separator) for prompt in found.prompts),
        resources=tuple(_resource(server, item, RESOURCES.key) for item in found.resources),
        templates=tuple(_resource(server, item, TEMPLATES.key) for item in found.templates),
    )


class Catalog:
    """`by_server` has every server that may be called, in the order of the configuration.

    `reserved` are the ids whose prefix belongs to a server, `known` are the names that each server was last known to offer.
    """

    def __init__(
        self,
        by_server: Mapping[str, ServerCatalog],
        *,
        server_info: bytes,
        missing: Mapping[str, str] | None = None,
        own_resources: tuple[bytes, ...] = (),
        reserved: Collection[str] = (),
        known: Mapping[str, KnownNames] | None = None,
        instructions: Mapping[str, str] | None = None,
        access: CallerAccess | None = None,
        bound: Mapping[str, BoundTool] | None = None,
        rank: Callable[[Any], Any] | None = None,
        pinned: Callable[[Tool], bool] | None = None,
        other_views: Mapping[str, Callable[[Tool], bool]] | None = None,
    ) -> None:
        self.bound = bound
        """In a view, what its names mean, by full name."""
        self.access = access
        """What its callers may use; None where everything in it may be used by everybody who sees it."""
        self.instructions = dict(instructions or {})
        """What each server tells models about itself."""
        last = known or {}
        self.tools: ToolIndex = NameIndex(
            {server: own.tools for server, own in by_server.items()},
            TOOL_KIND,
            reserved=reserved,
            known={server: names.tools for server, names in last.items()},
            rank=rank,
        )
        self.prompts: PromptIndex = NameIndex(
            {server: own.prompts for server, own in by_server.items()},
            PROMPT_KIND,
            reserved=reserved,
            known={server: names.prompts for server, names in last.items()},
            rank=rank,
        )
        self.resources = UriIndex(
            {server: own.resources for server, own in by_server.items()},
            {server: names.resources for server, names in last.items()},
        )
        self.templates = UriIndex(
            {server: own.templates for server, own in by_server.items()},
            {server: names.templates for server, names in last.items()},
        )
        self.servers = tuple(by_server)
        self.search: SearchSurface | None = None
        """On a search surface, what finds the tools; the list has the tools of the surface and the pinned ones."""
        self.groups: ToolGroups | None = None
        """In a view with groups, the tools that are in no list."""
        self._listed_tools: tuple[Tool, ...] | None = None
        if pinned is not None:
            shown = [tool for tool in self.tools.entries() if not is_search_tool(tool)]
            if other_views is None:
                self._listed_tools = (*by_server[OWN_SERVER_ID].tools, *filter(pinned, shown))
                self.search = SearchSurface(shown)
            else:
                self._listed_tools = tuple(filter(pinned, shown))
                rest = [tool for tool in shown if not pinned(tool)]
                views = ((name, [*filter(has_tool, rest)]) for name, has_tool in other_views.items())
                self.groups = ToolGroups(rest, self.instructions, views)
        self.reserved = frozenset(reserved)
        self.missing = dict(missing or {})
        self._server_info = server_info
        self._own_resources = own_resources
        self._lists: dict[tuple[str, str | None, str], bytes] = {}
        self.oversized = {method: _beyond_limit(by_server, method) for method in _METHODS}
        """The servers that the list of all servers leaves out, by method, because all together are too large."""

    def resolve_uri(self, uri: str, scope: str | None = None) -> ResourceTarget:
        """The server that a URI means, and the URI that this server uses. With `scope`, always that server."""
        if scope is not None:
            target = ResourceTarget(scope, uri)
        else:
            target = resolve_uri(uri, (self.resources, self.templates), self.servers, self.reserved)
        if self.access is not None and isinstance(self.access.of_uri(target.server, full_uri(*target)), Denied):
            raise unlisted(uri)
        return target

    def grant_of(self, tool: Tool) -> Grant | None:
        return None if self.access is None else self.access.tools.get(tool.full_name)

    def listing(self, method: str, scope: str | None, version: str, hint: Hint = STALE) -> bytes:
        """The encoded result of a list method. The time to live changes constantly, so a modern list is cached without it."""
        shape = list_shape(version)
        key = (method, scope, shape)
        made = self._lists.get(key)
        if made is None:
            made = self._lists[key] = self._encode(method, scope, shape)
        return made + hint.encode() if shape == MODERN_SHAPE else made

    def _encode(self, method: str, scope: str | None, shape: str) -> bytes:
        listing, definitions = self._definitions(method, scope)
        if listing is TOOLS:
            definitions = [fit_tool(definition, shape) for definition in definitions]
        result = {listing.member: Raw(b"[" + b",".join(definitions) + b"]")}
        missing = {server: why for server, why in self.missing.items() if scope in (None, server)}
        if scope is None:
            missing |= {server: oversize_reason(method) for server in self.oversized[method]}
        if missing:
            result["_meta"] = Raw(encode_json({MISSING_KEY: missing}))
        if shape == MODERN_SHAPE:
            result = modern.complete(result, self._server_info, cacheable=True)
            return encode_json(result).removesuffix(STALE.encode())
        return encode_json(result)

    def _definitions(self, method: str, scope: str | None) -> tuple[ListMethod, list[bytes]]:
        hidden = self.oversized[method] if scope is None else ()
        if method in (TOOLS.method, PROMPTS.method):
            listing, names = (TOOLS, self.tools) if method == TOOLS.method else (PROMPTS, self.prompts)
            entries: tuple[Entry, ...] = names.entries(scope)
            if listing is TOOLS and self._listed_tools is not None:
                entries = self._listed_tools
            shown = [entry for entry in entries if entry.server not in hidden]
            return listing, [entry.definition if scope else entry.exposed_definition for entry in shown]
        listing, index = (RESOURCES, self.resources) if method == RESOURCES.method else (TEMPLATES, self.templates)
        own = list(self._own_resources) if scope is None and listing is RESOURCES else []
        items = [item for item in index.entries(scope) if item.server not in hidden]
        return listing, own + [item.definition if scope else item.full_definition for item in items]

    def entries(self, kind: str, scope: str | None) -> tuple[object, ...]:
        """The entries of a kind of list, by the name that its `list_changed` notification has."""
        if kind == "resources":
            return *self.resources.entries(scope), *self.templates.entries(scope)
        if kind == "tools" and self._listed_tools is not None:
            return self._listed_tools
        return (self.tools if kind == "tools" else self.prompts).entries(scope)

    def listed_tools(self) -> tuple[Tool, ...]:
        """The tools in the list of all servers."""
        hidden = self.oversized[TOOLS.method]
        entries = self.tools.entries() if self._listed_tools is None else self._listed_tools
        return tuple(tool for tool in entries if tool.server not in hidden)


def oversize_reason(method: str) -> str:
    return f"missing in {method}: the lists of all servers together have more than {MAX_MERGED_BYTES} bytes"


def _beyond_limit(by_server: Mapping[str, ServerCatalog], method: str) -> tuple[str, ...]:
    """The servers to leave out so that the rest fits: the largest and the last first, so that a server with an ordinary list stays."""
    sizes = {server: own.size_of(method) for server, own in by_server.items()}
    total, hidden = sum(sizes.values()), []
    last_first = [*sizes][::-1]
    for server in sorted(last_first, key=lambda id_: -sizes[id_]):
        if total <= MAX_MERGED_BYTES:
            break
        hidden.append(server)
        total -= sizes[server]
    return tuple(hidden)


def traits_of(
    full_name: str, hints: Mapping[str, Any], categories: Mapping[str, str], contract: Contract | None
) -> Traits:
    """What kind of tool it is, by the hints that count."""
    kind = categorise(full_name, hints, categories, contract)
    return Traits(
        category=kind.category.value,
        reason=kind.reason,
        rate_class=kind.rate_class.value,
        is_known=kind.is_known,
        is_hinted=kind.is_hinted,
        is_read_only=kind.is_read_only,
        is_idempotent=kind.is_idempotent,
    )


def _tool(
    server: str, found: DiscoveredTool, separator: str, categories: Mapping[str, str], hints: Mapping[str, Any]
) -> Tool:
    exposed = exposed_name(server, found.key, separator)
    full_name = f"{server}.{found.key}"
    traits = traits_of(full_name, hints, categories, found.contract)
    if any(hints.get(hint) != found.annotations.get(hint) for hint in HINTS):
        traits = replace(traits, reason=f"{traits.reason}; looser hints came later and are not believed")
    return Tool(
        server=server,
        name=found.key,
        full_name=full_name,
        exposed_name=exposed,
        definition=found.definition,
        exposed_definition=name_ui(_renamed(found, "name", exposed), lambda uri: full_uri(server, uri)),
        digest=found.digest,
        header_params=found.header_params,
        input_check=found.input_check,
        output_check=found.output_check,
        traits=traits,
        contract=found.contract,
    )


def _prompt(server: str, found: DiscoveredEntry, separator: str) -> Prompt:
    exposed = exposed_name(server, found.key, separator)
    return Prompt(
        server=server,
        name=found.key,
        full_name=f"{server}.{found.key}",
        exposed_name=exposed,
        definition=found.definition,
        exposed_definition=_renamed(found, "name", exposed),
        digest=found.digest,
    )


def _resource(server: str, found: DiscoveredEntry, member: str) -> Resource:
    full = full_uri(server, found.key)
    return Resource(
        server=server,
        uri=found.key,
        full_uri=full,
        definition=found.definition,
        full_definition=_renamed(found, member, full),
        digest=found.digest,
    )


def _renamed(found: DiscoveredEntry, member: str, name: str) -> bytes:
    members = messages.members(found.definition)
    members[member] = Raw(encode_json(name))
    return encode_json(members)
