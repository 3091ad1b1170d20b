"""The sockets callers reach us on, bound before anybody serves them, so that several processes can accept from each."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.http_server import BACKLOG, why_not_bound


def bind(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of the host, listening. Raises INVALID_CONFIG with what to do about it."""
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, number, _, address in dict.fromkeys(found):
            bound.append(_listen(socket.socket(family, kind, number), address))
    except OSError as problem:
        close(bound)
        raise GatewayFailure(Kind.INVALID_CONFIG, why_not_bound(problem, host, port)) from None
    return bound


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def close(sockets: Iterable[socket.socket]) -> None:
    for one in sockets:
        one.close()


def can_share() -> bool:
    """Whether this system can pass connections between processes as we do."""
    return sys.platform == "linux" and hasattr(os, "memfd_create") and hasattr(socket, "MSG_CMSG_CLOEXEC")


def _listen(one: socket.socket, address: object) -> socket.socket:
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one.family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)  # type: ignore[arg-type]  # as getaddrinfo spells it
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one
