"""Keeps the API keys of a running gateway like their file: looks at it once a second, and notes in it which keys were used.

A change by any process is felt within a second, on what is open too, and so is a key that another replica has revoked. The day of a key's
last use is written by a thread, at most once a minute, and only for keys that were not used on that day before. A file that can't be read
changes nothing and is reported once. Must not: be asked by a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pactgate.config.file_access import FileState
from pactgate.core.events import ConfigurationRefused, Emit
from pactgate.core.failures import GatewayFailure
from pactgate.inbound.api_keys import ApiKeys
from pactgate.state.key_file import KeyFile, KeyRing, note_use

if TYPE_CHECKING:
    from pactgate.state.revoked_keys import RevokedKeys

LOOK_S: Final = 0.5
_WRITE_S: Final = 60.0


class KeyWatch:
    """`source` has the keys of now. Raises INVALID_CONFIG where the file can't be used at the start; later it is an event."""

    def __init__(
        self,
        path: str,
        on_change: Callable[[], None],
        emit: Emit,
        *,
        revoked: RevokedKeys | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`revoked` has what all replicas have revoked; it is told what this file lists."""
        self._file = KeyFile(path)
        self._on_change = on_change
        self._emit = emit
        self._wall = wall
        self._state: FileState | None = self._file.state()
        self._revoked = revoked
        self._ring = self._file.read()
        self._day = self._today()
        self._writing: asyncio.Task[None] | None = None
        self._written_at = -_WRITE_S
        self._timer: asyncio.TimerHandle | None = None
        self.path = path
        self._valid = self._ring
        self.source = ApiKeys(self._valid, wall)
        if revoked is not None:
            revoked.on_change = self._look_at_revoked
            self._publish()

    @property
    def has_file(self) -> bool:
        return self._ring is not None

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._turn)

    async def close(self) -> None:
        """End looking. What was used and not noted yet is noted now."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._note_use(self._fresh())

    def _turn(self) -> None:
        self.start()  # first: whatever becomes of this look, there is a next one
        self.look()
        now = asyncio.get_running_loop().time()
        if self._writing is None and now - self._written_at >= _WRITE_S and (fresh := self._fresh()):
            self._written_at = now
            self._writing = asyncio.get_running_loop().create_task(self._note_use(fresh))

    def look(self) -> None:
        """Read the file if it is another one than before. On a new day everybody is checked again, so that each day's use is seen."""
        state, day = self._file.state(), self._today()
        if state == self._state and day == self._day:
            return
        is_new_day = day != self._day
        self._state, self._day = state, day
        before, used = self._ring, set() if is_new_day else self.source.used
        try:
            self._ring = self._file.read()
        except GatewayFailure as failure:
            self._emit(ConfigurationRefused((failure.message,)))
            return
        self._publish()
        if is_new_day or _without_use(self._ring) != _without_use(before):
            self._replace_source(used)

    def _publish(self) -> None:
        if self._revoked is not None:
            self._revoked.publish(() if self._ring is None else self._ring.revoked)

    def _look_at_revoked(self) -> None:
        """More keys are known as revoked: the same as a change of the file, where it has any of them."""
        if _without_use(self._valid) != _without_use(_valid(self._ring, self._revoked)):
            self._replace_source(self.source.used)

    def _replace_source(self, used: set[str]) -> None:
        self._valid = _valid(self._ring, self._revoked)
        self.source = ApiKeys(self._valid, self._wall)
        self.source.used |= used
        self._on_change()

    def _fresh(self) -> frozenset[str]:
        """The keys that were used today, and of which the file does not say so."""
        keys = () if self._ring is None else self._ring.keys
        return frozenset(key.id for key in keys if key.id in self.source.used and key.last_used != self._day)

    async def _note_use(self, ids: frozenset[str]) -> None:
        try:
            if ids:
                with suppress(GatewayFailure):  # a file that can't be written still says who may call
                    await asyncio.to_thread(self._file.change, partial(note_use, ids=ids, day=self._day))
        finally:
            self._writing = None

    def _today(self) -> str:
        return datetime.fromtimestamp(self._wall(), UTC).date().isoformat()


def _valid(ring: KeyRing | None, revoked: RevokedKeys | None) -> KeyRing | None:
    """Without the keys that any replica has revoked. One that was rotated elsewhere ends when it does there."""
    if ring is None or not revoked:
        return ring
    keys = []
    for key in ring.keys:
        ends = revoked.end_of(key.id)
        if ends is None:
            keys.append(key)
        elif ends:
            keys.append(replace(key, expires=min(ends, key.expires or ends)))
    return replace(ring, keys=tuple(keys))


def _without_use(ring: KeyRing | None) -> KeyRing | None:
    return None if ring is None else replace(ring, keys=tuple(replace(key, last_used=None) for key in ring.keys))
