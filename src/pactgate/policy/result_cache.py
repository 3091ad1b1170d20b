"""Results from a cache, and one upstream call for all who ask for the same at the same time.

Whoever finds nothing kept and nobody under way gets a `Lease`: it makes the call and says how that went. Others who ask meanwhile wait:
- `keep`: the result may be given again. It is stored, and everybody who waits gets it.
- `decline`: it may not (a failure, an error of the tool, a cut or unfinished result). Everybody who waits goes on alone: nobody is
  given an outcome that was not meant for others, and nobody waits behind a second failure.
- `hand_over`: the leader went away, cancelled or out of time, which says nothing about the upstream. One follower takes over, the last to
  come because it has the most time left; the rest go on waiting. Their own deadlines cancel them like any other wait.

Whatever the store raises is a counted miss. After a failed drop nothing of that server is read until a drop has succeeded.
One event loop. Must not: be the reason a call fails. Enforces S1/CACHE-005 (stampede), S1/XC-002 and decision D11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from pactgate.policy.cache_policy import Keys
from pactgate.state.ports import MISS, CacheStore, Lookup


class RecallStatistics(Struct, frozen=True):
    """Since the start: answers from the store, calls that had to be made, answers shared with those who waited, failures of the store."""

    hits: int
    misses: int
    shared: int
    faults: int


class _Flight:
    """One call under way and who waits for it, in the order of arrival."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[asyncio.Future[Lookup | Lease], None] = {}

    def tell_all(self, found: Lookup) -> int:
        """Give everybody who still waits the answer, and say how many that were."""
        waiting = [place for place in self.waiting if not place.done()]
        for place in waiting:
            place.set_result(found)
        return len(waiting)


class Lease:
    """The duty to make one call and to say how it went. The first word counts; later ones change nothing."""

    __slots__ = ("_flight", "_keys", "_recall", "_server", "generation")

    def __init__(self, recall: Recall, flight: _Flight, keys: Keys, server: str, generation: int) -> None:
        self._recall = recall
        self._flight: _Flight | None = flight
        self._keys = keys
        self._server = server
        self.generation = generation
        """How often the server's entries had been dropped when the call began."""

    def keep(self, value: bytes, *, ttl_ms: int, mark: bytes = b"", is_public: bool = False) -> None:
        """The result may be given again. It is stored unless the server's entries were dropped since the call began."""
        flight = self.end()
        if flight is None:
            return
        key = self._keys.shared if is_public and self._keys.shared is not None else self._keys.own
        self._recall.store_result(self, self._server, key, value, ttl_ms, mark)
        self._recall.shared += flight.tell_all(Lookup(True, value, mark, 0, ttl_ms or None))

    def decline(self) -> None:
        """The outcome concerns nobody else: everybody who waits calls for itself."""
        flight = self.end()
        if flight is None:
            return
        for place in flight.waiting:
            if not place.done():
                place.set_result(self._recall.lease(_Flight(), self._keys, self._server))

    def hand_over(self) -> None:
        """There is no outcome: one of those who wait makes the call instead."""
        flight, self._flight = self._flight, None
        if flight is None:
            return
        for place in reversed(flight.waiting):
            if not place.done():
                place.set_result(self._recall.lease(flight, self._keys, self._server))
                return
        self._recall.land(flight, self._keys, self._server)

    def end(self) -> _Flight | None:
        """Take the flight out of sight of those who have yet to ask. None: this lease has ended before."""
        flight, self._flight = self._flight, None
        if flight is not None:
            self._recall.land(flight, self._keys, self._server)
        return flight


