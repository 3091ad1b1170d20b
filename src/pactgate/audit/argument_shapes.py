"""The part of a call's arguments that is recorded: their shape or their values, within bounds and without secrets. Pure.

The shape has names, types and lengths: `{"path": "string 12", "lines": "array 3 of integer"}`. Large values are cut and counted.
Masking comes before cutting, so that no half of a secret stays. Must not: raise for anything that is JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pactgate.core.display import cut
from pactgate.core.token_words import MASKED

MAX_NODES: Final = 200
MAX_MEMBERS: Final = 32
MAX_ITEMS: Final = 20
MAX_DEPTH: Final = 5
MAX_NAME_CHARS: Final = 64
MAX_TEXT_CHARS: Final = 256
WORK_CHARS: Final = 4096
MORE: Final = "…"
"""The member that counts what was omitted."""

_SCALARS: Final = {bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Masking:
    """Masks secrets in a bounded text; `start` masks the beginning of a long text without showing half a secret."""

    def __init__(self, start: Callable[[str, int], str]) -> None:
        self._start = start

    def short(self, text: str, max_chars: int) -> str:
        return cut(self._start(text, WORK_CHARS), max_chars)


def shape_of(value: Any, masking: Masking) -> Any:
    return _Sketch(masking, with_values=False).of(value, 0)


def values_of(value: Any, masking: Masking) -> Any:
    return _Sketch(masking, with_values=True).of(value, 0)


class _Sketch:
    """Reduces one value to the bounds. `_left` is how many nodes may still be shown."""

    def __init__(self, masking: Masking, *, with_values: bool) -> None:
        self._masking = masking
        self._with_values = with_values
        self._left = MAX_NODES

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if isinstance(value, dict):
            return self._object(value, depth) if self._may_open(depth) else f"object {len(value)}"
        if isinstance(value, list):
            return self._array(value, depth)
        if not self._with_values:
            return _kind(value)
        if isinstance(value, str):
            return self._masking.short(value, MAX_TEXT_CHARS)
        shown = _number(value)
        is_secret = type(shown) in (int, float) and self._masking.short(str(shown), MAX_TEXT_CHARS) != str(shown)
        return MASKED if is_secret else shown

    def _may_open(self, depth: int) -> bool:
        return depth < MAX_DEPTH and self._left > 0

    def _object(self, members: dict[str, Any], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, held in members.items():
            if len(shown) >= MAX_MEMBERS or self._left <= 0:
                shown[MORE] = f"{len(members) - len(shown)} more"
                break
            shown[self._masking.short(name, MAX_NAME_CHARS)] = self.of(held, depth + 1)
        return shown

    def _array(self, items: list[Any], depth: int) -> Any:
        if not self._with_values:
            kinds = {_type(item) for item in items[: MAX_ITEMS * 50]}
            if len(kinds) <= 1 and not kinds & {"object", "array"}:
                return f"array {len(items)}" + "".join(f" of {kind}" for kind in kinds)
        if not self._may_open(depth):
            return f"array {len(items)}"
        shown: list[Any] = []
        for item in items:
            if len(shown) >= MAX_ITEMS or self._left <= 0:
                shown.append(f"{MORE} {len(items) - len(shown)} more")
                break
            shown.append(self.of(item, depth + 1))
        return shown


def _type(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else _SCALARS[type(value)]


def _kind(value: Any) -> str:
    return f"string {len(value)}" if isinstance(value, str) else _SCALARS[type(value)]


def _number(value: Any) -> Any:
    """JSON numbers have any size; one with thousands of digits has no use in a log."""
    return value if not isinstance(value, int) or abs(value) < 10**100 else "integer of over 100 digits"
