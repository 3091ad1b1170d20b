"""The interface to a recorder of one connection. Channels and handlers get one as a value, or None, which costs nothing.

Must not: wait, raise, or keep the caller busy. An implementation takes note and returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Headers = bytes | Mapping[str, list[str]] | Mapping[bytes, bytes]
"""A block of encoded lines, or a mapping of lower-case names, whichever the caller has. In a mapping the value of `content-length` may
be that of another message: the length of the body counts."""


class HttpExchangeRecorder(Protocol):
    """Records one HTTP request: `answered`, or `streaming`, then `events`, then `ended`."""

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        """The whole response."""

    def streaming(self, status: int, headers: Headers) -> None:
        """An event stream has begun."""

    def events(self, data: bytes) -> None:
        """A part of the stream, as it passed."""

    def ended(self, *, by_client: bool) -> None:
        """Nothing more comes. Called after every stream, and when there was no response at all."""


class ConnectionRecorder(Protocol):
    """Records one connection. On stdio everything is a message; on HTTP everything is a request."""

    def passed(self, data: bytes, *, from_client: bool) -> None:
        """One message, or a line that is not a message."""

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> HttpExchangeRecorder:
        """A client's HTTP request."""

    def closed(self) -> None:
        """The connection has ended."""
