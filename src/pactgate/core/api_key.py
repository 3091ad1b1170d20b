"""The form of an API key, `pg_<id>_<secret>_<checksum>` in letters and digits: the secret has 256 random bits.

The prefix lets secret scanners find keys; the checksum shows typos and made-up keys before anything is looked up. Pure. Must not: make
randomness, or know which keys exist.
"""

from __future__ import annotations

import re
from typing import Final
from zlib import crc32

ID_CHARS: Final = 8
SECRET_BITS: Final = 256
PREFIX: Final = "pg_"
TRACE: Final = r"pg_[0-9A-Za-z]{8}_[0-9A-Za-z]{16,43}(?:_[0-9A-Za-z]{1,6})?"
"""A pattern of keys, also of mistyped and cut ones: what looks like one is masked wherever it is written."""
MAX_TRACE_CHARS: Final = 62
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_CHARS: Final = 43
_CHECK_CHARS: Final = 6
_KEY: Final = re.compile(r"pg_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}")


def write_key(id_number: int, secret: int) -> str:
    """The key of two random numbers."""
    body = f"{PREFIX}{_digits(id_number, ID_CHARS)}_{_digits(secret, _SECRET_CHARS)}"
    return f"{body}_{_checksum(body)}"


def read_id(text: str) -> str | None:
    """The id of a key; None for what has not the form of a key, or another checksum."""
    match = _KEY.fullmatch(text)
    if match is None or _checksum(text[: -_CHECK_CHARS - 1]) != text[-_CHECK_CHARS:]:
        return None
    return match[1]


def _checksum(body: str) -> str:
    return _digits(crc32(body.encode()), _CHECK_CHARS)


def _digits(number: int, count: int) -> str:
    found = []
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        found.append(_DIGITS[digit])
    return "".join(found)
