"""Chooses among settings by tool name: the exact name first, else the longest matching pattern, else the first of those.

In a pattern `*` matches any characters and `?` matches one; every other character matches itself. Must not: know what is being set.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def most_specific(name: str, patterns: Iterable[str]) -> str | None:
    """The pattern that applies to a full name, or None."""
    best: str | None = None
    for pattern in patterns:
        if pattern == name:
            return pattern
        if (best is None or len(pattern) > len(best)) and fnmatchcase(name, pattern.replace("[", "[[]")):
            best = pattern
    return best
