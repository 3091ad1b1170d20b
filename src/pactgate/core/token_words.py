"""Random tokens that come and go, replaced by value. A pattern of them would have to be compiled again at each one, which takes 100 ms when
there are a hundred.

Only what is written with characters that no format escapes: such a token is the same wherever it stands. Bounded: the oldest is forgotten.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

MASKED: Final = "***"
MAX_TOKENS: Final = 10_000
_SHORTEST: Final = 16
_BEGIN: Final = 12
_WORD: Final = re.compile(r"[A-Za-z0-9._~-]{16,}")


def is_word(token: str) -> bool:
    """Whether a token can be found here."""
    return _WORD.fullmatch(token) is not None


class TokenWords:
    """Each token is known by its beginning."""

    def __init__(self) -> None:
        self.longest = 0
        self._tokens: OrderedDict[str, None] = OrderedDict()
        self._by_begin: dict[str, list[str]] = {}

    def add(self, tokens: Iterable[str]) -> None:
        """Mask these from now on; each has to be a word."""
        for token in tokens:
            if token not in self._tokens:
                self._tokens[token] = None
                self._by_begin.setdefault(token[:_BEGIN], []).append(token)
                self.longest = max(self.longest, len(token))
            if len(self._tokens) > MAX_TOKENS:
                self._forget(self._tokens.popitem(last=False)[0])

    def clear(self) -> None:
        self._tokens.clear()
        self._by_begin.clear()

    def mask(self, text: str) -> str:
        return _WORD.sub(self._masked, text) if self._tokens else text

    def _forget(self, token: str) -> None:
        alike = self._by_begin[token[:_BEGIN]]
        alike.remove(token)
        if not alike:
            del self._by_begin[token[:_BEGIN]]

    def _masked(self, found: re.Match[str]) -> str:
        """A word without the tokens in it: what stands beside a token may be made of the same characters."""
        word, kept, at, copied = found[0], [], 0, 0
        while at <= len(word) - _SHORTEST:
            token = self._at(word, at)
            if token is None:
                at += 1
                continue
            kept += [word[copied:at], MASKED]
            at = copied = at + len(token)
        return "".join([*kept, word[copied:]]) if kept else word

    def _at(self, word: str, at: int) -> str | None:
        alike = self._by_begin.get(word[at : at + _BEGIN], ())
        return max((token for token in alike if word.startswith(token, at)), key=len, default=None)
