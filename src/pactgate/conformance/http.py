"""Reads the HTTP part of a recorded exchange: headers and media types. Must not: check anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pactgate.capture.format import RecordedExchange

SESSION_HEADER: Final = "mcp-session-id"
JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream"
ACCEPTED: Final = 202
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404


def header(headers: Mapping[str, list[str]], name: str) -> str | None:
    """The value of a header. Several values are joined."""
    values = headers.get(name)
    return ", ".join(values) if values else None


def media_type(headers: Mapping[str, list[str]]) -> str | None:
    value = header(headers, "content-type")
    return None if value is None else value.partition(";")[0].strip().lower()


def accepts(headers: Mapping[str, list[str]], kind: str) -> bool:
    """Whether an Accept header covers a media type, wildcards included."""
    family = kind.partition("/")[0]
    ranges = [part.partition(";")[0].strip().lower() for part in (header(headers, "accept") or "").split(",")]
    return bool({kind, f"{family}/*", "*/*"}.intersection(ranges))


def is_success(status: int | None) -> bool:
    return status is not None and 200 <= status < 300


def has_legacy_session(exchange: RecordedExchange) -> bool:
    """Whether the exchange belongs to an existing session: every exchange but initialize does."""
    request = exchange.request
    return not (isinstance(request, dict) and request.get("method") == "initialize")
