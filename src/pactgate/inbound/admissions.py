"""Remembers whose tokens were admitted, by the digest of the token, until they have to be checked again.

A known token costs a dictionary lookup, whatever its check cost. Bounded: tokens, and the time each is remembered. Must not: keep a token,
or remember a refusal.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from pactgate.core.principal import Principal
from pactgate.inbound.credentials import Admission

MAX_REMEMBERED: Final = 10_000
MAX_AGE_S: Final = 24 * 3600


class AdmissionMemory:
    """`expiries` are further times at which something ends."""

    def __init__(self, expiries: Iterable[float] = ()) -> None:
        self._admissions: OrderedDict[bytes, tuple[Admission, float]] = OrderedDict()
        self._expiries = list(expiries)
        self._listed = set(self._expiries)
        heapq.heapify(self._expiries)

    def get(self, digest: bytes, now: float) -> Admission | None:
        found = self._admissions.get(digest)
        if found is None:
            return None
        if found[1] <= now:
            del self._admissions[digest]
            return None
        self._admissions.move_to_end(digest)
        return found[0]

    def put(self, digest: bytes, admission: Admission, now: float) -> None:
        until = min(admission.expires_at, now + MAX_AGE_S)
        self._admissions[digest] = admission, until
        if len(self._admissions) > MAX_REMEMBERED:
            self._admissions.popitem(last=False)
        # Whole seconds: tokens that expire within one second are looked at together, and there are at most as many times as seconds a day.
        at = math.ceil(until)
        if at not in self._listed:
            self._listed.add(at)
            heapq.heappush(self._expiries, at)

    def clear(self) -> set[Principal]:
        """Check every token again when it comes next. Returns whose they were."""
        principals = {admission.principal for admission, _ in self._admissions.values()}
        self._admissions.clear()
        return principals

    def next_expiry(self, now: float) -> float | None:
        """The next time at which something remembered or listed ends."""
        while self._expiries and self._expiries[0] <= now:
            self._listed.discard(heapq.heappop(self._expiries))
        return self._expiries[0] if self._expiries else None
