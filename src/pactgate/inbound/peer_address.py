"""The address a connection comes from: as it is, and as connections are counted by it. Must not: believe what a request says."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any, Final

LOCAL: Final = "unix"
"""Stands for the address of clients at the Unix socket."""
_IPV6_NETWORK_BITS: Final = 64
"""An IPv6 host chooses the rest of its address itself."""


def host_of(peername: Any) -> str:
    """The host of what a socket calls its peer; empty for sockets without addresses."""
    return str(peername[0]) if isinstance(peername, tuple) and peername else ""


def counted_address(host: str) -> str:
    """The part of an address that its holder can't choose: an IPv4 address, or the network of an IPv6 address."""
    if ":" not in host:
        return host
    address = ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or ip_network((address, _IPV6_NETWORK_BITS), strict=False).network_address)
