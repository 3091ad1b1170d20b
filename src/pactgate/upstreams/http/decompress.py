"""Decompresses bodies that came as gzip or deflate although the request asked for none, with bounds on size and ratio.

Pure. A decompression bomb costs at most the bound, and never more than a hundred times the bytes sent. Must not: read any other encoding,
or several on top of each other. Used for responses of REST APIs, which often compress unasked.
"""

from __future__ import annotations

import zlib
from typing import Final

MAX_RATIO: Final = 100
_FREE_BYTES: Final = 1024 * 1024
"""Up to a megabyte the ratio does not matter."""
_WINDOWS: Final = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


class DecompressionBombError(ValueError):
    """The decompressed body exceeds the bound."""


class UndecodableBodyError(ValueError):
    """The encoding is not supported, or the body is not in the encoding its header names, or is incomplete."""


def decompress(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body without its encoding."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    window = _WINDOWS.get(name)
    if window is None:
        raise UndecodableBodyError(f"the encoding {name[:40]!r}, though only identity was asked for")
    bound = min(max_bytes, max(_FREE_BYTES, MAX_RATIO * len(body)))
    # Many servers send raw deflate without the zlib header.
    for wbits in (window, -zlib.MAX_WBITS) if name == "deflate" else (window,):
        try:
            return _unpack(body, wbits, bound)
        except zlib.error:
            continue
    raise UndecodableBodyError(f"{name} that can't be unpacked")


def _unpack(body: bytes, window: int, bound: int) -> bytes:
    decompressor = zlib.decompressobj(wbits=window)
    data = decompressor.decompress(body, bound + 1)
    if len(data) > bound:
        raise DecompressionBombError(f"more than {bound} bytes when unpacked")
    if not decompressor.eof:
        raise UndecodableBodyError("compressed data that ends too early")
    if decompressor.unused_data:
        raise UndecodableBodyError("compressed data with something behind it")
    return data
