"""Credentials of single endpoints of a REST API: what is added to their requests, by the operator and never by the caller.

Must not: show a value, or be part of anything that is compared, logged or listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple
from urllib.parse import quote


class Credential(NamedTuple):
    """One thing that is sent with every request of an endpoint."""

    place: Literal["header", "query", "cookie"]
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Credential(place={self.place!r}, name={self.name!r})"


def headers_of(credentials: Iterable[Credential]) -> dict[str, str]:
    """The headers they make, all cookies in one."""
    found = {one.name: one.value for one in credentials if one.place == "header"}
    cookies = "; ".join(f"{one.name}={one.value}" for one in credentials if one.place == "cookie")
    return {**found, "Cookie": cookies} if cookies else found


def query_of(credentials: Iterable[Credential]) -> str:
    """What they add to the query, encoded."""
    return "&".join(
        f"{quote(one.name, safe='')}={quote(one.value, safe='')}" for one in credentials if one.place == "query"
    )


def with_query(path: str, query: str) -> str:
    """A path, which may have a query already, with more of it."""
    return f"{path}{'&' if '?' in path else '?'}{query}" if query else path
