"""Bodies that came compressed although nothing of the kind was asked for: gzip and deflate, bounded in size and in ratio.

Pure. A bomb costs at most the bound and never more than a hundred times what was sent. Must not: read any other coding, or several
of them one upon the other. Enforces T21 for REST answers.
"""

from __future__ import annotations

import zlib
from typing import Final

MAX_RATIO: Final = 100
_FREE_BYTES: Final = 1024 * 1024
"""Small bodies may compress as well as they like: a megabyte harms nobody."""
_WINDOWS: Final = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class UnknownEncodingError(ValueError):
    """A coding we do not read."""


class DecompressionBombError(ValueError):
    """More than the bound allows."""


class CorruptEncodingError(ValueError):
    """Bytes that are not what their header says, or not all of it."""


def decompress(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body without its coding."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    window = _WINDOWS.get(name)
    if window is None:
        raise UnknownEncodingError(f"the coding {name[:40]!r}, though only identity was asked for")
    bound = min(max_bytes, max(_FREE_BYTES, MAX_RATIO * len(body)))
    try:
        return _unpack(body, window, bound)
    except zlib.error:
        if name != "deflate":
            raise CorruptEncodingError(f"{name} that can't be unpacked") from None
    try:
        return _unpack(body, -zlib.MAX_WBITS, bound)  # half of the servers that say deflate mean it without its frame
    except zlib.error:
        raise CorruptEncodingError(f"{name} that can't be unpacked") from None


def _unpack(body: bytes, window: int, bound: int) -> bytes:
    machine = zlib.decompressobj(wbits=window)
    data = machine.decompress(body, bound + 1)
    if len(data) > bound:
        raise DecompressionBombError(f"more than {bound} bytes when unpacked")
    if not machine.eof:
        raise CorruptEncodingError("compressed data that ends too early")
    if machine.unused_data:
        raise CorruptEncodingError("compressed data with something behind it")
    return data
