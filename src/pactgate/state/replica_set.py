"""The replicas that share a store: who they are, which of them wrote what, and when all of them have to look again.

Each replica says every `BEAT_S` that it lives; one that has not for `LIFE_S` by the clock of the store is gone. Every `LOOK_S` a replica
reads the epochs: a number per server that rises with every call that may have changed something, one for rights that were taken away, and
one for the list of revoked keys. While the store can't be asked, the last known replicas stay known, and the epochs count as unknown.
Must not: put an address or an id into the store unsealed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Set
from typing import Any, Final

import msgspec
from msgspec import Struct

from pactgate.core.events import Emit, ReplicaJoined, ReplicaVanished
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.state.revoked_keys import RevokedKeys
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore, StoreScript, StoreUnavailableError

BEAT_S: Final = 2.0
LIFE_S: Final = 6.0
SETTLE_S: Final = 12.0
"""So long after the store was away, a replica that it does not name may still live."""
LOOK_S: Final = 0.25
FRESH_S: Final = 0.6
"""Epochs that were read longer ago than this are unknown: the longest time a replica may serve what another has made stale."""
_PURPOSE: Final = "replica"
_EPOCH: Final = "epoch"
_MEMBERS_KEY: Final = "replicas"
_EPOCHS_KEY: Final = "epochs"
_LOOK_AGAIN: Final = "look"
_JOINED: Final = "joined"
_REVOKED: Final = "revoked"
_SIGNALS: Final = frozenset({_LOOK_AGAIN, _JOINED, _REVOKED})
_NOW: Final = "now"
_BORN: Final = "born"
"""When the epochs began, in microseconds of the store's clock: what it knew before that is lost."""
_KEPT_MS: Final = 86_400_000

_BEAT: Final = StoreScript("""
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if ARGV[1] ~= '' then redis.call('ZADD', KEYS[1], now, ARGV[1]) end
if ARGV[2] ~= '' then redis.call('ZREM', KEYS[1], ARGV[2]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('ZRANGE', KEYS[1], 0, -1)
""")
_READ: Final = StoreScript("""
local t = redis.call('TIME')
local now = string.format('%d', t[1] * 1000000 + t[2])
redis.call('HSETNX', KEYS[1], 'born', now)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local found = redis.call('HGETALL', KEYS[1])
found[#found + 1], found[#found + 2] = 'now', now
return found
""")
_RAISE: Final = StoreScript("""
if ARGV[3] == '0' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local n = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return n
""")
_REGISTER: Final = StoreScript("""
redis.call('HSETNX', KEYS[1], ARGV[1], 0)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
""")


class _Member(Struct, frozen=True, array_like=True):
    replica: str
    address: str


_member: Final = msgspec.json.Decoder(_Member)


def _ignore() -> None:
    return


