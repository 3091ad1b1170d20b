"""Limits of a JSON text that hold before it is decoded: its depth, the number of its values, no duplicate keys in one object.

Pure. The time is linear in the text, and the memory is a small multiple of it, whatever the text says.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from itertools import accumulate
from typing import Any, Final

import msgspec

MAX_CONTAINERS: Final = 250_000
"""Arrays and objects in one message: a decoded one takes up to a hundred times the bytes it was written in."""
MAX_VALUES: Final = 100_000
"""Values in one request: decoding and checking so many takes 0.1 s and 10 MB, five million take seconds and 200 MB."""
MAX_DIGITS: Final = 4300
"""Of an integer in a request: Python reads no longer one, and a server that only expects errors of JSON ends there."""
_MAX_SEARCHED_VALUES: Final = 1_000_000
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b'"[]{},'))
_WINDOW_BYTES: Final = 64 * 1024
_BACKSLASH: Final = ord("\\")
_ESCAPE_BYTES: Final = 64
_BETWEEN_STRINGS: Final = b"0123456789+-.eE,:[]{} \t\r\n"
_LITERALS: Final = (b"tru", b"fals", b"null")
"""Without the letter that numbers have too."""
_CUT_LITERALS_BYTES: Final = 6
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_ESCAPED_COLON: Final = b"\\u003"

_any: Final = msgspec.json.Decoder()
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode


def check_shape(text: bytes, max_depth: int) -> str | None:
    """Why the text nests too deep or holds too many brackets, found in linear time before anything recursive sees it.

    Text that is not JSON may get either verdict, but never None while a reader could exceed the bounds in it.
    """
    if count_openings(text, max_depth + 1) <= max_depth:
        return None
    steps = array("b", _outside_strings(_without_escapes(text)).translate(_STEPS, _NOT_BRACKETS))
    if len(steps) > 2 * MAX_CONTAINERS:
        return f"The message holds more than {MAX_CONTAINERS} arrays and objects."
    if max(accumulate(steps), default=0) > max_depth:
        return f"The message is nested deeper than {max_depth} levels."
    return None


def count_openings(text: bytes, enough: int) -> int:
    """How many opening brackets a text has, those in strings too. Of each kind only `enough` are counted: millions would take 60 ms.

    `replace` searches with `memchr` and `count` looks at each byte: of the 400 bytes of a usual call, this takes a third of the time.
    """
    return len(text) - len(text.replace(b"{", b"", enough).replace(b"[", b"", enough))


def has_more_values(text: bytes, max_values: int) -> bool:
    """Whether a JSON text has more than `max_values` values, counted on its bytes. At most three passes over a text of ordinary size.

    The count has one value for each comma and each opening bracket outside of strings. It is never too small, and an empty array or
    object counts twice at most. Of a text that is not JSON, the part before the first error is counted in the same way.
    """
    if len(text) <= 2 * max_values:  # a value and its comma take two bytes
        return False
    if text.count(b",") + text.count(b"[") + text.count(b"{") <= max_values:
        return False
    plain = _without_escapes(text)
    if plain.count(b'"') > 4 * max_values:  # a member has two strings, and a string two quotation marks
        return True
    outside = _outside_strings(plain)
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{") > max_values


def has_long_run(text: bytes, run_bytes: int) -> bool:
    """Whether one string of a JSON text takes `run_bytes` bytes. One of twice the size is found, unless it has digits and marks alone.

    Looks at windows of the size. Nearly every window has a quotation mark at its start, so this takes no time.
    """
    return any(_is_run(text, start, start + run_bytes) for start in range(0, len(text) - run_bytes + 1, run_bytes))


def _is_run(text: bytes, start: int, end: int) -> bool:
    """Whether the window is a part of one string: it has no quotation mark but escaped ones."""
    first = text.find(b'"', start, end)
    if first < 0:
        rest = text[start:end].translate(None, _BETWEEN_STRINGS)
        for literal in _LITERALS:
            rest = rest.replace(literal, b"")
        return len(rest) > _CUT_LITERALS_BYTES
    if text[first - 1] != _BACKSLASH:
        return False
    before = text[max(0, start - _ESCAPE_BYTES) : start]
    is_cut = (len(before) - len(before.rstrip(b"\\"))) % 2  # the window starts in the middle of an escape
    plain = text[start + is_cut : end].replace(b"\\\\", b"")
    return plain.count(b'"') == plain.count(b'\\"')


def _without_escapes(text: bytes) -> bytes:
    """The text without escaped backslashes and quotation marks: each quotation mark that is left begins or ends a string."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text


