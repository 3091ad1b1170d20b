"""The text of an OpenAPI document as plain values: JSON or YAML, bounded in depth and number, whatever the text is.

YAML is read event by event, never constructed: no tag makes an object, plain words mean what YAML 1.2 says, and an alias is the value
itself, not a copy, so that a text can't multiply itself in memory. Keys are texts, as OpenAPI wants them (`200:` is "200").
Must not: read files, or know what the values mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pactgate.core.display import flat

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 2_000_000
MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024

_MAX_DIGITS: Final = 300
_STR_TAG: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}|0x[0-9a-fA-F]{1,300}|0o[0-7]{1,300}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class UnreadableDocumentError(Exception):
    """`why` continues a sentence about the document."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def read_text(data: bytes) -> Any:
    """The values of a document. Raises UnreadableDocument."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise UnreadableDocumentError(f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableDocumentError("is not UTF-8 text") from None
    start = text.lstrip()[:1]
    if not start:
        raise UnreadableDocumentError("is empty")
    if start == "<":
        raise UnreadableDocumentError(
            "is a web page, not an OpenAPI document; give the address of the JSON or YAML itself"
        )
    return _read_json(text) if start in "{[" else _read_yaml(text)


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise UnreadableDocumentError(f"is not JSON: {flat(str(problem), 200)}") from None
    except RecursionError:
        raise UnreadableDocumentError("is nested too deep") from None


def _read_yaml(text: str) -> Any:
    import yaml  # here: most gateways never need it

    # The parser in C is five times as quick; PyYAML may have been built without it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder().build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}" if mark is not None else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise UnreadableDocumentError(f"is not YAML: {flat(what, 200)}{where}") from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML lets these out of escapes and directives that name impossible characters or numbers.
        raise UnreadableDocumentError("is not YAML: a character, escape or directive in it is impossible") from None


class _Open:
    """A list or table whose end has not come yet. `key` is a table's key that still waits for its value."""

    __slots__ = ("anchor", "has_key", "key", "merged", "value")

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key = ""
        self.has_key = False
        self.merged: list[Any] = []


class _Builder:
    """Values from events, without recursion."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, Any] = {}
        self._count = 0
        self._root: Any = None
        self._documents = 0

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            kind = type(event).__name__
            if kind == "ScalarEvent":
                self._scalar(event)
            elif kind == "AliasEvent":
                self._alias(event)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._begin({} if kind == "MappingStartEvent" else [], event.anchor)
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._end()
            elif kind == "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise UnreadableDocumentError("holds several YAML documents; only one can be meant")
        return self._root

    def _begin(self, value: Any, anchor: str | None) -> None:
        if len(self._open) == MAX_DEPTH:
            raise UnreadableDocumentError(f"is nested more than {MAX_DEPTH} levels deep")
        if self._open and isinstance(self._open[-1].value, dict) and not self._open[-1].has_key:
            raise UnreadableDocumentError("has a key that is not a text")
        self._open.append(_Open(value, anchor))
        self._tally()

    def _end(self) -> None:
        ended = self._open.pop()
        for source in ended.merged:
            for key, value in source.items():
                ended.value.setdefault(key, value)
        self._put(ended.value, ended.anchor)

    def _scalar(self, event: Any) -> None:
        self._tally()
        if not event.value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in event.value):
            raise UnreadableDocumentError("has a text with half of a surrogate pair")
        if self._open and isinstance(self._open[-1].value, dict) and not self._open[-1].has_key:
            self._open[-1].key, self._open[-1].has_key = event.value, True
            return
        is_plain = event.implicit[0] and event.tag is None
        self._put(_plain(event.value) if is_plain else event.value, event.anchor)

    def _alias(self, event: Any) -> None:
        self._tally()
        if event.anchor not in self._anchors:
            raise UnreadableDocumentError(f"has an alias *{flat(event.anchor, 60)} of something unknown, or of itself")
        value = self._anchors[event.anchor]
        around = self._open[-1] if self._open else None
        if around is not None and isinstance(around.value, dict) and not around.has_key:
            if not isinstance(value, str):
                raise UnreadableDocumentError("has a key that is not a text")
            around.key, around.has_key = value, True
            return
        self._put(value, None)

    def _put(self, value: Any, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        if not self._open:
            self._root = value
            return
        around = self._open[-1]
        if isinstance(around.value, list):
            around.value.append(value)
            return
        around.has_key = False
        if around.key == _MERGE and isinstance(value, dict | list):
            around.merged += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
        else:
            around.value[around.key] = value

    def _tally(self) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            raise UnreadableDocumentError(f"has more than {MAX_VALUES} values")


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _MAX_DIGITS and text[0] in "-+.0123456789":
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    return text
