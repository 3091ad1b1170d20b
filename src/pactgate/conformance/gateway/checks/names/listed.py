"""The lists of tools in a recording. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import plain_value
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute


def names_in(recording: CheckRecording) -> Iterator[tuple[ClientRoute, list[str], int]]:
    """The names of each whole list, page after page, and where it ended."""
    pages: dict[str, list[str]] = {}
    for exchange in recording.exchanges("tools/list"):
        result = plain_value(exchange.response).get("result")
        members = result if isinstance(result, dict) else {}
        entries = members.get("tools")
        names = pages.setdefault(exchange.request.who, [])
        names += [str(entry.get("name")) for entry in entries or () if isinstance(entry, dict)]
        if not isinstance(members.get("nextCursor"), str):
            yield exchange.route, pages.pop(exchange.request.who), exchange.index
