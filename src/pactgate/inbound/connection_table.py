"""The open connections of an HTTP server: how many there may be, in all and from one address.

When a limit is reached, connections without a request under way make room for new ones: first those that are ending, then those of which
no principal is known, then idle ones of the principal with the most; the oldest first. A few connections of each principal are spared. A
client that sends a request with a valid token therefore gets a connection, however many others an attacker keeps open. Where nothing makes
room, a few connections beyond the limit are guests: each may serve one request, if its principal has no more than its fair share of the
connections at work.
Must not: end a connection with a request under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from typing import Final

from pactgate.core.events import ConnectionsClosed, Emit
from pactgate.core.fair_share import is_fair, uncontended
from pactgate.inbound.connection import IDLE, InboundConnection
from pactgate.inbound.server_limits import ServerLimits

_MAX_GUESTS: Final = 64
_GUEST_PART: Final = 16
_OWN_FEW_PART: Final = 16
"""Idle connections of a principal make room only if it has more than a 16th of a limit."""
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

    def enter(self, connection: InboundConnection) -> None:
        """Take a connection in, as a guest where a limit is reached; where there are too many guests, end it at once."""
        address = connection.address
        neighbours = self._by_address.get(address, set())
        for group, limit in ((neighbours, self._max_per_address), (self._all, self._max)):
            if len(group) >= limit:
                self._make_room(group, limit, address)
            if len(group) >= limit + _guests(limit):
                connection.abort()
                return
        self._all.add(connection)
        self._by_address.setdefault(address, neighbours).add(connection)
        connection.is_guest = len(neighbours) > self._max_per_address or len(self._all) > self._max

    def may_serve(self, guest: InboundConnection, subject: str) -> bool:
        """Whether a principal has a fair share of the connections at work, so that one more may be."""
        neighbours = self._by_address.get(guest.address, set())
        for group, limit in ((neighbours, self._max_per_address), (self._all, self._max)):
            at_work = [each.subject for each in group if each.spare_rank() is None and each is not guest]
            if not is_fair(at_work.count(subject), limit + _guests(limit) - len(at_work)):
                return False
        return True

    def leave(self, connection: InboundConnection) -> None:
        self._all.discard(connection)
        neighbours = self._by_address.get(connection.address)
        if neighbours is not None:
            neighbours.discard(connection)
            if not neighbours:
                del self._by_address[connection.address]

    def _make_room(self, group: set[InboundConnection], limit: int, address: str) -> None:
        counts = Counter(each.subject for each in group)
        counts[None] = 0  # what is known of these is their age
        own_few = limit // _OWN_FEW_PART
        ranked = [
            (rank, -counts[each.subject], each.deadline, id(each), each)
            for each in group
            if (rank := each.spare_rank()) is not None and (rank < IDLE or counts[each.subject] > own_few)
        ]
        count = max(1, min(limit // _ROOM_PART, len(ranked) // 2))  # the younger half may be about to send something
        ended = [each for *_, each in nsmallest(count, ranked)]
        for each in ended:
            self.leave(each)
            each.abort()
        if ended:
            self._emit(ConnectionsClosed(address=address, count=len(ended)))


def _guests(limit: int) -> int:
    return max(1, min(_MAX_GUESTS, limit // _GUEST_PART))
