"""JSON values compared as they were written: numbers keep their digits, objects the order of their members. Pure.

Two numbers are equal if they are the same number (`1.0` and `1`); two objects if they have the same members in any order. `as_written`
compares the notation and the order too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from msgspec import Struct

_MAX_DIFFERENCES: Final = 10
_SHOWN_CHARS: Final = 80
MISSING: Final = object()


class Number(Struct, frozen=True):
    """A number with its digits."""

    text: str

    def is_same(self, other: Number) -> bool:
        try:
            return Decimal(self.text) == Decimal(other.text)
        except InvalidOperation:
            return self.text == other.text


class Members(dict[str, Any]):
    """An object. Of a name that is there twice the last one counts, as in most readers."""


def parse(text: str) -> Any:
    """The value, or ValueError."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=Members)


def at(value: Any, pointer: str) -> Any:
    """The value under a JSON pointer, or MISSING."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def differences(sent: Any, got: Any, pointer: str = "", *, as_written: bool = False) -> Iterator[tuple[str, str]]:
    """Where the values differ, and how: pairs of a pointer and a sentence, at most ten."""
    found = 0
    waiting = [(pointer, sent, got)]
    while waiting and found < _MAX_DIFFERENCES:
        place, one, other = waiting.pop(0)
        if type(one) is type(other) and isinstance(one, Members):
            if as_written and list(one) != [name for name in other if name in one]:
                found += 1
                yield place, f"the members {_listed(one)} arrived in another order: {_listed(other)}"
            waiting += [(f"{place}/{_escaped(name)}", value, other.get(name, MISSING)) for name, value in one.items()]
            waiting += [(f"{place}/{_escaped(name)}", MISSING, other[name]) for name in other if name not in one]
        elif type(one) is type(other) and isinstance(one, list) and len(one) == len(other):
            waiting += [(f"{place}/{n}", *pair) for n, pair in enumerate(zip(one, other, strict=True))]
        elif not _is_same(one, other, as_written=as_written):
            found += 1
            yield place, _sentence(one, other)


def shown(value: Any) -> str:
    """A value for a sentence, cut to a bound."""
    if isinstance(value, Number):
        return value.text[:_SHOWN_CHARS]
    if isinstance(value, Members):
        return f"an object with {_listed(value)}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return json.dumps(value)[:_SHOWN_CHARS]


def _is_same(one: Any, other: Any, *, as_written: bool) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return one.text == other.text if as_written else one.is_same(other)
    return type(one) is type(other) and bool(one == other)


def _sentence(sent: Any, got: Any) -> str:
    if got is MISSING:
        return f"{shown(sent)} was lost"
    if sent is MISSING:
        return f"{shown(got)} was added"
    return f"{shown(sent)} arrived as {shown(got)}"


def _listed(members: Members) -> str:
    return json.dumps(list(members)[:8])[1:-1][:_SHOWN_CHARS] or "no members"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
