"""Which addresses the gateway may call on behalf of somebody who is not the operator: public ones, over https.

A host the operator wrote is called as written. Any other (from a redirect, or a document) is looked up once, every address it has must
be a public one, and the connection goes to an address that was checked, so a name can't change its mind in between. All spellings of
an address meet the same check, because what is checked is the address and not its spelling. Must not: connect. Enforces T9.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.request_message import Target

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, each as text. Raises OSError or UnicodeError."""

_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_SITE_LOCAL: Final = IPv6Network("fec0::/10")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_MAX_ADDRESSES: Final = 64


async def look_up(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Egress:
    """Where one server's requests may go. `named` are the hosts the operator wrote for it."""

    def __init__(self, server: str, named: Iterable[str], *, connect_timeout_s: float | None = None) -> None:
        self._server = server
        self._named = frozenset(_folded(host) for host in named)
        self._connect_timeout_s = connect_timeout_s

    def target(self, url: str) -> Target:
        """Where this URL leads, or the failure that says why it may not be called."""
        host = host_of(url)
        if not url.startswith(("http://", "https://")):
            raise refused(self._server, "it is neither http nor https")
        is_named = self.names(url)
        if not is_named:
            self._require_public(host, url)
        return Target(self._server, url, is_guarded=not is_named, connect_timeout_s=self._connect_timeout_s)

    def names(self, url: str) -> bool:
        """Whether the operator wrote the host of this URL."""
        host = host_of(url)
        return host is not None and _folded(host) in self._named

    def _require_public(self, host: str | None, url: str) -> None:
        if host is None or not _HOST.fullmatch(host):
            raise refused(self._server, "it has no host that can be called")
        why = why_forbidden(host)
        if why is not None:
            raise refused(self._server, why)
        if not url.startswith("https://"):
            raise refused(self._server, "hosts the operator did not name are called over https only")


async def checked_addresses(target: Target, resolve: Resolve) -> tuple[str, ...]:
    """The addresses of a guarded target, all of them public. One that is not spoils the rest: it is how names are made to lie."""
    addresses = tuple(await resolve(target.host, target.port))[:_MAX_ADDRESSES]
    for address in addresses:
        if why_forbidden(address) is not None:
            raise refused(target.server, f"the name {target.host!r} leads to an address that is not public")
    return addresses


def why_forbidden(host: str) -> str | None:
    """Why a host may not be called, as far as its text says; None for public addresses, and for names, which are looked up later."""
    name = _folded(host)
    if name == "localhost" or name.endswith(".localhost"):
        return "it is this machine"
    address = address_of(name)
    if address is None or is_public(address):
        return None
    return "its address is not a public one"


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address a text spells, as the system's resolver would read it: dotted, short, decimal, octal or hexadecimal; None for a name."""
    text = host.strip("[]").partition("%")[0]
    if ":" in text:
        try:
            return ip_address(text)
        except ValueError:
            return None
    try:
        return IPv4Address(socket.inet_aton(text))
    except (OSError, UnicodeError):
        return None


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address belongs to the public internet, also those it carries inside of itself."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    inner = _carried(address)
    if inner is not None:
        return False  # a detour to an IPv4 address: whoever means it can write it
    return address in _GLOBAL_UNICAST and address.is_global and not address.is_multicast and address not in _SITE_LOCAL


def refused(server: str, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.DESTINATION_REFUSED,
        f"{server} may not call that host: {why}. If you mean it, name the host in `allowedHosts` of {server}.",
        server=server,
    )


def host_of(url: str) -> str | None:
    """The host a URL names; None where there is none, or where two readers could disagree about it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if "@" in parts.netloc or "\\" in url or any(character <= " " or character > "~" for character in url):
        return None
    return host or None


def _folded(host: str) -> str:
    """One spelling for one host: `API.example.` is `api.example`, and `[::1]` is `::1`."""
    return host.strip("[]").rstrip(".").casefold()


def _carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv6 address: mapped, compatible, 6to4, Teredo, NAT64 or ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    if (
        address in _COMPATIBLE
        or any(address in network for network in _NAT64)
        or (number >> 32) & 0xFFFFFFFF in _ISATAP
    ):
        return IPv4Address(number & 0xFFFFFFFF)
    return None
