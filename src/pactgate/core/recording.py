"""What a recorder is told of one connection. Handed to channels and faces as a value, or None, which costs nothing.

Must not: wait, raise, or keep a caller busy; whoever implements it takes note and returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Headers = bytes | Mapping[str, list[str]] | Mapping[bytes, bytes]
"""A block of encoded lines, or a mapping of lower-case names; whichever is at hand."""


class HttpExchangeRecorder(Protocol):
    """One HTTP request and what it brings: `answered`, or `streaming`, then `events`, then `ended`."""

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        """The whole answer."""

    def streaming(self, status: int, headers: Headers) -> None:
        """An event stream has begun."""

    def events(self, data: bytes) -> None:
        """A piece of the stream, as it passed."""

    def ended(self, *, by_client: bool) -> None:
        """Nothing more comes. Said after every stream, and when there was no answer at all."""


class ConnectionRecorder(Protocol):
    """One connection. On stdio everything is a message; on HTTP everything is a request."""

    def passed(self, text: bytes, *, from_client: bool) -> None:
        """One message, or what stood in its place."""

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        """A client's HTTP request."""

    def closed(self) -> None:
        """The connection has ended."""
