"""How many sign-ins people at one address may begin: each waits for its answer, and the oldest of all that wait make room.

Counted by the address of the client (an IPv6 client by its /64 network). Bounded: addresses. Must not: know whose sign-in it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from pactgate.inbound.guess_brake import MAX_ADDRESSES
from pactgate.inbound.peer_address import counted_address
from pactgate.state.memory_rates import MemoryRateStore
from pactgate.state.ports import Quota

BEGINS: Final = Quota("sign-ins begun", rpm=30, burst=30)
"""Of one address: an office may have one. In ten minutes, which is how long a sign-in waits, they are a third of those that may wait."""


class TooManyBegun(NamedTuple):
    """Why nothing begins, and the header line that says for how long."""

    why: str
    head: bytes


class BeginRate:
    """Counts the sign-ins that are begun."""

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._rates = MemoryRateStore(clock_ns, MAX_ADDRESSES)

    def note(self, peer: str) -> TooManyBegun | None:
        """Count one more of this address, unless it has begun too many."""
        refusal = self._rates.take(counted_address(peer), BEGINS)
        if refusal is None:
            return None
        wait_s = -(-refusal.retry_after_ms // 1000)
        why = f"Too many sign-ins were begun at your address; try again in {wait_s} s."
        return TooManyBegun(why, f"Retry-After: {wait_s}\r\n".encode())
