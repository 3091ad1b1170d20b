"""Blocks of HTTP headers, whichever way they come, as pairs of names in lower case and values. Must not: hide anything."""

from __future__ import annotations

from collections.abc import Hashable

from pactgate.core.recording import Headers


def pairs(headers: Headers) -> list[tuple[str, str]]:
    if isinstance(headers, bytes):
        split = [line.partition(":") for line in headers.decode("latin-1").split("\r\n") if ":" in line]
        return [(name.strip().lower(), value.strip()) for name, _, value in split]
    return [pair for name, value in headers.items() for pair in _each(name, value)]


def identity(headers: Headers) -> Hashable:
    """The same for the same block, as long as the first one lives. Cheap, so that a block that comes again is not read again."""
    if isinstance(headers, bytes):
        return headers
    for name in headers:
        return tuple(headers.items()) if isinstance(name, bytes) else id(headers)
    return None


def _each(name: str | bytes, value: list[str] | bytes) -> list[tuple[str, str]]:
    if isinstance(name, bytes) or isinstance(value, bytes):
        assert isinstance(name, bytes)
        assert isinstance(value, bytes)
        return [(name.decode("latin-1").lower(), value.decode("latin-1"))]
    return [(name.lower(), text) for text in value]
