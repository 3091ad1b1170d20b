"""The head of a POST to an MCP path: read and checked once for all requests of a connection that carry the same head.

Must not: look at a body, or refuse anything by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from pactgate.core.principal import Principal
from pactgate.core.values import split_path
from pactgate.protocol.versions import LEGACY_VERSIONS

Headers = Mapping[str, list[str]]

_MAX_TYPE_CHARS: Final = 1024
_JSON_TYPE: Final = re.compile(r'application/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?', re.IGNORECASE)
_REFUSED: Final = re.compile(r"[ \t]*q=0(?:\.0*)?[ \t]*")
_JSON_RANGES: Final = frozenset({"application/json", "application/*", "*/*"})
_STREAM_RANGES: Final = frozenset({"text/event-stream", "text/*", "*/*"})
_LEGACY: Final = frozenset(LEGACY_VERSIONS)


class Accepts(Struct, frozen=True):
    """What a client takes as an answer."""

    json: bool
    stream: bool


class McpRequestHead(Struct, frozen=True):
    """Whose request it is, where it goes, and how its answer may look."""

    generation: int
    """Which guard admitted it: after a reload or the end of a token, the head is checked again."""
    principal: Principal
    peer: str
    """The address of the client."""
    path: str | None
    """What comes after `/mcp/`; None at `/mcp` itself."""
    scope: str | None
    view: str | None
    accepts: Accepts
    has_session: bool
    session_id: str | None
    """The session it names, where it names one in good order."""
    names_modern: bool
    """Its version is no legacy one; whether it is a modern one is for the modern handler to say."""
    trace_parent: str
    """The W3C trace context of the HTTP request, where it has one."""
    extra_head: bytes
    """Header lines every answer to it carries."""
    resource_metadata: bytes = b""
    """Where a client learns how to get a token with more scopes: a parameter of a challenge."""


def read_mcp_head(
    headers: Headers,
    *,
    generation: int,
    principal: Principal,
    peer: str,
    path: str | None,
    accepts: Accepts,
    extra_head: bytes,
    resource_metadata: bytes = b"",
) -> McpRequestHead:
    scope, view = split_path(path)
    return McpRequestHead(
        generation=generation,
        principal=principal,
        peer=peer,
        path=path,
        scope=scope,
        view=view,
        accepts=accepts,
        has_session="mcp-session-id" in headers,
        session_id=_named_session(headers),
        names_modern=not _LEGACY.issuperset(headers.get("mcp-protocol-version", ())),
        trace_parent=",".join(headers.get("traceparent", ())),
        extra_head=extra_head,
        resource_metadata=resource_metadata,
    )


def has_json(headers: Headers) -> bool:
    """Whether the body is said to be JSON, in the one encoding JSON has."""
    types = headers.get("content-type", [])
    return len(types) == 1 and len(types[0]) <= _MAX_TYPE_CHARS and _is_json_type(types[0])


def read_accept(headers: Headers, *, otherwise: Accepts) -> Accepts:
    values = headers.get("accept")
    if values is None:
        return otherwise
    text = values[0] if len(values) == 1 else ",".join(values)
    return _known_accept(text) if len(text) <= _MAX_TYPE_CHARS else Accepts(json=False, stream=False)


def _named_session(headers: Headers) -> str | None:
    """The session a head names, if it names one, and a revision that has sessions or none."""
    ids, spoken = headers.get("mcp-session-id", []), headers.get("mcp-protocol-version", [])
    return ids[0] if len(ids) == 1 and len(spoken) <= 1 and _LEGACY.issuperset(spoken) else None


@lru_cache(maxsize=64)
def _is_json_type(text: str) -> bool:
    return _JSON_TYPE.fullmatch(text) is not None


@lru_cache(maxsize=64)
def _known_accept(text: str) -> Accepts:
    ranges: set[str] = set()
    for entry in text.lower().split(","):
        name, _, parameters = entry.partition(";")
        if not any(_REFUSED.fullmatch(parameter) for parameter in parameters.split(";")):
            ranges.add(name.strip())
    return Accepts(json=not ranges.isdisjoint(_JSON_RANGES), stream=not ranges.isdisjoint(_STREAM_RANGES))
