"""Requests in flight on one connection: ids minted, answers matched once, the rest counted.

Ids are positive integers in sequence and never used again, so an answer is waited for, late, repeated or to nothing we
ever asked; only the first kind reaches anybody. Must not: keep time or wait; whoever opens an entry also ends it.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

T = TypeVar("T")

REMEMBERED: Final = 1024
"""How many abandoned requests are told apart from answered ones. Beyond it, a late answer counts as a duplicate."""


class Correlation(Generic[T]):
    """`late` counts answers to abandoned requests, `duplicate` second answers, `unknown` answers to what was never asked."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.late = 0
        self.duplicate = 0
        self.unknown = 0
        self._remembered = remembered
        self.next_id = 1
        """The id the next request gets. One that has left already under it is opened afterwards."""
        self._open: dict[str | int, T] = {}
        self._abandoned: dict[str | int, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, sink: T) -> int:
        id_ = self.next_id
        self.next_id = id_ + 1
        self._open[id_] = sink
        return id_

    def close(self, key: str | int) -> T | None:
        """The sink of the request this answer is for, once. `key` is the id as the answer spelt it: "1" is not 1."""
        sink = self._open.pop(key, None)
        if sink is None:
            self._count(key)
        return sink

    def abandon(self, id_: int) -> None:
        """The caller gave up: nothing is delivered any more. Ids that are not open are left alone."""
        if self._open.pop(id_, None) is not None:
            self._remember(id_)

    def entries(self) -> list[tuple[str | int, T]]:
        """The ids and sinks of all open requests, in the order they were opened."""
        return list(self._open.items())

    def drain(self) -> list[T]:
        """The sinks of all open requests, in the order they were opened; afterwards none is open."""
        sinks = list(self._open.values())
        for id_ in self._open:
            self._remember(id_)
        self._open.clear()
        return sinks

    def _count(self, key: str | int) -> None:
        if key in self._abandoned:
            del self._abandoned[key]
            self.late += 1
        elif isinstance(key, int) and 0 < key < self.next_id:
            self.duplicate += 1
        else:
            self.unknown += 1

    def _remember(self, id_: str | int) -> None:
        self._abandoned[id_] = None
        if len(self._abandoned) > self._remembered:
            del self._abandoned[next(iter(self._abandoned))]
