"""IP addresses as the network reads them: every spelling of an address, and whether it belongs to the public internet. Pure."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_SITE_LOCAL: Final = IPv6Network("fec0::/10")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")


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
    if _embedded_ipv4(address) is not None:
        return False  # a detour to an IPv4 address, which can be written as one
    return address in _GLOBAL_UNICAST and address.is_global and not address.is_multicast and address not in _SITE_LOCAL


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
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
