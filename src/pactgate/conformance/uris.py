"""The resources that an update notification may be about. Must not: resolve or fetch anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_BOUNDARIES: Final = "/?#"
_LONGEST: Final = 8192


def around(uri: str) -> Iterator[str]:
    """The URI and the URIs that enclose it: `a://b/c` lies in `a://b/` and `a://b`."""
    yield uri
    if len(uri) <= _LONGEST:
        for end, letter in enumerate(uri):
            if letter in _BOUNDARIES and end:
                yield uri[:end]
                yield uri[: end + 1]
