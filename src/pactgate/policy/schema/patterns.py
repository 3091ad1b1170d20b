"""What matching a pattern of a schema may cost, read from its text before any engine sees it.

Without look-around and back references the engine takes time linear in the text, times the places the pattern can be in at once.
Those are few, and cheap, unless many stand behind something of variable length: `[01]*1[01]{1000}` has a thousand. With look-around
the engine tries one way after the other: bounded tries, and only short texts.
Must not: match anything. What can't be read with certainty is taken to be costly, never to be cheap. Serves S0/ECO-300.
"""

from __future__ import annotations

import re
from typing import Final

from jsonschema_rs import FancyRegexOptions
from msgspec import Struct

MAX_CHARS: Final = 4000
MAX_PLACES: Final = 10_000
"""Of all patterns of one schema: what they take in time and memory to compile grows with it."""

ENGINE: Final = FancyRegexOptions(backtrack_limit=1000, size_limit=2**20, dfa_size_limit=2**20)

BYTES: Final = 16
_FEW_PLACES: Final = 10
_TRIED_MAX_CHARS: Final = 1024
_TRIED_OFTEN_MAX_CHARS: Final = 256
_UNREADABLE_PLACES: Final = 3000

_TOKEN: Final = re.compile(
    r"\\[pPux]\{\w*[=\w]*\}|\\k<|\\."  # an escape
    r"|\[\^?(?:\\.|[^\[\]\\])+\]"  # a class without another inside
    r"|\(\?<?[=!]|\(\?:|\(\?P?<[A-Za-z_]\w*>|\(\??|\)"
    r"|\{\d+(?:,\d*)?\}\??|[*+?]\??|.",
    re.DOTALL,
)
_REPEATED: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_REFERENCE: Final = re.compile(r"\\(?:[1-9]|k<)")


class Unusable(Exception):  # noqa: N818 - not an error of ours: a schema that can't be used, and why
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Pattern(Struct, frozen=True, gc=False):
    """`cost` is in steps of ten nanoseconds for each `BYTES` of text. Texts longer than `max_chars` never match, if that is set."""

    places: int
    cost: int
    max_chars: int | None


def read_pattern(text: str) -> Pattern:
    """Raises Unusable for a pattern whose cost can't be bounded."""
    if len(text) > MAX_CHARS:
        raise Unusable(f"it has a pattern of more than {MAX_CHARS} characters")
    reading = _Reading()
    for token in _TOKEN.findall(text):
        reading.take(token)
    places = min(reading.places, MAX_PLACES + 1)
    if reading.is_tried_often:
        return Pattern(places, BYTES * 2560 * places, _TRIED_OFTEN_MAX_CHARS)
    if reading.is_tried:
        return Pattern(places, BYTES * 100 * places, _TRIED_MAX_CHARS)
    return Pattern(places, 4 if reading.loose_places <= _FEW_PLACES else 10 * places, None)


class _Group:
    __slots__ = ("holds_look", "is_look", "is_variable", "places")

    def __init__(self, *, is_look: bool) -> None:
        self.places = 0
        self.is_look = is_look
        self.holds_look = is_look
        self.is_variable = False


class _Reading:
    """One pass over the tokens of a pattern, with the groups that are open.

    `loose_places` are those behind, or repeated by, something of variable length.
    """

    def __init__(self) -> None:
        self.is_tried = False
        self.is_tried_often = False
        self._open = [_Group(is_look=False)]
        self._last = _Group(is_look=False)
        self._is_readable = True
        self._is_loose: bool | None = None
        self._loose_places = 0

    @property
    def places(self) -> int:
        return self._open[0].places if self._is_certain else _UNREADABLE_PLACES

    @property
    def loose_places(self) -> int:
        return self._loose_places if self._is_certain else _UNREADABLE_PLACES

    @property
    def _is_certain(self) -> bool:
        return self._is_readable and len(self._open) == 1

    def take(self, token: str) -> None:
        if self._is_loose is None:
            self._is_loose = token != "^"  # a pattern may begin to match anywhere
        if token.startswith("("):
            self._begin(token)
        elif token == ")":
            self._end()
        elif token[0] in "*+?" or (token[0] == "{" and len(token) > 1):
            self._repeat(token)
        elif token == "|":
            self._is_loose = self._open[-1].is_variable = True
        elif token not in ("^", "$"):
            self._atom(token)

    def _begin(self, token: str) -> None:
        is_look = token.endswith(("=", "!"))
        if is_look and any(group.is_look for group in self._open):
            raise Unusable("it has a pattern with look-around inside look-around")
        self.is_tried = self.is_tried or is_look
        self._is_readable = self._is_readable and token != "(?"
        self._open.append(_Group(is_look=is_look))

    def _end(self) -> None:
        if len(self._open) == 1:
            self._is_readable = False
            return
        self._last = self._open.pop()
        around = self._open[-1]
        around.places += self._last.places
        around.holds_look = around.holds_look or self._last.holds_look
        around.is_variable = around.is_variable or self._last.is_variable

    def _repeat(self, token: str) -> None:
        counts = _REPEATED.match(token)
        numbers = [int(count[:6]) for count in counts.groups() if count] if counts else []
        times = max(1, *numbers, 1)
        is_fixed = len(numbers) == 1 and "," not in token
        more = self._last.places * (times - 1)
        self._open[-1].places = min(self._open[-1].places + more, MAX_PLACES + 1)
        if self._is_loose or (self._last.places > 1 and (self._last.is_variable or not is_fixed)):
            self._loose_places += self._last.places + more
        self._last.places += more  # so that a{50}{50} counts as 2500
        if not is_fixed:
            self._is_loose = self._open[-1].is_variable = True
        self.is_tried_often = self.is_tried_often or (self._last.holds_look and token != "?")

    def _atom(self, token: str) -> None:
        if _REFERENCE.match(token):
            self.is_tried = self.is_tried_often = True
        if token == "[":
            self._is_readable = False
        self._last = _Group(is_look=False)
        self._last.places = 1
        self._open[-1].places += 1
        self._loose_places += bool(self._is_loose)
