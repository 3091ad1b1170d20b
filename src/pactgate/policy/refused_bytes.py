"""A budget of bytes for large requests that are refused: whoever spends it sends no more large requests for a while.

A refused call does not count in the rate limits, and reading a large request costs the gateway more than sending it costs the client.
So the bytes of large requests that are refused count here, per caller. A caller over the budget is told to wait before a large request
is read at all; small requests are never concerned. The budget refills with time. Must not: read a request, or count one that is served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pactgate.core.failures import GatewayFailure, Kind

LARGE_BYTES: Final = 64 * 1024
"""A smaller request costs too little to count."""
BUDGET_BYTES: Final = 64 * 1024 * 1024
REFILL_BYTES_PER_S: Final = 1024 * 1024
MAX_CALLERS: Final = 10_000


class RefusedBytes:
    """The bytes of refused requests by caller, less what has been refilled since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}
        """For each subject: the bytes, and the time when they were counted."""

    def __len__(self) -> int:
        return len(self._spent)

    def add(self, subject: str, size: int) -> None:
        """Count a refused request of this size, if it is large."""
        if size <= LARGE_BYTES:
            return
        if subject not in self._spent and len(self._spent) >= MAX_CALLERS:
            self._make_room()
        self._spent[subject] = (self._bytes_of(subject) + size, self._clock())

    def check(self, subject: str) -> GatewayFailure | None:
        """The failure of one more large request of a caller who is over the budget."""
        over = self._bytes_of(subject) - BUDGET_BYTES
        if over <= 0:
            return None
        wait_ms = int(over * 1000 / REFILL_BYTES_PER_S) + 1
        wait_s = -(-wait_ms // 1000)
        return GatewayFailure(
            Kind.RATE_LIMITED,
            f"Too many large requests of yours were refused. A request of more than {LARGE_BYTES} bytes can be sent again "
            f"in {wait_s} s; smaller ones can be sent now.",
            retry_after_ms=wait_ms,
            details={"retryAfter": wait_s, "limit": BUDGET_BYTES, "limitedBy": "bytes of refused requests"},
        )

    def _bytes_of(self, subject: str) -> float:
        spent, counted_at = self._spent.get(subject, (0.0, 0.0))
        return max(0.0, spent - (self._clock() - counted_at) * REFILL_BYTES_PER_S)

    def _make_room(self) -> None:
        """Forget whoever has their budget back; else the caller who has spent least, so that a spent budget can't be pushed out."""
        spent = {subject: self._bytes_of(subject) for subject in self._spent}
        refilled = [subject for subject, size in spent.items() if not size] or [min(spent, key=lambda who: spent[who])]
        for subject in refilled:
            del self._spent[subject]
