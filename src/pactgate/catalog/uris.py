"""Resource URIs: a namespace per server, without collisions and without loss.

`full_uri = serverId + "+" + uri` is itself a URI (`files+file:///a`), because a server id is a valid start of a scheme and contains no `+`.
So every full URI, listed or not, names exactly one server and contains the original URI.
Enforces S0/ECO-003 for resources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from pactgate.catalog.index import holders_of
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Resource

MARK: Final = "+"
OWN_SCHEME: Final = "pactgate://"
"""The scheme of the gateway's own resources."""


class ResourceTarget(NamedTuple):
    """The server of a resource, and the URI that the server uses."""

    server: str
    uri: str


def full_uri(server: str, uri: str) -> str:
    return f"{server}{MARK}{uri}"


class UriIndex:
    """The index of resources, or of templates, by server and URI. `known` has the URIs that each server was last known to list."""

    def __init__(
        self, listed: Mapping[str, tuple[Resource, ...]], known: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self._all = tuple(resource for own in listed.values() for resource in own)
        live = {server: [resource.uri for resource in own] for server, own in listed.items()}
        self._holders = holders_of(live, known or {})

    def entries(self, scope: str | None = None) -> tuple[Resource, ...]:
        return tuple(resource for resource in self._all if scope in (None, resource.server))

    def holders(self, uri: str) -> tuple[str, ...]:
        """The servers that list this URI, now or as last known."""
        return self._holders.get(uri, ())


def resolve_uri(
    uri: str, indexes: Iterable[UriIndex], servers: Collection[str], reserved: Collection[str]
) -> ResourceTarget:
    """The target of a URI: the server that it names, or the only one that lists it, as a resource or as a template.

    A prefix in `reserved` that is none of `servers` means nobody: it never falls back to a server that lists such a URI of its own.
    """
    server, found, own = uri.partition(MARK)
    if found and server in servers:
        return ResourceTarget(server, own)
    holders = tuple(dict.fromkeys(holder for index in indexes for holder in index.holders(uri)))
    if not holders or (found and server in reserved):
        raise unlisted(uri)
    if len(holders) > 1:
        raise _ambiguous(uri, holders)
    return ResourceTarget(holders[0], uri)


def unlisted(uri: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.UNKNOWN_RESOURCE,
        f"No server lists {uri[:200]!r}. resources/list shows what there is; a server's own URI is reached as serverId{MARK}URI.",
        details={"uri": uri},
    )


def _ambiguous(uri: str, holders: tuple[str, ...]) -> GatewayFailure:
    names = [full_uri(server, uri) for server in holders]
    return GatewayFailure(
        Kind.AMBIGUOUS_RESOURCE,
        f"{uri!r} is listed by several servers; say which one: {', '.join(names)}.",
        details={"uri": uri, "candidates": names},
    )
