"""The address a client calls from: as it is, as connections are counted by it, and as a trusted proxy says it.

Must not: believe what a request says, unless it comes from a trusted proxy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

LOCAL: Final = "unix"
"""Stands for the address of clients at the Unix socket."""
_IPV6_NETWORK_BITS: Final = 64
"""An IPv6 host chooses the rest of its address itself."""
_FORWARDED_FOR: Final = "x-forwarded-for"
_MAX_PROXIES: Final = 16


def host_of(peername: Any) -> str:
    """The host of what a socket calls its peer; empty for sockets without addresses."""
    return str(peername[0]) if isinstance(peername, tuple) and peername else ""


def counted_address(host: str) -> str:
    """The part of an address that its holder can't choose: an IPv4 address, or the network of an IPv6 address."""
    if ":" not in host:
        return host
    address = _address_in(host)
    return str(
        address if isinstance(address, IPv4Address) else ip_network((address, _IPV6_NETWORK_BITS), strict=False)[0]
    )


class TrustedProxies:
    """The proxies whose `X-Forwarded-For` counts. Each of them adds the address it was called from at the end."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(map(ip_network, networks))

    def client_of(self, peer: str, headers: Mapping[str, list[str]]) -> str:
        """The last address that is no trusted proxy's. Those before it are what a client says of itself."""
        if not self._networks:
            return peer
        named = ",".join(headers.get(_FORWARDED_FOR, ())).rsplit(",", _MAX_PROXIES)[-_MAX_PROXIES:]
        while named and self._has(peer):
            try:
                peer = str(_address_in(named.pop().strip()))
            except ValueError:  # no address: the proxy that says this is the last one known
                break
        return peer

    def _has(self, peer: str) -> bool:
        return bool(peer) and any(_address_in(peer) in network for network in self._networks)


NO_PROXIES: Final = TrustedProxies(())


def _address_in(text: str) -> IPv4Address | IPv6Address:
    """The address in a text that may also have a port or a zone. Raises ValueError."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    address = ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
