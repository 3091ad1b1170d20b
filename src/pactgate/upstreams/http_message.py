"""What stands at the head of an HTTP/1.1 request: where it goes, and header lines that can't inject.

Pure: no sockets, no clocks. Must not: show a path, a query or a header value in a message; credentials live there.
Enforces T8 (no header injection towards upstreams).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urljoin, urlsplit

from pactgate.core.failures import GatewayFailure, Kind

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_UNPRINTABLE: Final = re.compile(r"[^\x21-\x7e]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class UnsafeHeaderError(ValueError):
    """A header that can't be written without changing what the request means. Says the name, never the value."""


def header_line(name: str, value: str) -> bytes:
    """One header line with its line end, or `UnsafeHeaderError`."""
    if not _TOKEN.fullmatch(name):
        raise UnsafeHeaderError(f"{name[:64]!r} is not a header name")
    if not _VALUE.fullmatch(value):
        raise UnsafeHeaderError(f"the value of {name} has characters that can't stand in a header")
    return f"{name}: {value}\r\n".encode("ascii")


def header_block(pairs: Iterable[tuple[str, str]]) -> bytes:
    return b"".join([header_line(name, value) for name, value in pairs])


def media_type(content_type: bytes) -> bytes:
    return content_type.split(b";", 1)[0].strip().lower()


class Target:
    """Where the requests of one channel go. Pools are shared by `key`; `is_closed` stops requests that have not left."""

    __slots__ = ("host", "is_closed", "is_tls", "key", "origin", "port", "server", "tail", "url")

    def __init__(self, server: str, url: str) -> None:
        scheme, host, port, path = _split(server, url)
        self.server = server
        self.url = url
        self.host = host
        self.port = port
        self.is_tls = scheme == "https"
        self.key = (scheme, host, port)
        self.is_closed = False
        authority = f"[{host}]" if ":" in host else host
        if port != _DEFAULT_PORTS[scheme]:
            authority = f"{authority}:{port}"
        self.origin = f"{scheme}://{authority}"
        self.tail = f" {path} HTTP/1.1\r\nHost: {authority}\r\nAccept-Encoding: identity\r\n".encode("ascii")

    def __str__(self) -> str:
        return f"{self.server} ({self.origin})"

    def resolve(self, reference: str) -> Target | None:
        """Another place on the same origin, or None when the reference leads elsewhere or nowhere."""
        if _UNPRINTABLE.search(reference):
            return None
        try:
            target = Target(self.server, urljoin(self.url, reference))
        except (GatewayFailure, ValueError):
            return None
        return target if target.key == self.key else None


def _split(server: str, url: str) -> tuple[str, str, int, str]:
    if _UNPRINTABLE.search(url):
        raise _unusable(server, "it has blanks, control or non-ASCII characters; percent-encode them")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise _unusable(server, str(problem)) from problem
    if parts.scheme not in _DEFAULT_PORTS:
        raise _unusable(server, "it must begin with http:// or https://")
    if "@" in parts.netloc:
        raise _unusable(server, "it must not carry a user name or password; put credentials in `headers`")
    if not parts.hostname:
        raise _unusable(server, "it has no host")
    path = parts.path or "/"
    return (
        parts.scheme,
        parts.hostname,
        port or _DEFAULT_PORTS[parts.scheme],
        f"{path}?{parts.query}" if parts.query else path,
    )


def _unusable(server: str, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_CONFIG, f"The url of {server} can't be used: {why}.", server=server, details={"permanent": True}
    )
