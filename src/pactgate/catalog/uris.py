"""Resource URIs: a namespace per server, without collisions and without loss.

`full_uri = serverId + "+" + uri` is itself a URI (`files+file:///a`), because a server id is a valid start of a scheme and contains no `+`.
So every full URI, listed or not, names exactly one server and contains the original URI.
Enforces S0/ECO-003 for resources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

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
    """The index of resources, or of templates, by server and URI."""

    def __init__(self, listed: Mapping[str, tuple[Resource, ...]]) -> None:
        self._all = tuple(resource for own in listed.values() for resource in own)
        self._servers: dict[str, list[str]] = {}
        for resource in self._all:
            self._servers.setdefault(resource.uri, []).append(resource.server)

    def entries(self, scope: str | None = None) -> tuple[Resource, ...]:
        return tuple(resource for resource in self._all if scope in (None, resource.server))

    def resolve(self, uri: str, servers: Collection[str], scope: str | None = None) -> ResourceTarget:
        """The target of a URI: the server that it names, or the only one that lists it."""
        if scope is not None:
            return ResourceTarget(scope, uri)
        server, found, own = uri.partition(MARK)
        if found and server in servers:
            return ResourceTarget(server, own)
        holders = self._servers.get(uri, [])
        if len(holders) == 1:
            return ResourceTarget(holders[0], uri)
        if holders:
            raise _ambiguous(uri, holders)
        raise GatewayFailure(
            Kind.UNKNOWN_RESOURCE,
            f"No server lists {uri[:200]!r}. resources/list shows what there is; a server's own URI is reached as "
            f"serverId{MARK}URI.",
            details={"uri": uri},
        )


def _ambiguous(uri: str, holders: list[str]) -> GatewayFailure:
    names = [full_uri(server, uri) for server in holders]
    return GatewayFailure(
        Kind.AMBIGUOUS_RESOURCE,
        f"{uri!r} is listed by several servers; say which one: {', '.join(names)}.",
        details={"uri": uri, "candidates": names},
    )
