"""Compares two responses and lists their differences by JSON pointer, after it normalized values that differ from run to run.

Normalized are timestamps (ISO 8601) and UUIDs inside strings, opaque cursors and request states, and members that only one era has
(`resultType`, `ttlMs`, `cacheScope`, and `_meta`). Lists of items with a name or URI are compared by it, so their order does not
matter. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

MAX_SHOWN: Final = 100
_SHOWN_CHARS: Final = 200
_TIME: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC)\b|[+-]\d{2}:?\d{2})?)?"
)
_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_OPAQUE: Final = frozenset({"nextCursor", "requestState", "taskId"})
_OF_AN_ERA: Final = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})
_NAMED_LISTS: Final = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


class Difference(Struct, frozen=True):
    """`kind` is added, removed or changed; `before` was recorded, `after` is live. Both are cut to a bound."""

    pointer: str
    kind: str
    before: str | None = None
    after: str | None = None


def differences(before: Any, after: Any) -> list[Difference]:
    """The differences between two responses (`result` or `error`)."""
    return list(_compare("", _shape(before), _shape(after)))


def _shape(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return normalized(answer)
    if "error" in answer:
        error = answer["error"]
        return {"error": normalized(error)}
    result = answer.get("result")
    members = (
        {name: value for name, value in result.items() if name not in _OF_AN_ERA}
        if isinstance(result, dict)
        else result
    )
    return {"result": _keyed(normalized(members))}


def normalized(value: Any) -> Any:
    """The value with placeholders for everything that changes from run to run."""
    if isinstance(value, str):
        return _normal_text(value)
    if isinstance(value, list):
        return [normalized(item) for item in value]
    if isinstance(value, dict):
        return {
            name: "<opaque>" if name in _OPAQUE and item is not None else normalized(item)
            for name, item in value.items()
        }
    return value


def _normal_text(text: str) -> str:
    return _TIME.sub("<time>", _UUID.sub("<uuid>", text))


def _keyed(result: Any) -> Any:
    """Lists of named items become objects."""
    if not isinstance(result, dict):
        return result
    return {
        name: _by_name(value, _NAMED_LISTS[name]) if name in _NAMED_LISTS else value for name, value in result.items()
    }


def _by_name(value: Any, identity: str) -> Any:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return value
    named = {str(item.get(identity)): item for item in value}
    return named if len(named) == len(value) else value


def _compare(pointer: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in after:
                yield Difference(place, "removed", before=_shown(before[name]))
            elif name not in before:
                yield Difference(place, "added", after=_shown(after[name]))
            else:
                yield from _compare(place, before[name], after[name])
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            place = f"{pointer}/{number}"
            if number >= len(after):
                yield Difference(place, "removed", before=_shown(before[number]))
            elif number >= len(before):
                yield Difference(place, "added", after=_shown(after[number]))
            else:
                yield from _compare(place, before[number], after[number])
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield Difference(pointer, "changed", _shown(before), _shown(after))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
