"""Characters that a person can't see and a model reads: controls, marks of direction, zero-width characters, fillers, tags.

The one table of them. Conflicts between servers and the conformance rule GW-046 look for them, and `core/display` spells them out.
Pure. Must not: change what is passed on; a gateway forwards text as it is.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

HIDDEN: Final = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"  # fillers, joiners, marks of direction
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # musical controls, tags, supplementary variation selectors
    "|(?<=[A-Za-z0-9 ])[\u200c\u200d]|[\u200c\u200d](?=[A-Za-z0-9 ])"  # joiners, which only some scripts and emoji need
)
"""A regular expression for one of them."""
MAX_TEXTS: Final = 20_000
_PATTERN: Final = re.compile(HIDDEN)


class HiddenCharacter(NamedTuple):
    """Where a hidden character is, as names and numbers from the outside in, and its code point as `U+202E`."""

    place: tuple[str | int, ...]
    code_point: str


def find_hidden(text: str) -> str | None:
    """The code point of the first hidden character in a text, or None."""
    if text.isascii() and text.isprintable():
        return None
    found = _PATTERN.search(text)
    return None if found is None else f"U+{ord(found[0]):04X}"


def hidden_in(value: Any) -> HiddenCharacter | None:
    """The first hidden character in the texts and member names of a decoded value. Looks at no more than `MAX_TEXTS` values."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    for _ in range(MAX_TEXTS):
        if not waiting:
            return None
        place, held = waiting.pop()
        if isinstance(held, str):
            found = find_hidden(held)
            if found is not None:
                return HiddenCharacter(place, found)
        elif isinstance(held, dict):
            waiting += [((*place, name), below) for name, below in reversed(held.items())]
            waiting += [(place, name) for name in held]
        elif isinstance(held, list):
            waiting += [((*place, number), held[number]) for number in range(len(held) - 1, -1, -1)]
    return None
