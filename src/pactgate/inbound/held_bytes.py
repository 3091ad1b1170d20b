"""Counts the bytes that connections hold for clients: requests that are not answered yet, and answers that are not taken yet.

Each principal gets a fair share of the bound, and so do all clients together that have not been admitted yet (owner None).
Must not: hold the bytes themselves.
"""

from __future__ import annotations

from pactgate.core.fair_share import is_fair


class HeldBytes:
    """The sum over all connections, and the part of each owner."""

    __slots__ = ("_by_owner", "_max_bytes", "total")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._by_owner: dict[str | None, int] = {}
        self.total = 0

    def take(self, owner: str | None, size: int) -> bool:
        """Count more bytes; False, and not counted, where they are more than the owner's share."""
        held = self._by_owner.get(owner, 0)
        if size > 0 and not is_fair(held, self._max_bytes - self.total, size):
            return False
        self.total += size
        if held + size:
            self._by_owner[owner] = held + size
        else:
            self._by_owner.pop(owner, None)
        return True


class Hold:
    """The bytes of one connection. Its owner is the one that was named when it held nothing."""

    __slots__ = ("_owner", "_table", "size")

    def __init__(self, table: HeldBytes) -> None:
        self._table = table
        self._owner: str | None = None
        self.size = 0

    def resize(self, size: int, owner: str | None) -> bool:
        """Hold this many bytes from now on; False, and nothing is changed, where they are more than the owner's share."""
        if not self.size:
            self._owner = owner
        if not self._table.take(self._owner, size - self.size):
            return False
        self.size = size
        return True

    def clear(self) -> None:
        self.resize(0, None)
