"""Reads TOML, with positions. `tomllib` parses it; the positions come from the lines of the keys.

A value inside an inline table or a list has the position of the nearest key that begins a line. Bounded: `tomllib` needs time
quadratic in the parts of a dotted key, so keys with too many parts are refused first.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from pactgate.config.problems import (
    MAX_DEPTH,
    MAX_VALUES,
    ConfigFindings,
    FilePosition,
    Path,
    UnreadableError,
    ValuePosition,
    require_encodable,
)

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DOTTED: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_ABSURD_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_KEY}[ \t]*\.[ \t]*){{{MAX_DEPTH + 1}}}")
_HEADER: Final = re.compile(rf"[ \t]*(?P<brackets>\[\[?)[ \t]*(?P<key>{_DOTTED})[ \t]*\]")
_PAIR: Final = re.compile(rf"[ \t]*(?P<key>{_DOTTED})[ \t]*=[ \t]*(?P<value>.)?")
_PART: Final = re.compile(_KEY)
_REPORTED_PLACE: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)


def read_toml(text: str, found: ConfigFindings) -> dict[str, Any]:
    if _ABSURD_KEY.search(text):
        raise UnreadableError(f"A key of this file has more than {MAX_DEPTH} parts.")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise UnreadableError(f"This is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise _unreadable(str(error), found.lines.place(len(text))) from None
    _note_positions(text, found.positions)
    _Check(found).value(document, ())
    return document


def _unreadable(reason: str, end: FilePosition) -> UnreadableError:
    match = _REPORTED_PLACE.fullmatch(reason)
    if match is None:
        return UnreadableError("This is not TOML: a number or date is out of range.")
    place = FilePosition(int(match["line"]), int(match["column"])) if match["line"] else end
    return UnreadableError(f"This is not TOML: {match['what']}.", "", place)


class _Check:
    """Refuses values that a configuration can't have."""

    def __init__(self, found: ConfigFindings) -> None:
        self._found = found
        self._values = 0

    def value(self, value: Any, path: Path) -> None:
        self._values += 1
        place = self._found.place_of(path, at_value=True)
        if len(path) > MAX_DEPTH:
            raise UnreadableError(f"This is nested more than {MAX_DEPTH} levels deep.", "", place)
        if self._values > MAX_VALUES:
            raise UnreadableError(f"There are more than {MAX_VALUES} values in this file.")
        if isinstance(value, dict | list):
            for key, member in value.items() if isinstance(value, dict) else enumerate(value):
                require_encodable(str(key), place)
                self.value(member, (*path, key))
        elif isinstance(value, str):
            require_encodable(value, place)
        elif not isinstance(value, int | float):
            raise UnreadableError("A date or time can't be used here.", "Put it in quotes.", place)


def _note_positions(text: str, positions: dict[Path, ValuePosition]) -> None:
    """The first line that names a path, or a part of it, counts."""
    table: Path = ()
    counts: dict[Path, int] = {}
    at = 0
    for line in text.split("\n"):
        if header := _HEADER.match(line):
            table = _parts(header["key"])
            if header["brackets"] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            key_start = start = at + header.start("key")
            _note(positions, table, key_start, start)
        elif pair := _PAIR.match(line):
            start = at + (pair.start("value") if pair["value"] else pair.end())
            _note(positions, (*table, *_parts(pair["key"])), at + pair.start("key"), start)
        at += len(line) + 1


def _note(positions: dict[Path, ValuePosition], path: Path, key_start: int, start: int) -> None:
    for length in range(1, len(path)):
        positions.setdefault(path[:length], ValuePosition(key_start, key_start=key_start))
    positions.setdefault(path, ValuePosition(start, key_start=key_start))


def _parts(dotted: str) -> Path:
    parts = []
    for match in _PART.finditer(dotted):
        key = match.group()
        parts.append(key[1:-1] if key[0] in "\"'" else key)
    return tuple(parts)
