"""Times of the wall clock as text: UTC, to the millisecond (RFC 3339)."""

from __future__ import annotations

import time
from functools import lru_cache


def stamp(now: float) -> str:
    return f"{_to_the_second(int(now))}.{int(now * 1000) % 1000:03}Z"


@lru_cache(maxsize=4)
def _to_the_second(now: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
