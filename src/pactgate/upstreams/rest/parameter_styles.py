"""Writes one argument into a path, a query or a header in one of OpenAPI's styles, percent-encoded for its place.

Pure. The result has only characters that are allowed in its place, so that no argument can change another part of the request. Must
not: guess; a value without a spelling in its style raises UnwritableError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Raw

from pactgate.protocol import messages

_TRAVERSAL: Final = re.compile(r"[/\\;\x00-\x1f\x7f]|%(?:2f|5c|2e|3b|00|0a|0d|25)", re.IGNORECASE)
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_items: Final = msgspec.json.Decoder(list[Raw])
_NUMBER: Final = re.compile(rb"-?[0-9]")


class UnwritableError(ValueError):
    """An argument can't be written in its place. The message does not repeat the value."""


Encode = Callable[[str], str]
"""Encodes one string for its place."""


def in_path(text: str) -> str:
    if not text:
        raise UnwritableError("is empty, which would change the path")
    if text in (".", ".."):
        raise UnwritableError("is a dot segment, which would change the path")
    if _TRAVERSAL.search(text):
        raise UnwritableError(
            "has a slash, backslash, semicolon, control character or encoded form of one, which a path can't carry safely"
        )
    return quote(text, safe="")


def in_query(text: str) -> str:
    return quote(text, safe="")


def in_header(text: str) -> str:
    if text and not _HEADER_VALUE.fullmatch(text):
        raise UnwritableError(
            "has line breaks, control or non-ASCII characters, or blanks around it, which a header can't carry"
        )
    return text


def _in_header_list(text: str) -> str:
    if "," in text or "=" in text or not text:
        raise UnwritableError(
            "has an item that is empty or holds a comma or =, which a list in a header can't tell apart"
        )
    return in_header(text)


def path_value(raw: Raw, name: str, style: str, explode: bool) -> str:
    """The text for `{name}`."""
    held = _parse(raw)
    if held is None:
        raise UnwritableError("is null, and a path has no gaps")
    if style == "matrix":
        return _matrix(held, quote(name, safe=""), explode)
    if style == "label":
        return "." + _joined(held, in_path, "." if explode else ",", explode)
    return _joined(held, in_path, ",", explode)


def header_value(raw: Raw, explode: bool) -> str | None:
    """The value of a header, or None where there is nothing to send."""
    held = _parse(raw)
    if held is None:
        return None
    return in_header(held) if isinstance(held, str) else _joined(held, _in_header_list, ",", explode)


def query_pairs(raw: Raw, name: str, style: str, explode: bool) -> Iterator[str]:
    """The `name=value` pairs of one argument, encoded; none for null and for an empty list."""
    held = _parse(raw)
    key = in_query(name)
    if held is None:
        return
    if isinstance(held, dict):
        yield from _object_pairs(held, key, style, explode)
    elif isinstance(held, list):
        yield from _list_pairs(held, key, style, explode)
    else:
        yield f"{key}={in_query(held)}"


_SEPARATORS: Final = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


def _list_pairs(held: list[str], key: str, style: str, explode: bool) -> Iterator[str]:
    if explode:
        yield from (f"{key}={in_query(item)}" for item in held)
    elif held:
        yield f"{key}={_SEPARATORS.get(style, ',').join(map(in_query, held))}"


def _object_pairs(held: dict[str, str], key: str, style: str, explode: bool) -> Iterator[str]:
    if style == "deepObject":
        yield from (f"{key}%5B{in_query(name)}%5D={in_query(item)}" for name, item in held.items())
    elif explode:
        yield from (f"{in_query(name)}={in_query(item)}" for name, item in held.items())
    elif held:
        pieces = (piece for pair in held.items() for piece in pair)
        yield f"{key}={_SEPARATORS.get(style, ',').join(map(in_query, pieces))}"


def _matrix(held: _Held, key: str, explode: bool) -> str:
    if isinstance(held, dict) and explode:
        return "".join(f";{in_path(name)}={in_path(item)}" for name, item in held.items())
    if isinstance(held, list) and explode:
        return "".join(f";{key}={in_path(item)}" for item in held)
    return f";{key}={_joined(held, in_path, ',', False)}"


def _joined(held: _Held, encode: Encode, separator: str, explode: bool) -> str:
    if isinstance(held, str):
        return encode(held)
    if isinstance(held, list):
        pieces = [encode(item) for item in held]
    elif explode:
        pieces = [f"{encode(name)}={encode(item)}" for name, item in held.items()]
    else:
        pieces = [encode(piece) for pair in held.items() for piece in pair]
    if not pieces and encode is in_path:
        raise UnwritableError("is empty, which would change the path")
    return separator.join(pieces)


_Held = str | list[str] | dict[str, str]


def _parse(raw: Raw) -> _Held | None:
    """An argument as strings, one level deep; deeper ones have no spelling outside a body."""
    data = bytes(raw)
    try:
        if data.startswith(b"{"):
            return {name: text_of(item) for name, item in messages.members(data).items() if bytes(item) != b"null"}
        if data.startswith(b"["):
            return [text_of(item) for item in _items.decode(data)]
    except msgspec.DecodeError:
        raise UnwritableError("can't be read") from None
    return None if data == b"null" else text_of(raw)


def text_of(raw: Raw) -> str:
    """A string, number or boolean as it is written outside of JSON; numbers as the client wrote them."""
    data = bytes(raw)
    if _NUMBER.match(data) or data in (b"true", b"false"):
        return data.decode()
    try:
        held = messages.value(data)
    except msgspec.DecodeError:
        raise UnwritableError("can't be read, perhaps for half of a surrogate pair") from None
    if not isinstance(held, str):
        raise UnwritableError("has null, arrays or objects within, which only a body can carry")
    return held
