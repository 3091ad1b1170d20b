"""Text of others, made fit to be shown: nothing in it moves a cursor, hides, reorders or gives a secret away.

Everything that is printed or logged and came from an upstream, a caller or a file goes through here. Must not: be used on what
is passed on; a gateway forwards text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_UNFIT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u00ad\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, marks of direction, zero width
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # separators, embeddings, isolates, invisible operators
    "\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, tags
)
_BREAKS: Final = re.compile(r"[\t\n]+ *| {2,}")
_MASKED: Final = "***"
_SHORTEST_SECRET: Final = 4
"""Masking shorter values would make everything unreadable and hide nothing."""


def visible(text: str) -> str:
    """The text with unfit characters spelt out (`\\x1b`, `\\u202e`). Line feeds and tabs stay."""
    return _UNFIT.sub(_spelt, text)


def flat(text: str, max_chars: int) -> str:
    """The text as one line of bounded length."""
    return cut(_BREAKS.sub(" ", visible(text[: 4 * max_chars])).strip(), max_chars)


def cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


class Mask:
    """Replaces known secrets by value, wherever they stand in the text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: a secret may contain another one.
        longest_first = sorted({s for s in secrets if len(s) >= _SHORTEST_SECRET}, key=lambda s: (-len(s), s))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._longest = len(longest_first[0]) if longest_first else 0

    def __call__(self, text: str) -> str:
        return self._pattern.sub(_MASKED, text) if self._pattern else text

    def start(self, text: str, max_chars: int) -> str:
        """The masked beginning of a long text, without the end where a secret may have been cut in two."""
        if len(text) <= max_chars:
            return self(text)
        masked = self(text[:max_chars])
        return masked[: max(0, len(masked) - self._longest)]

    def end(self, text: str, max_chars: int) -> str:
        """The masked end of a long text, without the beginning where a secret may have been cut in two."""
        return self(text) if len(text) <= max_chars else self(text[-max_chars:])[self._longest :]


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
