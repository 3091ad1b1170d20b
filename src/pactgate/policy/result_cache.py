"""Results from a cache, and one upstream call for all who ask for the same at the same time.

Single-flight: a request that finds no cache hit and no equal call in flight gets a `LeaderTicket`; it makes the call and says how that
went. Equal requests that come meanwhile wait:
- `keep`: the result may be given again. It is stored, and everybody who waits gets it.
- `release`: it may not (a failure, an error of the tool, a cut or unfinished result). Everybody who waits goes on alone: nobody is
  given an outcome that was not meant for others, and nobody waits behind a second failure.
- `transfer`: the leader went away, cancelled or out of time, which says nothing about the upstream. One follower takes over, the last to
  come because it has the most time left; the rest go on waiting. Their own deadlines cancel them like any other wait.

Whatever the store raises is a counted miss. After a failed drop nothing of that server is read until a drop has succeeded.
One event loop. Must not: be the reason a call fails. Enforces S1/CACHE-005 (stampede), S1/XC-002 and decision D11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from pactgate.policy.cache_policy import CacheKeys
from pactgate.state.ports import MISS, CacheStore, Lookup


class ResultCacheStatistics(Struct, frozen=True):
    """Since the start: answers from the store, calls that had to be made, answers shared with those who waited, failures of the store."""

    hits: int
    misses: int
    shared: int
    faults: int


class _InFlight:
    """One call in flight and the requests that wait for it, in the order of arrival."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[asyncio.Future[Lookup | LeaderTicket], None] = {}

    def tell_all(self, found: Lookup) -> int:
        """Give everybody who still waits the answer, and say how many that were."""
        waiting = [place for place in self.waiting if not place.done()]
        for place in waiting:
            place.set_result(found)
        return len(waiting)


class LeaderTicket:
    """The leader of a single-flight makes the call and reports how it ended. Only the first report counts."""

    __slots__ = ("_cache", "_flight", "_keys", "_server", "generation")

    def __init__(self, cache: ResultCache, flight: _InFlight, keys: CacheKeys, server: str, generation: int) -> None:
        self._cache = cache
        self._flight: _InFlight | None = flight
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
        self._cache.store_result(self, self._server, key, value, ttl_ms, mark)
        self._cache.shared += flight.tell_all(Lookup(True, value, mark, 0, ttl_ms or None))

    def release(self) -> None:
        """The outcome can't be shared: every waiting request makes its own call."""
        flight = self.end()
        if flight is None:
            return
        for place in flight.waiting:
            if not place.done():
                place.set_result(self._cache.ticket(_InFlight(), self._keys, self._server))

    def transfer(self) -> None:
        """There is no outcome: one of the waiting requests makes the call instead."""
        flight, self._flight = self._flight, None
        if flight is None:
            return
        for place in reversed(flight.waiting):
            if not place.done():
                place.set_result(self._cache.ticket(flight, self._keys, self._server))
                return
        self._cache.land(flight, self._keys, self._server)

    def end(self) -> _InFlight | None:
        """Remove the call from those in flight. None if this ticket has ended before."""
        flight, self._flight = self._flight, None
        if flight is not None:
            self._cache.land(flight, self._keys, self._server)
        return flight


class ResultCache:
    """Asks the store, and lets equal concurrent misses share one call."""

    def __init__(self, store: CacheStore, on_fault: Callable[[str, str], None] | None = None) -> None:
        """`on_fault` is told the operation and the reason each time the store fails."""
        self._store = store
        self._on_fault = on_fault
        self._faults = 0
        self._undropped: set[str] = set()
        self._flights: dict[str, dict[bytes, _InFlight]] = {}
        """Calls under way, by server and key: never more than the gateway has calls open."""
        self._generations: dict[str, int] = {}
        self._hits = self._misses = 0
        self.shared = 0

    def ask(self, keys: CacheKeys, server: str) -> Lookup | LeaderTicket | Awaitable[Lookup | LeaderTicket]:
        """The cached result, or a ticket to make the call, or an awaitable of one of the two. The caller must await it at once."""
        flights = self._flights.get(server)
        flight = flights.get(keys.own) if flights else None
        if flight is not None:
            place: asyncio.Future[Lookup | LeaderTicket] = asyncio.get_running_loop().create_future()
            flight.waiting[place] = None
            return self._follow(flight, place)
        found = self._look(keys, server)
        if found.hit:
            self._hits += 1
            return found
        self._misses += 1
        flight = self._flights.setdefault(server, {})[keys.own] = _InFlight()
        return self.ticket(flight, keys, server)

    def drop_server(self, server: str, *, by: LeaderTicket | None = None) -> None:
        """Drop all cached results of a server: a call may have changed something, or its lists have changed.

        Results of calls in flight are not stored, and later requests do not wait for them. `by` is the ticket of the call that caused
        the drop: its own result is newer and is stored.
        """
        before = self._generations.get(server, 0)
        self._generations[server] = before + 1
        self._flights.pop(server, None)
        if by is not None and by.generation == before:
            by.generation = before + 1
        self._drop(server)

    def statistics(self) -> ResultCacheStatistics:
        return ResultCacheStatistics(self._hits, self._misses, self.shared, self._faults)

    # For tickets.

    def ticket(self, flight: _InFlight, keys: CacheKeys, server: str) -> LeaderTicket:
        return LeaderTicket(self, flight, keys, server, self._generations.get(server, 0))

    def land(self, flight: _InFlight, keys: CacheKeys, server: str) -> None:
        flights = self._flights.get(server)
        if flights is not None and flights.get(keys.own) is flight:
            del flights[keys.own]
            if not flights:
                del self._flights[server]

    def store_result(
        self, ticket: LeaderTicket, server: str, key: bytes, value: bytes, ttl_ms: int, mark: bytes
    ) -> None:
        if ticket.generation == self._generations.get(server, 0):
            try:
                self._store.put(key, value, ttl_ms=ttl_ms, tag=server, mark=mark)
            except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
                self._failed("put", fault)

    # Looking and waiting.

    def _look(self, keys: CacheKeys, server: str) -> Lookup:
        if server in self._undropped and not self._drop(server):
            return MISS
        try:
            found = self._store.get(keys.own)
            return found if found.hit or keys.shared is None else self._store.get(keys.shared)
        except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
            self._failed("get", fault)
            return MISS

    def _drop(self, server: str) -> bool:
        try:
            self._store.drop(server)
        except Exception as fault:  # noqa: BLE001 - a broken store must not fail a call
            self._undropped.add(server)
            self._failed("drop", fault)
            return False
        self._undropped.discard(server)
        return True

    def _failed(self, operation: str, fault: Exception) -> None:
        self._faults += 1
        if self._on_fault is not None:
            self._on_fault(operation, repr(fault))

    async def _follow(self, flight: _InFlight, place: asyncio.Future[Lookup | LeaderTicket]) -> Lookup | LeaderTicket:
        try:
            answer = await place
        except asyncio.CancelledError:
            chosen = None if place.cancelled() else place.result()
            if isinstance(chosen, LeaderTicket):
                # Chosen to lead in the very moment of being cancelled: the next one leads.
                chosen.transfer()
            raise
        finally:
            flight.waiting.pop(place, None)
        if isinstance(answer, LeaderTicket):
            self._misses += 1
        return answer
