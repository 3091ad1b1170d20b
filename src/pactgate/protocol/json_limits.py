"""What a JSON text may look like before and beside what it says: how deep, how many parts, no key twice in one object.

Pure, and in time linear in the text, whatever it says.
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
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_ESCAPED_COLON: Final = b"\\u003"

_any: Final = msgspec.json.Decoder()
_encode: Final = msgspec.json.Encoder().encode


def check_shape(text: bytes, max_depth: int) -> str | None:
    """Why the text nests too deep or holds too many brackets, found in linear time before anything recursive sees it.

    Text that is not JSON may get either verdict, but never None while a reader could exceed the bounds in it.
    """
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return None
    outside_strings = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    steps = array("b", outside_strings.translate(_STEPS, _NOT_BRACKETS))
    if len(steps) > 2 * MAX_CONTAINERS:
        return f"The message holds more than {MAX_CONTAINERS} arrays and objects."
    if max(accumulate(steps), default=0) > max_depth:
        return f"The message is nested deeper than {max_depth} levels."
    return None


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


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return fields
