"""The canonical form of a JSON text, and its digest: equal values have equal bytes, however they are written.

As RFC 8785 has it: no white space, members in order, one spelling for each number and string. Members are in the order of code points
(the RFC: of UTF-16 units), which differs only for names beyond U+FFFF. Pure.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Final

import msgspec


def _number(text: str) -> int | float:
    """`1.0` and `1e0` are the integer 1, and `-0.0` is 0."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number beyond the range of the machine")
    return int(value) if value.is_integer() else value


_NOT_ASCII: Final = re.compile(r"[^\x20-\x7e]")
_decoder: Final = msgspec.json.Decoder(float_hook=_number)


def canonical(data: bytes) -> bytes:
    """The canonical form of a JSON text. One with a number beyond the machine's range is only written in ASCII on one line.

    Raises msgspec.DecodeError or UnicodeDecodeError for anything but JSON.
    """
    try:
        return msgspec.json.encode(_decoder.decode(data), order="deterministic")
    except msgspec.ValidationError:
        return as_ascii(data).encode()


def as_ascii(data: bytes) -> str:
    """A JSON text on one line with every character escaped that is not visible ASCII: the value stays the same."""
    return _NOT_ASCII.sub(_escaped, data.decode())


def _escaped(found: re.Match[str]) -> str:
    if found[0] in "\t\r\n":  # between values: within a string they are escaped already
        return " "
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


def digest_of(data: bytes) -> str:
    """The SHA-256 of the canonical form of a JSON text."""
    return f"sha256:{hashlib.sha256(canonical(data)).hexdigest()}"
