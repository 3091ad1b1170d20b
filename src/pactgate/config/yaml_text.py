"""Reads YAML 1.2: a configuration with positions, a document of somebody else as plain values.

Both are built from the parser's events without recursion. No tag makes an object, and plain words have the meaning of the
YAML 1.2 core schema (`no` is a string, `1:30` is not 90). Depth and number of values are bounded, an alias counts as much as the
value it repeats, and a key given twice is a problem. Must not: read files, or know any setting.
"""

from __future__ import annotations

import math
import re
from types import NoneType
from typing import Any, Final

import yaml
from yaml import events

from pactgate.config.problems import (
    MAX_DEPTH,
    MAX_VALUES,
    ConfigFindings,
    FilePosition,
    LineIndex,
    Path,
    UnreadableError,
    ValuePosition,
    require_encodable,
    show,
)

_TAG: Final = "tag:yaml.org,2002:"
_TAGGED_TYPES: Final = {"null": (NoneType,), "bool": (bool,), "int": (int,), "float": (int, float)}
_MERGE: Final = "<<"
_MAX_DIGITS: Final = 300
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def read_yaml(text: str, found: ConfigFindings) -> Any:
    """The values of a configuration: strict, and with positions. Raises UnreadableError."""
    value = _Builder(text, MAX_DEPTH, MAX_VALUES, found).build()
    if () not in found.positions:
        raise UnreadableError("The file is empty.", "An empty configuration is {}.")
    return value


def read_yaml_values(text: str, *, max_depth: int, max_values: int) -> Any:
    """The plain values of a text somebody else wrote: tags are ignored, and merge keys are followed. Raises UnreadableError."""
    return _Builder(text, max_depth, max_values).build()


