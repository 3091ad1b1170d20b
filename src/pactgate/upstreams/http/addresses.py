"""IP addresses as the network reads them: every spelling of an address, and whether it belongs to the public internet. Pure."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""Does not hold mapped, compatible and NAT64 addresses, site-local ones and multicast."""


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address a text spells, read as the system's resolver reads it: dotted, short, decimal, octal or hexadecimal. None for a name."""
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
    """Whether an address belongs to the public internet. An IPv6 address that carries an IPv4 address never does."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    is_isatap = (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
    if is_isatap or address.sixtofour is not None or address.teredo is not None:
        return False  # a detour to an IPv4 address, which can be written as one
    return address in _GLOBAL_UNICAST and address.is_global
