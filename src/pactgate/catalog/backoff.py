"""Backoff: the exponential, capped and jittered pause before a retry. Enforces the gaps of S0/ECO-101."""

from __future__ import annotations

import random
from typing import Final

from msgspec import Struct

_MAX_DOUBLINGS: Final = 30
"""Beyond this every cap is reached; a server that fails for days must not make the number too large for a float."""


class Backoff(Struct, frozen=True):
    """The parameters of all pauses in the catalog, in seconds."""

    first_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 30.0
    after_giving_up_s: float = 10.0
    """The pause after the first series of attempts that failed. It grows with each further one, up to `longest_s`."""
    longest_s: float = 300.0
    early_s: float = 3.0
    """A call can have a server tried again before the pause is over, but not more often than this."""
    between_lists_s: float = 1.0
    steady_s: float = 10.0
    """A connection that lasted this long was stable: losing it does not count as a crash loop."""

    def before(self, retry: int) -> float:
        """The pause before the nth retry (1, 2, …), jittered downwards so that the retries of several servers spread out."""
        return self._grown(self.first_s, self.cap_s, retry)

    def after_series(self, count: int) -> float:
        """The pause after the nth failed series of attempts in a row (1, 2, …)."""
        return self._grown(self.after_giving_up_s, self.longest_s, count)

    def _grown(self, first_s: float, cap_s: float, count: int) -> float:
        full = min(cap_s, first_s * self.factor ** min(count - 1, _MAX_DOUBLINGS))
        return full * random.uniform(0.5, 1.0)
