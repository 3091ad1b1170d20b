"""Bounded collections for rules, so that memory does not grow with the session. Each says when it had to drop something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec

Key = str | int | bytes
V = TypeVar("V")

MAX_REMEMBERED: Final = 100_000
_MAX_IDS: Final = 500_000
_LONG_CHARS: Final = 64
_CANONICAL: Final = msgspec.json.Encoder(order="deterministic", decimal_format="number")


def id_key(value: Any) -> Key | None:
    """The key that a legal id is compared by: 1 and "1" differ. None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONG_CHARS else blake2b(value.encode("utf-8", "surrogatepass")).digest()
    return None


def digest(value: Any) -> str:
    """Equal for equal JSON, whatever the order of its members."""
    try:
        text = _CANONICAL.encode(value)
    except ValueError:
        text = json.dumps(value, sort_keys=True, default=str).encode()  # a lone surrogate has no UTF-8, only an escape
    return blake2b(text, digest_size=16).hexdigest()


class BoundedDict(dict[Any, V], Generic[V]):
    """A dict that ignores new keys at its limit; `has_forgotten` says so."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._limit = limit
        self.has_forgotten = False

    def __setitem__(self, key: Any, value: V) -> None:
        if len(self) >= self._limit and key not in self:
            self.has_forgotten = True
        else:
            super().__setitem__(key, value)


class UsedIds:
    """The request ids that one side used. A run of consecutive integers, the usual case, is kept as a range."""

    def __init__(self) -> None:
        self._first = 0
        self._next = 0
        self._others: dict[Key, None] = {}
        self.has_forgotten = False

    def add(self, key: Key) -> bool:
        """Add an id. Returns whether it is new."""
        if key in self:
            return False
        if isinstance(key, int) and self._first == self._next:
            self._first, self._next = key, key + 1
        elif isinstance(key, int) and key == self._next:
            self._next += 1
        elif len(self._others) < _MAX_IDS:
            self._others[key] = None
        else:
            self.has_forgotten = True
        return True

    def __contains__(self, key: Key) -> bool:
        return (isinstance(key, int) and self._first <= key < self._next) or key in self._others

    def __len__(self) -> int:
        return self._next - self._first + len(self._others)

    def __iter__(self) -> Iterator[Key]:
        yield from range(self._first, self._next)
        yield from self._others