def _outside_strings(plain: bytes) -> bytes:
    """Brackets and commas outside of strings. Reads a window at a time, because millions of pieces at once would take 50 bytes each."""
    marks = plain.translate(None, _NOT_STRUCTURE)
    found, is_inside = [], 0
    for start in range(0, len(marks), _WINDOW_BYTES):
        pieces = marks[start : start + _WINDOW_BYTES].split(b'"')
        found.append(b"".join(pieces[is_inside::2]))
        is_inside = (is_inside + len(pieces) - 1) % 2
    return b"".join(found)


def find_duplicate_key(text: bytes) -> str | None:
    """A key that stands twice in one object of a valid JSON text, at any depth, compared after unescaping.

    Cheap first: a second key is lost in decoding and its colon with it, so a text that still has all its colons when it
    is written again had none. That holds unless a colon was written as an escape.
    """
    if _ESCAPED_COLON not in text:
        try:
            if _encode(_any.decode(text)).count(b":") == text.count(b":"):
                return None
        except msgspec.ValidationError:
            pass  # a number beyond the machine's range: only the exact walk below can read it
    try:
        json.loads(text, object_pairs_hook=_refuse_duplicates, parse_int=len, parse_float=len)
    except _DuplicateKeyError as found:
        return found.key
    return None


def has_long_integer(text: bytes) -> bool:
    """Whether an integer of a valid JSON text has more than `MAX_DIGITS` digits."""
    try:
        _any.decode(text)
    except msgspec.ValidationError:  # a number beyond the machine's range
        lengths = [0]
        json.loads(text, parse_int=lambda integer: lengths.append(len(integer.lstrip("-"))), parse_float=len)
        return max(lengths) > MAX_DIGITS
    return False


def has_duplicate_member(text: bytes) -> bool:
    """Whether an object has a key twice at its first level. Its values are copied as they are and never walked.

    A repeated member is lost in decoding and its colon with it. Values keep their colons, and a key that holds one itself is rare.
    Raises msgspec.DecodeError for anything but an object.
    """
    members = _members.decode(text)
    if any(":" in key for key in members):
        return find_duplicate_key(text) is not None
    return _encode(members).count(b":") != text.count(b":")


def may_repeat_key(text: bytes) -> bool:
    """Whether a key stands twice in one object, at any depth, or there are too many values to look at."""
    return has_more_values(text, _MAX_SEARCHED_VALUES) or find_duplicate_key(text) is not None


def has_keys_once(text: bytes, value: Any) -> bool:
    """Whether certainly no key stands twice in one object of a text, at any depth; `value` is the decoded text.

    A repeated key is lost in decoding and its colon with it, so a text that has all its colons when it is written again had none, unless
    a colon was written as an escape. Most peers write JSON as we do, and then comparing the bytes costs less than counting.
    """
    encoded = _encode(value)
    return encoded == text or (_ESCAPED_COLON not in text and encoded.count(b":") == text.count(b":"))


def repeats_key(text: bytes, value: Any) -> bool:
    """Whether a key stands twice in one object of a text, at any depth; `value` is the decoded text."""
    return not has_keys_once(text, value) and find_duplicate_key(text) is not None


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return fields
