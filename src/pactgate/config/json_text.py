"""Reads JSON and JSONC, with positions. Strict: a key given twice, a lone surrogate, a stray character are problems.

Comments and trailing commas are allowed, also in `.json`, because editors of client files write them. Must not: know any setting.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from pactgate.config.problems import (
    MAX_DEPTH,
    MAX_VALUES,
    ConfigFindings,
    Path,
    UnreadableError,
    ValuePosition,
    require_encodable,
    show,
)

# The outer groups are not possessive: Python before 3.11.5 does not go back to where the last try of such a group began.
BLANK: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<rest>(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![\w.+-])")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS: Final = {"true": True, "false": False, "null": None}
_MAX_DIGITS: Final = 300


def read_json(text: str, found: ConfigFindings) -> Any:
    return _Text(text, found).document()


class _Text:
    """A reader of one JSON or JSONC text."""

    def __init__(self, text: str, found: ConfigFindings) -> None:
        self._text = text
        self._found = found
        self._at = 0
        self._values = 0

    def document(self) -> Any:
        self._skip_blank()
        if self._at == len(self._text):
            raise UnreadableError("The file is empty.", "An empty configuration is {}.")
        value = self._value((), None)
        self._skip_blank()
        if self._at < len(self._text):
            self._stop(
                "There is more text after the end of the configuration.", "Remove it, or look for a brace too many."
            )
        return value

    def _value(self, path: Path, key_start: int | None) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            self._stop(f"There are more than {MAX_VALUES} values in this file.")
        if len(path) > MAX_DEPTH:
            self._stop(f"This is nested more than {MAX_DEPTH} levels deep.")
        start = self._at
        first = self._peek()
        value: Any
        if first == "{":
            value = self._object(path)
        elif first == "[":
            value = self._array(path)
        elif first == '"':
            value = self._string()
        elif first == "-" or first.isdecimal():
            value = self._number()
        else:
            value = self._word()
        self._found.positions.setdefault(path, ValuePosition(start, self._at, key_start))
        return value

    def _object(self, path: Path) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._step()
        while not self._took("}"):
            if self._peek() != '"':
                self._stop("A key in double quotes or } is expected here.")
            key_start = self._at
            key = self._string()
            self._skip_blank()
            if not self._took(":"):
                self._stop(f"A colon is expected here, after the key {show(key)}.")
            self._skip_blank()
            value = self._value((*path, key), key_start)
            if key in members:
                self._found.add_duplicate(self._found.lines.place(key_start), (*path, key))
            else:
                members[key] = value
            self._end_of_item("}")
        return members

    def _array(self, path: Path) -> list[Any]:
        items: list[Any] = []
        self._step()
        while not self._took("]"):
            items.append(self._value((*path, len(items)), None))
            self._end_of_item("]")
        return items

    def _end_of_item(self, closer: str) -> None:
        self._skip_blank()
        if self._peek() != closer and not self._took(","):
            self._stop(f"A comma or {closer} is expected here.")
        self._skip_blank()

    def _string(self) -> str:
        place = self._found.lines.place(self._at)
        start, match = self._at, _STRING.match(self._text, self._at)
        self._at = match.end() if match else start
        ending = self._peek()
        if ending == "\\":
            self._stop("This escape does not exist in JSON.", r"A backslash itself is written \\.")
        if ending != '"':
            self._stop(
                "A line break or control character can't stand in a string.",
                'End the string with ", or write it as an escape.',
            )
        self._at += 1
        text: str = json.loads(self._text[start : self._at])
        require_encodable(text, place)
        return text

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if match is None or len(match.group()) > _MAX_DIGITS:
            self._stop("This is not a number of JSON.", "Put it in quotes if it is a string.")
        self._at = match.end()
        return float(match.group()) if match["rest"] else int(match.group())

    def _word(self) -> bool | None:
        match = _WORD.match(self._text, self._at)
        word = match.group() if match else self._peek()
        if word not in _WORDS:
            if word == "/":
                self._stop("This comment does not end.", "Close it with */.")
            self._stop(f"{show(word)} is not a value.", "Strings are written in double quotes.")
        self._at += len(word)
        return _WORDS[word]

    def _peek(self) -> str:
        if self._at >= len(self._text):
            self._stop("The file ends in the middle of something.", "A quote, bracket or brace is missing.")
        return self._text[self._at]

    def _took(self, letter: str) -> bool:
        if self._peek() != letter:
            return False
        self._at += 1
        return True

    def _step(self) -> None:
        self._at += 1
        self._skip_blank()

    def _skip_blank(self) -> None:
        match = BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _stop(self, message: str, hint: str = "") -> NoReturn:
        raise UnreadableError(message, hint, self._found.lines.place(self._at))
