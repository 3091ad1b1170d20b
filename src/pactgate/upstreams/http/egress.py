"""The SSRF rule: which addresses the gateway may call for somebody who is not the operator. Public ones, over https.

The operator wrote some URLs and hosts in the configuration; their origins (scheme, host and port) are called as written. Any other origin
comes from a redirect or a document, another port of a named host included: behind it may be another service, or the gateway itself. The
gateway looks such a name up once, requires every address of it to be public, and connects to an address that was checked, so the name can't
change its meaning in between. The check sees addresses, not spellings. Must not: connect.

A proxy does not weaken the rule. The proxy would look a name up again, in a network that may see more than the gateway does; so for a host
the operator did not write, the gateway looks up and checks the name itself and asks the proxy for the checked address (`connect.py`).
A name that only the proxy can look up is therefore refused until the operator names it in `allowedHosts`.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.addresses import address_of, is_public
from pactgate.upstreams.http.proxy import DIRECT, NetworkSettings
from pactgate.upstreams.http.request_message import HttpTarget

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, each as text. Raises OSError or UnicodeError."""

_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_HOST_AND_PORT: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_MAX_ADDRESSES: Final = 64
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host in one spelling, port."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class EgressPolicy:
    """Which origins one server's requests may go to. `named` are those the operator wrote in its configuration."""

    def __init__(
        self,
        server: str,
        named: Iterable[Origin],
        *,
        connect_timeout_s: float | None = None,
        network: NetworkSettings = DIRECT,
    ) -> None:
        self._server = server
        self._network = network
        self._named = frozenset(named)
        self._connect_timeout_s = connect_timeout_s

    def target(self, url: str) -> HttpTarget:
        """The target of this URL. Raises the failure that says why it may not be called."""
        host = host_of(url)
        if not url.startswith(("http://", "https://")):
            raise destination_refused(self._server, "it is neither http nor https")
        is_named = self.names(url)
        if not is_named:
            self._require_public(host, url)
        return HttpTarget(
            self._server,
            url,
            is_guarded=not is_named,
            connect_timeout_s=self._connect_timeout_s,
            network=self._network,
        )

    def names(self, url: str) -> bool:
        """Whether the operator named the origin of this URL."""
        return origin_of(url) in self._named

    def _require_public(self, host: str | None, url: str) -> None:
        if host is None or not _HOST.fullmatch(host):
            raise destination_refused(self._server, "it has no host that can be called")
        why = why_forbidden(host)
        if why is not None:
            raise destination_refused(self._server, why)
        if not url.startswith("https://"):
            raise destination_refused(self._server, "hosts the operator did not name are called over https only")


async def checked_addresses(target: HttpTarget, resolve: Resolve) -> tuple[str, ...]:
    """The addresses of a guarded target. All must be public: a name with one private address is a DNS rebinding attempt."""
    addresses = tuple(await resolve(target.host, target.port))[:_MAX_ADDRESSES]
    for address in addresses:
        if why_forbidden(address) is not None:
            raise destination_refused(target.server, f"the name {target.host!r} leads to an address that is not public")
    return addresses


def why_forbidden(host: str) -> str | None:
    """Why a host may not be called, judged by its text; None for public addresses, and for names, which are resolved later."""
    name = _folded(host)
    if name == "localhost" or name.endswith(".localhost"):
        return "it is this machine"
    address = address_of(name)
    if address is None or is_public(address):
        return None
    return "its address is not a public one"


def destination_refused(server: str, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.DESTINATION_REFUSED,
        f"{server} may not call that host: {why}. "
        f"If you mean it, name it in `allowedHosts` of {server}, as `host` or `host:port`.",
        server=server,
    )


def host_of(url: str) -> str | None:
    """The host of a URL; None if it has none, or if two parsers could disagree about it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if "@" in parts.netloc or "\\" in url or any(character <= " " or character > "~" for character in url):
        return None
    return host or None


def origin_of(url: str) -> Origin | None:
    """The origin of a URL, None where it has none."""
    host = host_of(url)
    parts = urlsplit(url) if host is not None else None
    if host is None or parts is None or parts.scheme not in _DEFAULT_PORTS:
        return None
    try:
        return parts.scheme, _folded(host), parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        return None


def named_origins(urls: Iterable[str | None], hosts: Iterable[str]) -> frozenset[Origin]:
    """The origins the operator wrote: those of `urls`, and of `allowedHosts` with the port that is written or the default ones."""
    found = {origin for url in urls if url and (origin := origin_of(url))}
    for written in hosts:
        name, _, port = written.rpartition(":") if _HOST_AND_PORT.fullmatch(written) else (written, "", "")
        found.update((scheme, _folded(name), int(port or default)) for scheme, default in _DEFAULT_PORTS.items())
    return frozenset(found)


def _folded(host: str) -> str:
    """One spelling for one host: `API.example.` is `api.example`, and `[::1]` is `::1`."""
    return host.strip("[]").rstrip(".").casefold()
