"""What somebody probably meant who asked for a name that nobody offers. Bounded: names looked at, and names told.

Must not: name anything that the caller does not see in its own list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

_MAX_LOOKED_AT: Final = 500
"""Comparing takes some microseconds for each name, and anybody may ask for names that do not exist."""
_MAX_CHARS: Final = 100
_MAX_TOLD: Final = 3
_MAX_SERVERS: Final = 5


def advice(name: str, offered: Iterable[str], unavailable: Collection[str]) -> str:
    """Sentences for the message of a failure: names that look like the wanted one, and servers that are away and may have it."""
    told = []
    near = near_names(name, offered)
    if near:
        told.append(f"Did you mean {' or '.join(near)}?")
    if unavailable:
        more = len(unavailable) - _MAX_SERVERS
        servers = ", ".join(islice(unavailable, _MAX_SERVERS)) + (f" and {more} more" if more > 0 else "")
        told.append(f"Not available at the moment, and may have it: {servers}.")
    return " ".join(told)


def near_names(name: str, offered: Iterable[str]) -> list[str]:
    """The offered full names whose own part, or the whole, looks like the name."""
    import difflib  # here, because a gateway starts without it

    wanted = name[:_MAX_CHARS].casefold()
    by_own: dict[str, str] = {}
    for full in islice(offered, _MAX_LOOKED_AT):
        by_own.setdefault(full.casefold(), full)
        by_own.setdefault(full.partition(".")[2].casefold(), full)
    close = difflib.get_close_matches(wanted, by_own, n=2 * _MAX_TOLD, cutoff=0.7)
    return list(dict.fromkeys(by_own[one] for one in close))[:_MAX_TOLD]
