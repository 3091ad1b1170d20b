"""The open connections of an HTTP server: how many there may be, in all and from one address.

When a limit is reached, connections without a request under way make room for new ones: first those that are ending, then those of which
no request has been admitted, then idle ones; the oldest first. A client that sends a request with a valid token therefore gets a
connection, however many others an attacker keeps open. A new connection is refused only while all others are at work.
Must not: end a connection with a request under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Final

from pactgate.core.events import ConnectionsClosed, Emit
from pactgate.core.fair_share import uncontended
from pactgate.inbound.connection import InboundConnection
from pactgate.inbound.server_limits import ServerLimits

_REFUSED_AT_ONCE: Final = 64
_ROOM_PART: Final = 32
"""One search makes room for a 32nd of a limit, because it looks at all connections."""


class ConnectionTable:
    """`is_crowded` from three quarters of the limit on."""

    def __init__(self, limits: ServerLimits, emit: Emit) -> None:
        self._max = limits.max_connections
        self._crowd = uncontended(self._max)
        self._max_per_address = max(1, min(limits.max_connections_per_address, self._crowd))
        self._emit = emit
        self._all: set[InboundConnection] = set()
        self._by_address: dict[str, set[InboundConnection]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[InboundConnection]:
        return iter(tuple(self._all))

    @property
    def is_crowded(self) -> bool:
        return len(self._all) > self._crowd

    def enter(self, connection: InboundConnection) -> bool:
        """Whether there is room. A connection beyond a limit stays in the table until it has read why; far beyond, it is ended at once."""
        address = connection.address
        neighbours = self._by_address.get(address, set())
        for group, limit in ((neighbours, self._max_per_address), (self._all, self._max)):
            if len(group) >= limit:
                self._make_room(group, limit, address)
            if len(group) >= limit + _REFUSED_AT_ONCE:
                connection.abort()
                return True
        self._all.add(connection)
        self._by_address.setdefault(address, neighbours).add(connection)
        return len(neighbours) <= self._max_per_address and len(self._all) <= self._max

    def leave(self, connection: InboundConnection) -> None:
        self._all.discard(connection)
        neighbours = self._by_address.get(connection.address)
        if neighbours is not None:
            neighbours.discard(connection)
            if not neighbours:
                del self._by_address[connection.address]

    def _make_room(self, group: set[InboundConnection], limit: int, address: str) -> None:
        ranked = ((rank, each.deadline, id(each), each) for each in group if (rank := each.spare_rank()) is not None)
        ended = [each for *_, each in nsmallest(max(1, limit // _ROOM_PART), ranked)]
        for each in ended:
            self.leave(each)
            each.abort()
        if ended:
            self._emit(ConnectionsClosed(address=address, count=len(ended)))
