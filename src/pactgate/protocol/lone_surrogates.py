r"""Escapes of half a surrogate pair in JSON: `"\ud83d"` alone. The grammar of JSON allows them, but they stand for no character.

Servers that cut text by its length send them, and most readers refuse the whole message. Must not: change anything else.
"""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = rb"\ufffd"
"""The escape of U+FFFD, which is as long as the one it replaces."""
_BEGINS: Final = (rb"\ud", rb"\uD")
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""A pair, half of one (the group), or any other escape."""


def replace_lone_surrogates(data: bytes) -> bytes:
    """JSON with U+FFFD in their place; the very same bytes where there are none."""
    if not any(begin in data for begin in _BEGINS):
        return data
    replaced, count = _ESCAPE.subn(lambda escape: REPLACEMENT if escape[1] else escape[0], data)
    return replaced if count and replaced != data else data
