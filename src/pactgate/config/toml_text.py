"""Reads TOML as a tree with positions. `tomllib` parses it; the positions come from the lines of the keys.

A value inside an inline table or a list has the position of the nearest key that begins a line. Bounded: `tomllib` needs time
quadratic in the parts of a dotted key, so keys with too many parts are refused first.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, FilePosition, Path
from pactgate.config.tree import MAX_DEPTH, MAX_VALUES, ConfigNode, LineIndex, UnreadableError, require_encodable

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DOTTED: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_ABSURD_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_KEY}[ \t]*\.[ \t]*){{{MAX_DEPTH + 1}}}")
_HEADER: Final = re.compile(rf"[ \t]*(?P<brackets>\[\[?)[ \t]*(?P<key>{_DOTTED})[ \t]*\]")
_PAIR: Final = re.compile(rf"[ \t]*(?P<key>{_DOTTED})[ \t]*=[ \t]*(?P<value>.)?")
_PART: Final = re.compile(_KEY)
_REPORTED_PLACE: Final = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL
)


def read_toml(text: str, found: ConfigFindings) -> ConfigNode:
    if _ABSURD_KEY.search(text):
        raise UnreadableError(f"A key of this file has more than {MAX_DEPTH} parts.")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise UnreadableError(f"This is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise _unreadable(str(error), text) from None
    return _Tree(_places(text)).node(document, ())


def _unreadable(reason: str, text: str) -> UnreadableError:
    match = _REPORTED_PLACE.fullmatch(reason)
    if match is None:
        return UnreadableError("This is not TOML: a number or date is out of range.")
    place = (
        FilePosition(int(match["line"]), int(match["column"])) if match["line"] else LineIndex(text).place(len(text))
    )
    return UnreadableError(f"This is not TOML: {match['what']}.", "", place)


class _Tree:
    """Plain values joined with the positions of their keys."""

    def __init__(self, places: dict[Path, tuple[FilePosition, FilePosition]]) -> None:
        self._places = places
        self._values = 0

    def node(self, value: Any, path: Path) -> ConfigNode:
        self._values += 1
        key_place, place = self._place(path)
        if len(path) > MAX_DEPTH:
            raise UnreadableError(f"This is nested more than {MAX_DEPTH} levels deep.", "", place)
        if self._values > MAX_VALUES:
            raise UnreadableError(f"There are more than {MAX_VALUES} values in this file.")
        if isinstance(value, dict):
            members = {}
            for key, member in value.items():
                require_encodable(key, place)
                members[key] = self.node(member, (*path, key))
            return ConfigNode(members, place, key_place)
        if isinstance(value, list):
            return ConfigNode([self.node(item, (*path, index)) for index, item in enumerate(value)], place, key_place)
        if not isinstance(value, str | int | float):
            raise UnreadableError("A date or time can't be used here.", "Put it in quotes.", place)
        if isinstance(value, str):
            require_encodable(value, place)
        return ConfigNode(value, place, key_place)

    def _place(self, path: Path) -> tuple[FilePosition | None, FilePosition | None]:
        known = self._places.get(path)
        while known is None and path:
            path = path[:-1]
            known = self._places.get(path)
        return known or (None, None)


def _places(text: str) -> dict[Path, tuple[FilePosition, FilePosition]]:
    """Positions of key and value by path. The first line that names a path, or a part of it, counts."""
    places: dict[Path, tuple[FilePosition, FilePosition]] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _parts(header["key"])
            if header["brackets"] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            place = FilePosition(number, header.start("key") + 1)
            _note(places, table, place, place)
        elif pair := _PAIR.match(line):
            value_at = pair.start("value") if pair["value"] else pair.end()
            _note(
                places,
                (*table, *_parts(pair["key"])),
                FilePosition(number, pair.start("key") + 1),
                FilePosition(number, value_at + 1),
            )
    return places


def _note(
    places: dict[Path, tuple[FilePosition, FilePosition]], path: Path, key_place: FilePosition, place: FilePosition
) -> None:
    for length in range(1, len(path)):
        places.setdefault(path[:length], (key_place, key_place))
    places.setdefault(path, (key_place, place))


def _parts(dotted: str) -> Path:
    parts = []
    for match in _PART.finditer(dotted):
        key = match.group()
        parts.append(key[1:-1] if key[0] in "\"'" else key)
    return tuple(parts)
