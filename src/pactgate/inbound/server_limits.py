"""Limits of the HTTP server: sizes, numbers and times, for one client and for all of them together. Must not: enforce them."""

from __future__ import annotations

import resource
from typing import Final

from msgspec import Struct, field

MIB: Final = 1024 * 1024

_MOST_CONNECTIONS: Final = 4096
_FEWEST_CONNECTIONS: Final = 16
_RESERVED_DESCRIPTORS: Final = 128


def max_connections() -> int:
    """The number the descriptor limit allows beside upstreams and files. At that limit itself, accepting would spin."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(_FEWEST_CONNECTIONS, min(_MOST_CONNECTIONS, soft - _RESERVED_DESCRIPTORS))


class ServerLimits(Struct, frozen=True):
    """Sizes and times of `HttpServer`."""

    max_connections: int = field(default_factory=max_connections)
    max_connections_per_address: int = 1024
    """At most three quarters of `max_connections`, whatever is set."""
    max_request_bytes: int = 10 * MIB
    max_head_bytes: int = 32 * 1024
    max_headers: int = 100
    max_target_bytes: int = 8 * 1024
    max_held_bytes: int = 256 * MIB
    """Sum over all clients of the bytes read and not yet answered, and of answers a client is slow to take."""
    max_unsent_bytes: int = 4 * MIB
    """Bytes of one stream that the client has not taken yet."""
    head_timeout_s: float = 10.0
    body_timeout_s: float = 10.0
    """Time for a body, or for its next `body_progress_bytes`. What came faster before earns no more time."""
    body_progress_bytes: int = 160 * 1024
    idle_timeout_s: float = 60.0
    crowded_idle_timeout_s: float = 5.0
    """The same while more than three quarters of all connections are open."""
    write_timeout_s: float = 30.0
    linger_s: float = 2.0
    stream_keepalive_s: float = 15.0
    sweep_s: float = 1.0
