"""Which of several settings by tool name counts for a tool: the name itself, else the longest pattern, else the first.

In a pattern `*` stands for any characters and `?` for one; everything else for itself. Must not: know what is being set.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def most_specific(name: str, patterns: Iterable[str]) -> str | None:
    """The pattern that counts for a full name, or None."""
    best: str | None = None
    for pattern in patterns:
        if pattern == name:
            return pattern
        if (best is None or len(pattern) > len(best)) and fnmatchcase(name, pattern.replace("[", "[[]")):
            best = pattern
    return best