class ReplicaSet:
    """`replica` is the id of this process. `on_stale` is told each server whose cached results may be old, None for all of them."""

    def __init__(self, store: SharedStore, keys: SealingKeys, replica: str, emit: Emit) -> None:
        self.replica = replica
        self.addresses: Mapping[str, str] = {}
        """Where the other replicas take requests, by id."""
        self.on_left: Callable[[str], None] = lambda address: None
        """Told the address of each replica that has gone."""
        self.on_stale: Callable[[str | None], None] = lambda server: None
        self.on_look_again: Callable[[], None] = _ignore
        self.revoked = RevokedKeys(store, keys)
        self._store = store
        self._keys = keys
        self._emit = emit
        self._barrier = FaultBarrier(emit)
        self._entry = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._epochs: dict[str, int] | None = None
        self._read_at = -FRESH_S
        self.store_born_at = math.inf
        """Since when the store has lost nothing, in seconds of its clock."""
        self.clock_ahead_s = 0.0
        """How far the clock of the store is ahead of the one here, as it was last known."""
        self._names: dict[str, str] = {}
        self._cached_since: dict[str, float] = {}
        self._owed: set[str] = set()
        self._beat_at = 0.0
        self._has_looked = False
        self._missed: Set[str] = frozenset()
        """Replicas that the store did not name at the last beat."""
        self._in_sight_since: float | None = -math.inf

    async def announce(self, address: str) -> None:
        """Say from now on that this replica lives, at this address, and wait until the others know.

        Looks at the store for the first time. Within its bound, whatever the store does.
        """
        self._entry = self._keys.seal(_PURPOSE, msgspec.json.encode(_Member(self.replica, address)))
        await self.look()
        if self.addresses:  # a client that is served here next may be served there a moment later
            await self._raise(_JOINED)
            await asyncio.sleep(2 * LOOK_S)

    def start(self) -> None:
        self._spawn(self._run())

    async def look(self) -> None:
        """Look at the store once, and say what it has to be told."""
        try:
            await self._ask()
        except Exception as fault:  # noqa: BLE001 - a replica that stops looking would serve what is stale
            self._barrier.report("replicas", fault)
            self._lose_sight()

    async def stop(self) -> None:
        """Leave: the others know at their next look."""
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._entry and self._store.is_available:
            try:
                await self._store.run(_BEAT, _MEMBERS_KEY, b"", self._entry, int(LIFE_S * 1000), _KEPT_MS)
            except StoreUnavailableError:
                return  # they notice within LIFE_S

    # -- the cache

    @property
    def is_fresh(self) -> bool:
        """Whether what other replicas wrote is known."""
        return time.monotonic() - self._read_at < FRESH_S

    def may_cache(self, server: str) -> bool:
        """Whether every replica that writes to this server says so: it does when it has seen that results of the server are cached."""
        since = self._cached_since.get(server)
        if since is None:
            self._cached_since[server] = float("inf")
            self._spawn(self._register(server))
            return False
        return time.monotonic() - since > FRESH_S + LOOK_S

    def written(self, server: str) -> Awaitable[None] | None:
        """A call may have changed something. Where results of the server are cached anywhere, the other replicas are told first: what
        is returned has to be awaited then."""
        name = self._names.get(server) or self._name(server)
        if self._epochs is not None and name not in self._epochs and time.monotonic() - self._read_at < FRESH_S:
            return None
        return self._raise(name)

    async def look_again(self) -> None:
        """Have every other replica look again at what it believes of rights."""
        await self._raise(_LOOK_AGAIN)

    # -- inside

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def _ask(self) -> None:
        if not await self._store.probe():
            self._lose_sight()
            return
        asked_at = time.monotonic()
        try:
            for name in tuple(self._owed):
                await self._run_raise(name)
                self._owed.discard(name)
            epochs = self._take_epochs(await self._store.run(_READ, _EPOCHS_KEY, _KEPT_MS), asked_at)
            if await self.revoked.exchange(self.store_born_at, epochs.get(_REVOKED, 0)):
                await self._raise(_REVOKED)
            if asked_at >= self._beat_at:
                arguments = self._entry, b"", int(LIFE_S * 1000), _KEPT_MS
                self._take_members(await self._store.run(_BEAT, _MEMBERS_KEY, *arguments))
                self._beat_at = asked_at + BEAT_S
        except StoreUnavailableError:
            self._lose_sight()

    def _lose_sight(self) -> None:
        self._epochs = None
        self._read_at = -FRESH_S
        self._beat_at = 0.0
        self._in_sight_since = None
        self._cached_since.clear()

    def _take_epochs(self, found: list[bytes], asked_at: float) -> Mapping[str, int]:
        before = self._epochs
        self._epochs = now = {name.decode(): int(number) for name, number in zip(found[::2], found[1::2], strict=True)}
        self.clock_ahead_s = now.pop(_NOW) / 1e6 - time.time()
        self._read_at, self.store_born_at = asked_at, now[_BORN] / 1e6
        if before is None or before[_BORN] != now[_BORN]:
            self._cached_since.clear()  # nobody would say any more that it writes: register anew before anything is cached
            self.on_stale(None)
            if self._has_looked:
                self.on_look_again()
            self._has_looked = True
            return now
        if before == now:
            return now
        for server, name in self._names.items():
            if before.get(name, 0) != now.get(name, 0):
                self.on_stale(server)
        if before.get(_LOOK_AGAIN, 0) != now.get(_LOOK_AGAIN, 0):
            self.on_look_again()
        if before.get(_JOINED, 0) != now.get(_JOINED, 0):
            self._beat_at = 0.0
        return now

    def _take_members(self, entries: list[bytes]) -> None:
        members: dict[str, str] = {}
        for sealed in entries:
            member = self._read(sealed)
            if member is not None and member.replica != self.replica:
                members[member.replica] = member.address
        before = self.addresses
        now = time.monotonic()
        if self._in_sight_since is None:
            self._in_sight_since = now
        missed, missed_before = before.keys() - members.keys(), self._missed
        self._missed = missed
        # A store that came back or was emptied may have lost them, and they say that they live once in BEAT_S.
        is_new = now - self._in_sight_since < SETTLE_S
        members |= {replica: before[replica] for replica in missed if is_new or replica not in missed_before}
        self.addresses = members
        for replica in before.keys() - members.keys():
            if before[replica] not in members.values():  # else it was started again, at the same address
                self.on_left(before[replica])
            self._emit(ReplicaVanished(replica))
        for replica in members.keys() - before.keys():
            self._emit(ReplicaJoined(replica, members[replica]))

    def _read(self, sealed: bytes) -> _Member | None:
        """A member; None for what has another key or is of another version."""
        opened = self._keys.open(_PURPOSE, sealed)
        try:
            return None if opened is None else _member.decode(opened)
        except msgspec.DecodeError:
            return None

    async def _register(self, server: str) -> None:
        try:
            await self._store.run(_REGISTER, _EPOCHS_KEY, self._name(server), _KEPT_MS)
            self._cached_since[server] = time.monotonic()
        except StoreUnavailableError:
            self._cached_since.pop(server, None)

    async def _raise(self, name: str) -> None:
        """Raise an epoch; if the store can't be told now, it is told when it is back."""
        try:
            number = await self._run_raise(name)
        except StoreUnavailableError:
            self._owed.add(name)
        else:
            if self._epochs is not None and self._epochs.get(name, 0) == number - 1:
                self._epochs[name] = number  # our own write is nothing to look after

    async def _run_raise(self, name: str) -> int:
        """The new epoch; 0 for a server whose results nobody caches. Its epoch must not begin here: each later write would raise it."""
        number: int = await self._store.run(_RAISE, _EPOCHS_KEY, name, _KEPT_MS, int(name in _SIGNALS))
        return number

    def _name(self, server: str) -> str:
        name = self._names.get(server)
        if name is None:
            name = self._names[server] = self._keys.digest(_EPOCH, server)
        return name

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name="replicas")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
