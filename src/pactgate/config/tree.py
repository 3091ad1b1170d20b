"""The tree every format is read into: each value knows its line and column. Also what all readers share: bounds and refusals.

Must not: know any format or setting.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

from msgspec import Struct

from pactgate.config.problems import ConfigFindings, FilePosition, Path

MAX_DEPTH: Final = 40
MAX_VALUES: Final = 50_000


class ConfigNode(Struct, frozen=True):
    """One value: text, number, boolean, None, a list of nodes, or a dict of nodes. `key_place` is where its key stands."""

    value: Any
    place: FilePosition | None = None
    key_place: FilePosition | None = None

    @property
    def anchor(self) -> FilePosition | None:
        """Where to point when the value as a whole is meant."""
        return self.key_place or self.place


class UnreadableError(Exception):
    """The text can't be read any further."""

    def __init__(self, message: str, hint: str = "", place: FilePosition | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place


def note_duplicate(found: ConfigFindings, path: Path, place: FilePosition | None, first: FilePosition | None) -> None:
    where = f" (first in line {first.line})" if first else ""
    found.add(path, place, f"This key is given twice{where}.", "Keep one of them.")


def require_encodable(text: str, place: FilePosition | None) -> None:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UnreadableError("This text has half of a surrogate pair.", "Write the character itself.", place)


class LineIndex:
    """Offsets of a text as lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> FilePosition:
        line = bisect_right(self._starts, offset)
        return FilePosition(line, offset - self._starts[line - 1] + 1)
