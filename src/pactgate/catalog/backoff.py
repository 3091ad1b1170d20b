"""Backoff: the exponential, capped and jittered pause before a retry. Enforces the gaps of S0/ECO-101."""

from __future__ import annotations

import random

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """The parameters of all pauses in the catalog, in seconds."""

    first_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 30.0
    after_giving_up_s: float = 10.0
    between_lists_s: float = 1.0
    steady_s: float = 10.0
    """A connection that lasted this long was stable: losing it does not count as a crash loop."""

    def before(self, retry: int) -> float:
        """The pause before the nth retry (1, 2, …), jittered downwards so that the retries of several servers spread out."""
        full = min(self.cap_s, self.first_s * self.factor ** (retry - 1))
        return full * random.uniform(0.5, 1.0)
