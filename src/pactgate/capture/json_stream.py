"""Reads a JSON text that arrives in pieces value by value, so that a huge file never stands in memory as a whole.

Strict JSON in UTF-8 (also UTF-16 and UTF-32, and with a byte order mark); numbers keep their exact value. Bounded: one value can neither
be longer nor nested deeper nor hold more containers than the limits say. Built on the standard decoder and not on ijson: the C
backend of ijson 3.6 replaces a lone surrogate by "?" and crashes on an integer of more than 4,300 digits, and its Python backend is
ten times slower. Must not: open anything, or know what a capture is.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any, Final

from pactgate.protocol.json_limits import check_shape

MAX_VALUE_CHARS: Final = 32 * 1024 * 1024
MAX_DEPTH: Final = 200
_MAX_BRACKETS: Final = 500_000
_BIG_CHARS: Final = 1024 * 1024
_NEAR_THE_END: Final = 16
"""An error this close to the end of the text so far may come from a token that is cut in two."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_CLOSED: Final = frozenset('}]"')
_AFTER: Final = frozenset(",]} \t\n\r")


class NotJsonError(ValueError):
    """The text is not JSON, or a value exceeds a bound."""


class JsonStream:
    """Reads one text from front to back, and keeps nothing that was taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._pieces = _decoded(chunks)
        self._text = ""
        self._at = 0
        self._passed = 0
        self._ended = False
        self._taken = slice(0)

    @property
    def offset(self) -> int:
        """Characters taken so far."""
        return self._passed + self._at

    def peek(self) -> str:
        """The next character after white space, or "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> bool:
        """Take this character if it comes next."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def require(self, character: str) -> None:
        if not self.take(character):
            found = self.peek()
            what = f"expected {character!r}, not {found!r}" if found else f"the text ends before {character!r}"
            raise NotJsonError(f"{what} (character {self.offset})")

    def require_end(self) -> None:
        if self.peek():
            raise NotJsonError(f"there is data after the end of the value (character {self.offset})")

    def members(self) -> Iterator[str]:
        """The names of an object's members. The caller takes the value of each before the next name."""
        self.require("{")
        if self.take("}"):
            return
        while True:
            if self.peek() != '"':
                raise NotJsonError(f"expected the name of a member (character {self.offset})")
            name = self.value()
            self.require(":")
            yield name
            if not self.take(","):
                break
        self.require("}")

    def items(self) -> Iterator[int]:
        """The indexes of an array's items. The caller takes each item before the next index."""
        self.require("[")
        if self.take("]"):
            return
        index = 0
        while True:
            yield index
            index += 1
            if not self.take(","):
                break
        self.require("]")

    def value(self) -> Any:
        """The next value."""
        self.peek()
        decoder = _PLAIN
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as problem:
                if not self._may_be_cut(problem) or not self._grow():
                    raise NotJsonError(f"{problem.msg} (character {self._passed + problem.pos})") from None
                continue
            except RecursionError:
                raise NotJsonError(f"a value is nested deeper than {MAX_DEPTH} levels") from None
            except ValueError as problem:
                # Python refuses integers of thousands of digits, and we refuse NaN and Infinity.
                if decoder is _EXACT:
                    raise NotJsonError(str(problem)) from None
                decoder = _EXACT
                continue
            may_go_on = self._text[end - 1] not in _CLOSED and len(self._text) - end < _NEAR_THE_END
            if may_go_on and self._text[end : end + 1] not in _AFTER and self._grow():
                continue  # a number that is cut in two looks like a shorter one
            self._require_shape(end)
            self._taken = slice(self._at, end)
            self._at = end
            return value

    @property
    def text(self) -> str:
        """The value that was taken last, as it was written. It is there until the next one is taken."""
        return self._text[self._taken]

    def _may_be_cut(self, problem: json.JSONDecodeError) -> bool:
        return problem.msg.startswith("Unterminated string") or problem.pos >= len(self._text) - _NEAR_THE_END

    def _require_shape(self, end: int) -> None:
        if self._text.count("[", self._at, end) + self._text.count("{", self._at, end) > MAX_DEPTH:
            why = check_shape(self._text[self._at : end].encode("utf-8", "surrogatepass"), MAX_DEPTH)
            if why is not None:
                raise NotJsonError(f"{why[0].lower()}{why[1:].rstrip('.')} (character {self.offset})")

    def _grow(self) -> bool:
        """Read until there is twice as much text, so that a large value is decoded only a few times."""
        wanted = 2 * (len(self._text) - self._at)
        if wanted > 2 * MAX_VALUE_CHARS:
            raise NotJsonError(f"a value is longer than {MAX_VALUE_CHARS} characters (character {self.offset})")
        if wanted > _BIG_CHARS and self._text.count("{", self._at) + self._text.count("[", self._at) > _MAX_BRACKETS:
            raise NotJsonError(f"a value has more than {_MAX_BRACKETS} brackets (character {self.offset})")
        has_grown = False
        while len(self._text) - self._at < max(wanted, 1) and self._more():
            has_grown = True
        return has_grown

    def _more(self) -> bool:
        if self._ended:
            return False
        piece = next(self._pieces, None)
        if piece is None:
            self._ended = True
            return False
        self._text = self._text[self._at :] + piece
        self._passed += self._at
        self._at = 0
        return True


def _decoded(chunks: Iterable[bytes]) -> Iterator[str]:
    pieces, start = iter(chunks), b""
    while len(start) < 4 and (piece := next(pieces, None)) is not None:
        start += piece
    try:
        yield from codecs.iterdecode(chain([start], pieces), json.detect_encoding(start))
    except UnicodeDecodeError as problem:
        raise NotJsonError(f"the text is not {problem.encoding}: {problem.reason}") from None


def _exact_float(digits: str) -> float | Decimal:
    """A float where it is exact, else a Decimal."""
    number = float(digits)
    text = repr(number)
    if text == digits:
        return number
    try:
        exact = Decimal(digits)
        return number if exact == Decimal(text) else exact
    except InvalidOperation:
        return number  # an exponent beyond the largest there is


def _exact_int(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < 4000 else Decimal(digits)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_PLAIN: Final = json.JSONDecoder(parse_float=_exact_float, parse_constant=_refuse)
_EXACT: Final = json.JSONDecoder(parse_float=_exact_float, parse_int=_exact_int, parse_constant=_refuse)