class Recall:
    """Asks the store, and lets equal concurrent misses share one call."""

    def __init__(self, store: CacheStore, on_fault: Callable[[str, str], None] | None = None) -> None:
        """`on_fault` is told the operation and the reason each time the store fails."""
        self._store = store
        self._on_fault = on_fault
        self._faults = 0
        self._undropped: set[str] = set()
        self._flights: dict[str, dict[bytes, _Flight]] = {}
        """Calls under way, by server and key: never more than the gateway has calls open."""
        self._generations: dict[str, int] = {}
        self._hits = self._misses = 0
        self.shared = 0

    def ask(self, keys: Keys, server: str) -> Lookup | Lease | Awaitable[Lookup | Lease]:
        """The kept result, or a lease to make the call; or something to wait for, at once, that becomes one of the two."""
        flights = self._flights.get(server)
        flight = flights.get(keys.own) if flights else None
        if flight is not None:
            place: asyncio.Future[Lookup | Lease] = asyncio.get_running_loop().create_future()
            flight.waiting[place] = None
            return self._follow(flight, place)
        found = self._look(keys, server)
        if found.hit:
            self._hits += 1
            return found
        self._misses += 1
        flight = self._flights.setdefault(server, {})[keys.own] = _Flight()
        return self.lease(flight, keys, server)

    def kept(self, keys: Keys, server: str) -> Lookup | None:
        """The kept result, if there is one and nobody has to be waited for. Counts as nothing: see `count_hit`."""
        found = self._look(keys, server)
        return found if found.hit else None

    def count_hit(self) -> None:
        """What `kept` gave was used."""
        self._hits += 1

    def drop_server(self, server: str, *, by: Lease | None = None) -> None:
        """Nothing known of a server counts any more: it was written to, or what it offers has changed.

        Calls under way are not stored when they end, and nobody who asks from now on waits for them. `by` is the lease of the
        call that wrote: its own result is newer than the drop.
        """
        before = self._generations.get(server, 0)
        self._generations[server] = before + 1
        self._flights.pop(server, None)
        if by is not None and by.generation == before:
            by.generation = before + 1
        self._drop(server)

    def statistics(self) -> RecallStatistics:
        return RecallStatistics(self._hits, self._misses, self.shared, self._faults)

    # For leases.

    def lease(self, flight: _Flight, keys: Keys, server: str) -> Lease:
        return Lease(self, flight, keys, server, self._generations.get(server, 0))

    def land(self, flight: _Flight, keys: Keys, server: str) -> None:
        flights = self._flights.get(server)
        if flights is not None and flights.get(keys.own) is flight:
            del flights[keys.own]
            if not flights:
                del self._flights[server]

    def store_result(self, lease: Lease, server: str, key: bytes, value: bytes, ttl_ms: int, mark: bytes) -> None:
        if lease.generation == self._generations.get(server, 0):
            try:
                self._store.put(key, value, ttl_ms=ttl_ms, tag=server, mark=mark)
            except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
                self._failed("put", fault)

    # Looking and waiting.

    def _look(self, keys: Keys, server: str) -> Lookup:
        if server in self._undropped and not self._drop(server):
            return MISS
        try:
            found = self._store.get(keys.own)
            return found if found.hit or keys.shared is None else self._store.get(keys.shared)
        except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
            self._failed("get", fault)
            return MISS

    def _drop(self, server: str) -> bool:
        self._undropped.add(server)
        try:
            self._store.drop(server)
        except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
            self._failed("drop", fault)
            return False
        self._undropped.discard(server)
        return True

    def _failed(self, operation: str, fault: Exception) -> None:
        self._faults += 1
        if self._on_fault is not None:
            self._on_fault(operation, repr(fault))

    async def _follow(self, flight: _Flight, place: asyncio.Future[Lookup | Lease]) -> Lookup | Lease:
        try:
            answer = await place
        except asyncio.CancelledError:
            chosen = None if place.cancelled() else place.result()
            if isinstance(chosen, Lease):
                # Chosen to lead in the very moment of being cancelled: the next one leads.
                chosen.hand_over()
            raise
        finally:
            flight.waiting.pop(place, None)
        if isinstance(answer, Lease):
            self._misses += 1
        return answer
