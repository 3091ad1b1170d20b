"""The head of an HTTP/1.1 request: its target, and header lines that can't inject others.

Pure: no sockets, no clocks. Must not: show an address, a path, a query or a header value in a message, because clients read messages and
credentials are in them (also in `key`). Header injection towards servers is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urljoin, urlsplit

from msgspec.structs import astuple

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.proxy import DIRECT, NetworkSettings

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_UNPRINTABLE: Final = re.compile(r"[^\x21-\x7e]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class UnsafeHeaderError(ValueError):
    """A header that would change the meaning of the request. The message has its name, never its value."""


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


class HttpTarget:
    """Where the requests of one channel go, and how they get there. `is_closed` stops requests that have not left.

    Targets with the same `key` share connections: same origin, same proxy, same certificates. A guarded target is one the operator did not
    name: its connections go to addresses that were checked, without the server's own certificate, and share no pool with others.
    """

    __slots__ = (
        *("connect_timeout_s", "host", "is_closed", "is_guarded", "is_tls", "key", "network", "origin", "port"),
        *("proxy", "server", "tail", "tls", "url", "_after_path", "_before_path"),
    )

    def __init__(
        self,
        server: str,
        url: str,
        *,
        is_guarded: bool = False,
        connect_timeout_s: float | None = None,
        network: NetworkSettings = DIRECT,
    ) -> None:
        scheme, host, port, path = _split(server, url)
        self.is_guarded = is_guarded
        self.network = network
        self.server = server
        self.url = url
        self.host = host
        self.port = port
        self.is_tls = scheme == "https"
        self.proxy = network.proxy_for(server, scheme, host, port)
        self.connect_timeout_s = connect_timeout_s or (network.proxy_timeout_s if self.proxy else None)
        self.tls = network.tls if self.is_tls and not is_guarded else None
        self.is_closed = False
        # One string, because its hash is computed once; every request looks its pool up by it.
        self.key = repr(
            (scheme, host, port, is_guarded, self.proxy and astuple(self.proxy), self.tls and astuple(self.tls))
        )
        authority = f"[{host}]" if ":" in host else host
        if port != _DEFAULT_PORTS[scheme]:
            authority = f"{authority}:{port}"
        self.origin = f"{scheme}://{authority}"
        self._before_path = b" "
        self._after_path = f" HTTP/1.1\r\nHost: {authority}\r\nAccept-Encoding: identity\r\n".encode("ascii")
        if self.proxy is not None and not self.is_tls:  # a proxy is told the whole URL (RFC 9112, 3.2.2)
            self._before_path = f" {self.origin}".encode("ascii")
            self._after_path += self.proxy.authorization
        self.tail = self.tail_of(path)

    def __str__(self) -> str:
        """For messages, which clients read: the id of the server, never its address."""
        return self.server

    def tail_of(self, path: str) -> bytes:
        """The rest of the request line and the headers every request has, for an encoded path and query."""
        return b"%b%b%b" % (self._before_path, path.encode("ascii"), self._after_path)

    def resolve(self, reference: str) -> HttpTarget | None:
        """Another path on the same origin; None if the reference leads to another origin or is invalid."""
        if _UNPRINTABLE.search(reference):
            return None
        try:
            target = HttpTarget(self.server, urljoin(self.url, reference), network=self.network)
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
