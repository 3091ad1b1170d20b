"""The faults of a run and when they happen. Pure: the same seed gives the same plan.

Each fault has a kind and a server or client it is done to. Kinds with a signal are done to the process of a server from outside; kinds
with a tool are done by a server that is asked for them; the others are done by a client.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

STEADY: Final = ("steady", "web")
"""Servers no fault is done to: their calls must all succeed, quickly. `web` is reached over HTTP."""
FRAGILE: Final = ("fragile", "brittle")
"""Servers that are stopped, killed and told to misbehave."""

SIGNALS: Final = {"freeze": signal.SIGSTOP, "kill": signal.SIGKILL, "terminate": signal.SIGTERM}
TOOLS: Final = ("crash", "flood", "garble", "wrong_id", "twice", "huge", "noise", "orphan", "change", "deaf")
CLIENTS: Final = ("leave", "half_request", "large_request", "wrong_token", "cancel", "idle_connections")

_FIRST_S: Final = 2.0
_QUIET_END_S: Final = 20.0
"""No fault in the last seconds of a long run, so that all servers can come back. A short run keeps a third of it quiet."""
_PAUSE_S: Final = (0.3, 3.0)


class Fault(Struct, frozen=True):
    at_s: float
    kind: str
    server: str


def plan(seed: int, seconds: float) -> tuple[Fault, ...]:
    """The faults of a run of so many seconds, each kind at least once if there is time."""
    return tuple(_faults(random.Random(seed), seconds))


def _faults(chosen: random.Random, seconds: float) -> Iterator[Fault]:
    kinds: list[str] = []
    at_s = _FIRST_S
    end_s = seconds - min(_QUIET_END_S, seconds / 3)
    while at_s < end_s:
        if not kinds:
            kinds = [*SIGNALS, *TOOLS, *CLIENTS]
            chosen.shuffle(kinds)
        yield Fault(at_s=round(at_s, 3), kind=kinds.pop(), server=chosen.choice(FRAGILE))
        at_s += chosen.uniform(*_PAUSE_S)
