"""The API keys that were revoked on any machine, known to every replica: each may have a key in a file of its own.

One hash in the store has a sealed row for each key, named by a digest. It is read when its epoch has risen, or when rows have gone, never
for a request; what a replica has learned it keeps until the key would have expired, and gives it to a store that has lost it. The row of a
key without an end lasts a year, and is renewed while a file lists the key. Without the store a replica goes by what it knows.
Must not: say whose key it is, or make a key valid again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct

from pactgate.state.key_file import MAX_REVOKED, RevokedKey
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore, StoreScript

CHECK_S: Final = 60.0
"""So often the store is asked whether it still has every row, and rows are renewed."""
MAX_ROWS: Final = MAX_REVOKED
LIFE_S: Final = 366 * 86_400
_CLOCK_SLACK_S: Final = 60
_PURPOSE: Final = "revoked key"
_KEY: Final = "revoked"
_STEP: Final = 500
"""Rows that are sealed and sent at once: more would hold up calls."""

_COUNT: Final = StoreScript("return redis.call('HLEN', KEYS[1])")
_ADD: Final = StoreScript("""
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return redis.call('EXPIRE', KEYS[1], ARGV[1])
""")
# ARGV: the most rows. A row begins with its end, in seconds. The rows that end first make room.
_READ: Final = StoreScript("""
local now = tonumber(redis.call('TIME')[1])
local rows, ends, kept = redis.call('HGETALL', KEYS[1]), {}, {}
for i = 1, #rows, 2 do ends[#ends + 1] = {tonumber(string.match(rows[i + 1], '^%d+') or 0), rows[i], rows[i + 1]} end
table.sort(ends, function(a, b) return a[1] > b[1] end)
for i, row in ipairs(ends) do
  if row[1] > now and i <= tonumber(ARGV[1]) then kept[i] = row[3] else redis.call('HDEL', KEYS[1], row[2]) end
end
if kept[1] then redis.call('EXPIREAT', KEYS[1], string.format('%.0f', ends[1][1])) end
return kept
""")


class _Row(Struct, frozen=True, array_like=True):
    """The key ends at `ends`. `until` is the end of the row."""

    id: str
    ends: int
    until: int


_row: Final = msgspec.json.Decoder(_Row)


class RevokedKeys:
    """`on_change` is called when keys have been added."""

    def __init__(self, store: SharedStore, keys: SealingKeys, wall: Callable[[], float] = time.time) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._store = store
        self._keys = keys
        self._wall = wall
        self._listed: tuple[RevokedKey, ...] = ()
        self._told: tuple[RevokedKey, ...] | None = None
        self._known: dict[str, _Row] = {}
        self._opened: dict[bytes, _Row | None] = {}
        self._born_at = 0.0
        self._epoch = -1
        self._check_at = 0.0

    def __len__(self) -> int:
        return len(self._known)

    def end_of(self, id_: str) -> int | None:
        """When a key ends or has ended; None for one that is not on the list."""
        row = self._known.get(id_)
        return None if row is None else row.ends

    def publish(self, listed: Iterable[RevokedKey]) -> None:
        """What the file here lists: the store is told at the next look."""
        self._listed = tuple(listed)

    async def exchange(self, born_at: float, epoch: int) -> bool:
        """Read the list where it may be another one than before, and add what is missing there. Whether anything was.

        `born_at` is since when the store has lost nothing. Raises `StoreUnavailableError`.
        """
        now, listed = time.monotonic(), self._listed
        is_told = listed is self._told and born_at == self._born_at
        if epoch == self._epoch and is_told and now < self._check_at:
            return False
        if epoch != self._epoch or not is_told or await self._store.run(_COUNT, _KEY) != len(self._opened):
            await self._read()
        missing: list[_Row] = []
        if (
            not is_told or now >= self._check_at
        ):  # not at every new epoch: of two full lists each would drive out the other
            missing = self._missing(listed)
            if missing:
                await self._add(missing)
                await self._read()
            self._told, self._born_at, self._check_at = listed, born_at, now + CHECK_S
        self._epoch = epoch
        return bool(missing)

    def _missing(self, listed: Iterable[RevokedKey]) -> list[_Row]:
        """What the store has not of what is known and of what the file lists. It need have the row of a key without an end for half its
        life only."""
        now = int(self._wall())
        rows = dict(self._known)
        for one in listed:
            until = now + LIFE_S if one.expires is None else one.expires + _CLOCK_SLACK_S
            rows[one.id] = _Row(one.id, one.ends, until)
        stored = {row.id: row for row in self._opened.values() if row is not None}
        return [row for row in rows.values() if row.until > now and _is_missing(row, stored.get(row.id))]

    async def _add(self, rows: list[_Row]) -> None:
        for start in range(0, len(rows), _STEP):
            arguments: list[str | bytes] = []
            for row in rows[start : start + _STEP]:
                sealed = self._keys.seal(_PURPOSE, msgspec.json.encode(row))
                arguments += [self._keys.digest(_PURPOSE, row.id), b"%d %b" % (row.until, sealed)]
            await self._store.run(_ADD, _KEY, LIFE_S, *arguments)

    async def _read(self) -> None:
        found = await self._store.run(_READ, _KEY, MAX_ROWS)
        self._opened = {value: self._opened.get(value) or self._open(value) for value in found}
        self._learn(row for row in self._opened.values() if row is not None)

    def _open(self, value: bytes) -> _Row | None:
        """A row; None for what has another key or is of another version."""
        data = self._keys.open(_PURPOSE, value.partition(b" ")[2])
        try:
            return None if data is None else _row.decode(data)
        except msgspec.DecodeError:
            return None

    def _learn(self, rows: Iterable[_Row]) -> None:
        now, before = self._wall(), self._known
        known = {id_: row for id_, row in before.items() if row.until > now}
        for row in rows:
            one = known.get(row.id)
            known[row.id] = row if one is None or row.ends <= one.ends else one
        if len(known) > MAX_ROWS:
            known = dict(sorted(known.items(), key=lambda item: item[1].until)[-MAX_ROWS:])
        self._known = known
        if any(id_ not in before or before[id_].ends != row.ends for id_, row in known.items()):
            self.on_change()


def _is_missing(row: _Row, stored: _Row | None) -> bool:
    if stored is None or stored.ends > row.ends:
        return True
    return stored.until < row.until - LIFE_S / 2
