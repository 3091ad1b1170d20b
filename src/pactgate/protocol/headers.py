"""The `Mcp-*` headers of modern HTTP: their value codec, and tool arguments mirrored into `Mcp-Param-*`.

Both ends use it: what we send upstream is mirrored by the same rules that judge what callers send us. Schemas are foreign
and walked without recursion; data inside them (`default`, `enum`, `examples`) is never taken for an annotation.
Must not: decide what a header means to a request as a whole; that is the ladder in `modern`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"
PARAM_PREFIX: Final = "Mcp-Param-"
ANNOTATION: Final = "x-mcp-header"

_OPENING: Final = "=?base64?"
_CLOSING: Final = "?="
_PLAIN: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_WHOLE_NUMBER: Final = re.compile(r"(-?[0-9]{1,400})(?:\.0{1,400})?")
_MIRRORED_TYPES: Final = frozenset({"string", "integer", "boolean"})

_ONE_SCHEMA: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"})

_Path = tuple[str, ...] | None


class HeaderParam(Struct, frozen=True):
    """An argument that a modern HTTP request mirrors into `Mcp-Param-<header>`; `path` leads to it through `properties`."""

    header: str
    path: tuple[str, ...]


def encode_value(text: str) -> str:
    """The text as a header value: itself where HTTP carries it unchanged and nobody could take it for an encoded one."""
    if _PLAIN.fullmatch(text) and not (text.startswith(_OPENING) and text.endswith(_CLOSING)):
        return text
    return f"{_OPENING}{base64.b64encode(text.encode()).decode()}{_CLOSING}"


def decode_value(text: str) -> str | None:
    """The text a header value stands for, or None for what no sender could have meant: broken base64, non-ASCII."""
    is_encoded = len(text) >= len(_OPENING) + len(_CLOSING) and text.startswith(_OPENING) and text.endswith(_CLOSING)
    if not is_encoded:
        return text if _PLAIN.fullmatch(text) else None
    payload = text[len(_OPENING) : -len(_CLOSING)]
    try:
        decoded = base64.b64decode(payload, validate=True)
        # Base64 with stray bits has several spellings of one text; only the one that every encoder writes is taken.
        return decoded.decode() if base64.b64encode(decoded).decode() == payload else None
    except (binascii.Error, ValueError):
        return None


def header_params(input_schema: Any) -> tuple[HeaderParam, ...] | str:
    """The arguments a tool wants mirrored, or why its annotations break the rules (HTTP clients then drop the tool)."""
    found: dict[str, HeaderParam] = {}
    for path, schema in _schemas(input_schema):
        if ANNOTATION not in schema:
            continue
        if not path:
            return f"{ANNOTATION} stands where no chain of properties leads"
        place, header = ".".join(path), schema[ANNOTATION]
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"{ANNOTATION} of {place!r} is not the name of a header"
        kind = schema.get("type")
        if not isinstance(kind, str) or kind not in _MIRRORED_TYPES:
            return f"{ANNOTATION} of {place!r} needs the type string, integer or boolean"
        if header.lower() in found:
            return f"{ANNOTATION} {header!r} of {place!r} is taken by another property"
        found[header.lower()] = HeaderParam(header, path)
    return tuple(found.values())


def mirror(params: tuple[HeaderParam, ...], arguments: Any) -> tuple[tuple[str, str], ...]:
    """The `Mcp-Param-*` headers that go with these arguments; what is absent, null or no scalar has none."""
    mirrored = ((param.header, _rendered(_at(arguments, param.path))) for param in params)
    return tuple((PARAM_PREFIX + header, encode_value(text)) for header, text in mirrored if text is not None)


def check_mirror(params: tuple[HeaderParam, ...], arguments: Any, headers: Mapping[str, list[str]]) -> str | None:
    """Why the received `Mcp-Param-*` headers disagree with the arguments, or None. Headers nobody asked for are ignored.

    A header whose argument is missing is refused too: somebody on the way may have trusted a value that isn't there.
    """
    for param in params:
        name = PARAM_PREFIX + param.header
        received = headers.get(name.lower(), ())
        value = _at(arguments, param.path)
        expected = _rendered(value)
        if len(received) > 1:
            return f"The header {name} was sent more than once."
        if expected is None and received:
            return f"The header {name} was sent, but its argument was not."
        if expected is None:
            continue
        if not received:
            return f"The header {name} is missing."
        if not _agrees(decode_value(received[0]), expected, value):
            return f"The header {name} differs from its argument."
    return None


def _schemas(root: Any) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Every schema inside a schema with the chain of properties that leads to it, None where something else was crossed."""
    waiting: list[tuple[_Path, Any]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        inner: list[tuple[_Path, Any]] = []
        for keyword, held in schema.items():
            if keyword == "properties" and isinstance(held, dict):
                inner.extend((None if path is None else (*path, name), below) for name, below in held.items())
            elif keyword in _SCHEMA_MAPS and isinstance(held, dict):
                inner.extend((None, below) for below in held.values())
            elif keyword in _SCHEMA_LISTS and isinstance(held, list):
                inner.extend((None, below) for below in held)
            elif keyword in _ONE_SCHEMA:
                inner.append((None, held))
        waiting.extend(reversed(inner))


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _rendered(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) else None


def _agrees(received: str | None, expected: str, value: Any) -> bool:
    """Numbers agree by value (`42` and `42.0`), everything else letter by letter."""
    if received == expected:
        return True
    if received is None or isinstance(value, str | bool):
        return False
    number = _WHOLE_NUMBER.fullmatch(received)
    return number is not None and int(number[1]) == value


def without_nulls(params: Sequence[HeaderParam], arguments: Any) -> Any:
    """A copy of the arguments without the annotated ones that are null."""
    given = arguments
    for param in params:
        given = _without_null(given, param.path)
    return given


def _without_null(value: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(value, dict) or path[0] not in value:
        return value
    held = value[path[0]]
    if len(path) > 1:
        return {**value, path[0]: _without_null(held, path[1:])}
    return {name: each for name, each in value.items() if name != path[0]} if held is None else value
