"""How long to wait before trying again: exponential, capped, jittered. Enforces the gaps of S0/ECO-101."""

from __future__ import annotations

import random

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """All in seconds."""

    first_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 30.0
    after_giving_up_s: float = 10.0
    between_lists_s: float = 1.0
    steady_s: float = 10.0
    """A connection that lasted this long was a good one: losing it is not a crash loop."""

    def before(self, retry: int) -> float:
        """The pause before the nth retry (1, 2, …), jittered downwards so that servers don't retry in step."""
        full = min(self.cap_s, self.first_s * self.factor ** (retry - 1))
        return full * random.uniform(0.5, 1.0)
