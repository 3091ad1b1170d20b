"""Cache hints of modern results: how long a result may be taken for true, and whether everybody may share it.

What a server does not say, or says badly, means: stale at once, for nobody else (utilities/caching). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Raw, Struct

_WHOLE_NUMBER: Final = re.compile(rb"[0-9]{1,15}")


class Hint(Struct, frozen=True, gc=False):
    ttl_ms: int = 0
    is_public: bool = False

    def after(self, elapsed_ms: float) -> Hint:
        """What is left of it; never more than that."""
        return Hint(max(0, int(self.ttl_ms - elapsed_ms)), self.is_public)

    def encode(self) -> bytes:
        """The two members, as they end an object."""
        return b'"ttlMs":%d,"cacheScope":"%b"}' % (self.ttl_ms, b"public" if self.is_public else b"private")


STALE: Final = Hint()


def read_hint(result: Mapping[str, Raw]) -> Hint | None:
    """What a result says; None where it says nothing about it."""
    if "ttlMs" not in result:
        return None
    said = bytes(result["ttlMs"])
    scope = bytes(result.get("cacheScope", Raw(b"")))
    return Hint(int(said) if _WHOLE_NUMBER.fullmatch(said) else 0, scope == b'"public"')


def together(hints: Iterable[Hint]) -> Hint:
    """Of a result made of several: as fresh as the one that is stale first, and as private as any."""
    parts = list(hints)
    if not parts:
        return STALE
    return Hint(min(part.ttl_ms for part in parts), all(part.is_public for part in parts))
