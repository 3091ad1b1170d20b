"""Credentials the operator gave for single endpoints of a REST API, as headers, query and cookies.

Must not: show a value, or be part of anything that is compared, logged or listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple
from urllib.parse import quote


class Credential(NamedTuple):
    """One credential that is sent with every request of an endpoint."""

    place: Literal["header", "query", "cookie"]
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Credential(place={self.place!r}, name={self.name!r})"


def headers_of(credentials: Iterable[Credential]) -> dict[str, str]:
    """The headers of the credentials, all cookies in one."""
    found = {one.name: one.value for one in credentials if one.place == "header"}
    cookies = "; ".join(f"{one.name}={one.value}" for one in credentials if one.place == "cookie")
    return {**found, "Cookie": cookies} if cookies else found


class OperatorNames(NamedTuple):
    """The headers and query keys the operator sets, in one spelling each. No caller may send them as well."""

    headers: frozenset[str] = frozenset()
    query: frozenset[str] = frozenset()

    def has(self, place: str | None, name: str) -> bool:
        if place == "header":
            return name.casefold() in self.headers
        return place == "query" and query_key(name) in self.query


NONE_GIVEN: Final = OperatorNames()


def operator_names(headers: Iterable[str], credentials: Iterable[Credential]) -> OperatorNames:
    names = {*headers, *headers_of(credentials)}
    query = {query_key(one.name) for one in credentials if one.place == "query"}
    return OperatorNames(frozenset(name.casefold() for name in names), frozenset(query))


def query_key(name: str) -> str:
    """One spelling for the names a server may take for the same key: many fold case, and read `key[]` and `key[x]` into `key`."""
    return name.strip().partition("[")[0].casefold()


def query_of(credentials: Iterable[Credential]) -> str:
    """The query of the credentials, encoded."""
    return "&".join(
        f"{quote(one.name, safe='')}={quote(one.value, safe='')}" for one in credentials if one.place == "query"
    )


def with_query(path: str, query: str) -> str:
    """The path with this query added to the one it may have."""
    return f"{path}{'&' if '?' in path else '?'}{query}" if query else path