def plain_scalar(text: str) -> Any:
    """The meaning of a word without quotes. A number that JSON can't carry stays a string."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _MAX_DIGITS and text[0] in "-+.0123456789":
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    return text


class _Open:
    """A list or mapping whose end has not come yet. `key` waits for its value; a `dropped` value is read and not kept."""

    __slots__ = ("count", "dropped", "end", "height", "key", "keys", "merged", "start", "value")

    def __init__(self, value: Any, start: Any, count: int) -> None:
        self.value = value
        self.start = start
        self.count = count
        self.height = 0
        self.end = 0
        self.key: Any = None
        self.keys: dict[str, Any] = {}
        self.dropped = False
        self.merged: list[Any] = []


class _Builder:
    """Builds values from events; with `found`, strictly and with positions."""

    def __init__(self, text: str, max_depth: int, max_values: int, found: ConfigFindings | None = None) -> None:
        self._text = text
        self._max_depth = max_depth
        self._max_values = max_values
        self._found = found
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """Value, number of values in it, and levels in it."""
        self._count = 0
        self._documents = 0
        self._root: Any = None
        self._handlers = {
            events.ScalarEvent: self._scalar,
            events.AliasEvent: self._alias,
            events.MappingStartEvent: self._begin,
            events.SequenceStartEvent: self._begin,
            events.MappingEndEvent: self._end,
            events.SequenceEndEvent: self._end,
            events.DocumentStartEvent: self._document,
        }

    def build(self) -> Any:
        if (stray := yaml.reader.Reader.NON_PRINTABLE.search(self._text)) is not None:
            place = LineIndex(self._text).place(stray.start())
            raise UnreadableError("This character is not allowed in YAML.", "Remove it, or escape it.", place)
        # The parser in C is five times as fast; PyYAML may have been built without it.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            for event in yaml.parse(self._text, Loader=loader):
                if (handler := self._handlers.get(type(event))) is not None:
                    handler(event)
        except yaml.MarkedYAMLError as error:
            what = ", ".join(part for part in (error.context, error.problem) if part)
            raise _unreadable(f"This is not YAML: {what}.", error.problem_mark or error.context_mark) from None
        except (yaml.YAMLError, ValueError, OverflowError):
            # PyYAML raises these for escapes and directives that name impossible characters or numbers.
            raise _unreadable("This is not YAML: an escape or directive has an impossible number.", None) from None
        return self._root

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _unreadable("There are several YAML documents in this text.", event.start_mark, "Keep one.")

    def _scalar(self, event: Any) -> None:
        self._add_count(1, event)
        if not event.value.isascii():
            require_encodable(event.value, _place(event.start_mark))
        if self._expects_key():
            self._take_key(event)
            return
        end = event.end_mark.index
        if event.style in ("|", ">"):  # its end mark stands behind the empty lines that follow
            end = event.start_mark.index + len(self._text[event.start_mark.index : end].rstrip())
        self._put(self._scalar_value(event), event, end, 1, 0)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _unreadable(f"The alias {show(event.anchor)} names no value that ends before it.", event.start_mark)
        self._require_no_key(event)
        value, size, height = self._anchors[event.anchor]
        self._add_count(size, event)
        self._require_depth(len(self._open) + height, event)
        self._put(value, event, event.end_mark.index, size, height)

    def _begin(self, event: Any) -> None:
        self._require_no_key(event)
        self._require_depth(len(self._open) + 1, event)
        self._add_count(1, event)
        is_mapping = type(event) is events.MappingStartEvent
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            self._require_lenient(event)
        self._open.append(_Open({} if is_mapping else [], event, self._count))

    def _end(self, event: Any) -> None:
        ended = self._open.pop()
        for source in ended.merged:
            for key, value in source.items():
                ended.value.setdefault(key, value)
        # The end mark of a block stands at the next token; its last value ends before that.
        end = event.end_mark.index if ended.start.flow_style else ended.end
        self._put(ended.value, ended.start, end, self._count - ended.count + 1, ended.height + 1)

    def _put(self, value: Any, start: Any, end: int, size: int, height: int) -> None:
        if start.anchor is not None:
            self._anchors[start.anchor] = value, size, height
        if self._found is not None:
            key_start = self._open[-1].key.start_mark.index if self._open and self._open[-1].key else None
            position = ValuePosition(start.start_mark.index, end, key_start)
            self._found.positions.setdefault(self._path(), position)
        if not self._open:
            self._root = value
            return
        around = self._open[-1]
        around.end = end
        around.height = max(around.height, height)
        key, around.key = around.key, None
        if isinstance(around.value, list):
            around.value.append(value)
        elif self._found is None and key.value == _MERGE and isinstance(value, dict | list):
            around.keys.pop(_MERGE)
            around.merged += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
        elif not around.dropped:
            around.value[key.value] = value

    def _path(self) -> Path:
        return tuple(one.key.value if isinstance(one.value, dict) else len(one.value) for one in self._open)

    def _take_key(self, event: Any) -> None:
        around, mark = self._open[-1], event.start_mark
        around.key = event
        first = around.keys.setdefault(event.value, mark)
        if self._found is None:
            if first is not mark:
                raise _unreadable(f"The key {show(event.value)} is given twice (first in line {first.line + 1}).", mark)
            return
        path = self._path()
        is_string = isinstance(self._scalar_value(event), str)
        around.dropped = first is not mark or not is_string
        if not is_string:
            self._found.add_at(_place(mark), path[:-1], "A key must be a string.", "Put the key in quotes.")
        elif first is not mark:
            self._found.add_duplicate(_place(mark), path)

    def _scalar_value(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is None:
            return plain_scalar(text) if event.implicit[0] else text
        kind = event.tag.removeprefix(_TAG)
        if kind in ("!", "str"):
            return text
        value = plain_scalar(text)
        if type(value) in _TAGGED_TYPES.get(kind, ()):
            return float(value) if kind == "float" else value
        self._require_lenient(event)
        return text

    def _expects_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _require_no_key(self, event: Any) -> None:
        if self._expects_key():
            raise _unreadable("A key must be a string.", event.start_mark, "Put the key in quotes.")

    def _require_lenient(self, event: Any) -> None:
        if self._found is not None:
            hint = "Write plain values, without tags."
            raise _unreadable(f"The tag {show(event.tag)} can't be used here.", event.start_mark, hint)

    def _add_count(self, count: int, event: Any) -> None:
        self._count += count
        if self._count > self._max_values:
            message = f"There are more than {self._max_values} values, those of aliases included."
            raise _unreadable(message, event.start_mark)

    def _require_depth(self, depth: int, event: Any) -> None:
        if depth > self._max_depth:
            raise _unreadable(f"This is nested more than {self._max_depth} levels deep.", event.start_mark)


def _unreadable(message: str, mark: Any, hint: str = "") -> UnreadableError:
    return UnreadableError(message, hint, _place(mark))


def _place(mark: Any) -> FilePosition | None:
    return FilePosition(mark.line + 1, mark.column + 1) if mark is not None else None
