"""The place of a value inside another, written for programs (JSON Pointer) and for people (`files[3].name`).

Must not: repeat anything but keys and positions. Both are cut after `MAX_CHARS`, because keys come from callers.
Enforces the unambiguous half of S1/LIMIT-004: a key with a dot in it is one step of the pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pactgate.core.display import flat

MAX_CHARS: Final = 500

Step = str | int


def pointer(steps: Sequence[Step]) -> str:
    """The place as a JSON Pointer (RFC 6901); empty for the value itself."""
    written = "".join(f"/{str(step)[:MAX_CHARS].replace('~', '~0').replace('/', '~1')}" for step in steps)
    return written[:MAX_CHARS]


def dotted(steps: Sequence[Step]) -> str:
    """The place as people write it; empty for the value itself."""
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:MAX_CHARS]}" for step in steps)
    return flat(written.removeprefix("."), MAX_CHARS)
