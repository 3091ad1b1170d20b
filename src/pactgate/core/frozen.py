"""JSON-like values that can't change any more, all the way down: what is kept as the one truth of a request.

A frozen table is a dict to everybody who reads or encodes it, and refuses every change. Must not: share anything with what it was
made from. Enforces the deep half of S4/R4.
"""

from __future__ import annotations

from typing import Any, NoReturn


class FrozenTable(dict[str, Any]):
    """A dict nobody can change."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("what is sealed can't be changed")

    __setitem__ = __delitem__ = _refuse
    __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenTable:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenTable:
        return self


def freeze(value: Any) -> Any:
    """The same value, deeply immutable: tables frozen, lists as tuples."""
    if isinstance(value, dict):
        return FrozenTable({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return bytes(value) if isinstance(value, bytearray) else value
