"""What somebody probably meant who asked for a name that nobody offers. Bounded: names looked at, compared and told.

Must not: name anything that the caller does not see in its own list.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

_MAX_LOOKED_AT: Final = 500
"""Looking at their letters takes some microseconds for each name, and anybody may ask for names that do not exist."""
_MAX_COMPARED: Final = 16
"""Comparing the order of their letters takes up to half a millisecond for each."""
_CUTOFF: Final = 0.7
_SHARE: Final = 0.1
_MAX_CREDIT_S: Final = 0.05
_MAX_CHARS: Final = 100
_MAX_TOLD: Final = 3
_MAX_SERVERS: Final = 5


class Adviser:
    """Looks for names a tenth of the time at most, after what it saved up while nobody asked.

    One refusal after the other must not keep the gateway from its calls; somebody who mistypes twice is helped twice.
    """

    def __init__(self) -> None:
        self._credit = _MAX_CREDIT_S
        self._counted_at = time.monotonic()

    def __call__(self, name: str, offered: Iterable[str], unavailable: Collection[str]) -> str:
        """Sentences for the message of a failure: names that look like the wanted one, and servers that are away and may have it."""
        told, near = [], []
        now = time.monotonic()
        self._credit = min(_MAX_CREDIT_S, self._credit + _SHARE * (now - self._counted_at))
        self._counted_at = now
        if self._credit > 0:
            began = time.thread_time()  # time in which others had the processor is no work of ours
            near = near_names(name, offered)
            self._credit -= time.thread_time() - began
        if near:
            told.append(f"Did you mean {' or '.join(near)}?")
        if unavailable:
            more = len(unavailable) - _MAX_SERVERS
            servers = ", ".join(islice(unavailable, _MAX_SERVERS)) + (f" and {more} more" if more > 0 else "")
            told.append(f"Not available at the moment, and may have it: {servers}.")
        return " ".join(told)


def near_names(name: str, offered: Iterable[str]) -> list[str]:
    """The offered full names that look like the name, or whose own part does if it is the name of no server's tool."""
    import difflib  # here, because a gateway starts without it

    wanted = name[:_MAX_CHARS].casefold()
    is_full = "." in wanted or "__" in wanted
    matcher = difflib.SequenceMatcher(b=wanted)

    def likeness(full: str, *, of_order: bool) -> float:
        matcher.set_seq1((full if is_full else full.partition(".")[2])[:_MAX_CHARS].casefold())
        bound = matcher.real_quick_ratio()
        if bound >= _CUTOFF:
            bound = matcher.ratio() if of_order else matcher.quick_ratio()
        return bound

    likely = {
        full: like for full in islice(offered, _MAX_LOOKED_AT) if (like := likeness(full, of_order=False)) >= _CUTOFF
    }
    compared = heapq.nlargest(_MAX_COMPARED, likely, likely.__getitem__)
    near = {full: like for full in compared if (like := likeness(full, of_order=True)) >= _CUTOFF}
    return heapq.nlargest(_MAX_TOLD, near, near.__getitem__)
