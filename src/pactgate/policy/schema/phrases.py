"""The assertions of JSON Schema, and what each demands as a phrase: "must be a number".

Must not: speak of the value that failed; only of what the schema asks for, which is public. Texts of a schema are its server's: they
are cut and made fit to be shown. Serves the messages of S0/ECO-300.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from pactgate.core.display import flat
from pactgate.protocol.messages import encode_json

_SHOWN_CHARS: Final = 200
_SHOWN_OPTIONS: Final = 20
_LONG_NUMBER: Final = 10**300

_PHRASES: Final = {
    "const": "must be {}",
    "multipleOf": "must be a multiple of {}",
    "maximum": "must be at most {}",
    "exclusiveMaximum": "must be less than {}",
    "minimum": "must be at least {}",
    "exclusiveMinimum": "must be more than {}",
    "maxLength": "must have at most {} characters",
    "minLength": "must have at least {} characters",
    "pattern": "must match the pattern {}",
    "maxItems": "must have at most {} items",
    "minItems": "must have at least {} items",
    "uniqueItems": "must not have an item twice",
    "maxProperties": "must have at most {} members",
    "minProperties": "must have at least {} members",
}
ASSERTIONS: Final = ("type", "enum", *_PHRASES)
"""In the order they are looked at: what makes a later one slow or pointless comes before it."""

_TYPES: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def sentence(keyword: str, wanted: Any) -> str:
    """What a keyword with this value demands."""
    if keyword == "type":
        return f"must be {names_of_types([wanted])}"
    if keyword == "enum":
        more = f" or {len(wanted) - _SHOWN_OPTIONS} others" if len(wanted) > _SHOWN_OPTIONS else ""
        return f"must be one of {_shown(wanted[:_SHOWN_OPTIONS])}{more}"
    return _PHRASES[keyword].format(_shown(wanted))


def names_of_types(types: Iterable[Any]) -> str:
    """`a string or null`, from values of `type`, which may be lists."""
    names = [name for one in types for name in (one if isinstance(one, list) else [one])]
    return " or ".join(dict.fromkeys(_TYPES.get(name, "of another type") for name in names))


def has_twins(value: Any) -> bool:
    """Whether a list holds the same item twice, as JSON Schema counts: 1 and 1.0 are the same, 1 and true are not.

    Linear whatever the items are: they are compared by texts, whose hashes nobody can aim at.
    """
    if not isinstance(value, list):
        return False
    return len({_written(item) for item in value}) != len(value)


def count_of_values(value: Any, most: int) -> int:
    """How many values a value holds, itself included; `most` or a little more where they are more than that."""
    count, waiting = 0, [value]
    while waiting and count < most:
        holder = waiting.pop()
        inner = holder.values() if isinstance(holder, dict) else holder
        count += 1 + len(inner)
        waiting += [one for one in inner if isinstance(one, dict | list)]
    return count


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((name, _written(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_written, value))
    if isinstance(value, bool) or value is None:
        return f"={value}"
    if isinstance(value, str):
        return f"'{value}"
    if isinstance(value, float):
        if not value.is_integer():
            return repr(value)
        value = int(value)
    if isinstance(value, int) and -_LONG_NUMBER < value < _LONG_NUMBER:
        return str(value)
    sign, digits, exponent = Decimal(value).as_tuple()
    text = "".join(map(str, digits))
    short = text.rstrip("0")
    return f"{sign}:{short}e{int(exponent) + len(text) - len(short)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(option) for option in value)
    return flat(encode_json(value).decode(), _SHOWN_CHARS)
