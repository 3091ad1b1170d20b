"""Which worker serves whom, and what part of a bound each worker has.

A caller is always served by the same worker, so whatever is counted or kept for one caller is counted and kept in one place. A bound on
all callers together is divided, so that the parts add up to it. Must not: change with the time or the load.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.config.model import Config

MAX_WORKERS: Final = 64


class Place(Struct, frozen=True):
    """Which of how many workers this is; the first is 0."""

    index: int
    count: int

    def share(self, total: int) -> int:
        """This worker's part of a bound; the parts of all add up to it."""
        return total // self.count + (self.index < total % self.count)


@lru_cache(maxsize=4096)
def home_of(subject: str, count: int) -> int:
    """The worker that serves this caller: the same in every process and after every restart."""
    digest = hashlib.blake2b(subject.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def shared(config: Config, place: Place) -> Config:
    """The configuration with this worker's part of the bounds on everybody together."""
    limits, cache, sessions = config.limits, config.cache, config.sessions
    return replace(
        config,
        limits=replace(
            limits,
            max_in_flight=place.share(limits.max_in_flight),
            max_in_flight_per_server=place.share(limits.max_in_flight_per_server),
            max_queued_per_server=place.share(limits.max_queued_per_server),
        ),
        cache=replace(
            cache, max_size_bytes=place.share(cache.max_size_bytes), max_entries=place.share(cache.max_entries)
        ),
        sessions=replace(sessions, max_sessions=place.share(sessions.max_sessions)),
    )


def unshareable(config: Config, count: int) -> str | None:
    """Why so many workers can't keep a bound of this configuration, or None."""
    bounds = {
        "limits.maxInFlight": config.limits.max_in_flight,
        "limits.maxInFlightPerServer": config.limits.max_in_flight_per_server,
        "sessions.maxSessions": config.sessions.max_sessions,
        "cache.maxEntries": config.cache.max_entries,
    }
    for name, total in bounds.items():
        if total < count:
            return f"{name} is {total}, which {count} workers can't divide between them; raise it, or use fewer workers"
    return None
