"""The tree every format is read into, with the bounds and errors all readers share.

Each value knows its line and column for messages, and its offsets for the editor. Must not: know any format or setting.
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
    """One value: a string, number, boolean, None, a list of nodes, or a dict of nodes.

    `start`, `end` and `key_start` are offsets in the text; TOML, which another library edits, has none.
    """

    value: Any
    place: FilePosition | None = None
    key_place: FilePosition | None = None
    start: int = 0
    end: int = 0
    key_start: int = 0

    @property
    def anchor(self) -> FilePosition | None:
        """Where a message about the value as a whole points."""
        return self.key_place or self.place


def plain_value(node: ConfigNode) -> Any:
    """The value without its positions."""
    if isinstance(node.value, dict):
        return {key: plain_value(member) for key, member in node.value.items()}
    return [plain_value(item) for item in node.value] if isinstance(node.value, list) else node.value


def to_node(value: Any) -> ConfigNode:
    """A plain value as a tree without positions."""
    if isinstance(value, dict):
        return ConfigNode({str(key): to_node(item) for key, item in value.items()})
    return ConfigNode([to_node(item) for item in value]) if isinstance(value, list | tuple) else ConfigNode(value)


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
        raise UnreadableError("This string has half of a surrogate pair.", "Write the character itself.", place)


class LineIndex:
    """Turns offsets of a text into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> FilePosition:
        line = bisect_right(self._starts, offset)
        return FilePosition(line, offset - self._starts[line - 1] + 1)
