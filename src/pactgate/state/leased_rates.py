"""Rate limits over all replicas: a replica leases calls of one caller from the shared store, and spends them without asking again.

The store keeps one bucket per caller and quota and hands out calls in one step, so that all replicas together never let more than `rpm`
calls through in any 60 seconds. A lease is valid for a short time; what is left of it then goes back. Until it goes back, it counts as
used: calls may be refused that another replica could have let through, at most one lease per replica and for at most `LEASE_MS`.
The store's own clock decides, so clocks of replicas need not agree. After the store was emptied, buckets begin full.
Must not: decide what happens without the store by itself; `on_failure` does. Enforces the counting of S2/MCP-006 over replicas.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final, Protocol

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.memory_rates import MAX_BUCKETS
from pactgate.state.ports import Quota, RateRefusal, RateStore
from pactgate.state.shared_store import WAIT_S, StoreScript, StoreUnavailableError

LEASE_MS: Final = 1000
_MAX_LEASE: Final = 250
_SHARE: Final = 4
"""A lease is at most this part of the burst, so that most of a burst is left for other replicas."""
_BUSY_S: Final = 2.0
"""A caller that has asked within this time gets a lease; any other gets what it asks for, so that nothing has to go back."""
_REFUSED_S: Final = 0.2
"""So long a refusal of the store stands: a caller that goes on calling does not make the store busy."""
_SWEEP_S: Final = 0.25
_SWEPT: Final = 512

# A bucket is a hash: `w` is when all its tokens are back (microseconds), and one field per second counts the calls that may be made until
# the end of that second. Leased calls count from when the lease ends, because they may be made as late as that.
_NOW: Final = """
local now = tonumber(ARGV[1])
if now < 0 then local t = redis.call('TIME'); now = t[1] * 1000000 + t[2] end
local key, rpm, burst = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local interval = math.floor(60000000 / rpm)
local function give_back(n, slot)
  n = math.min(n, tonumber(redis.call('HGET', key, slot) or '0'))
  if n > 0 then
    redis.call('HINCRBY', key, slot, -n)
    local whole = tonumber(redis.call('HGET', key, 'w') or '0')
    redis.call('HSET', key, 'w', string.format('%d', math.max(now, whole - n * interval)))
  end
  return n
end
"""
TAKE: Final = StoreScript(
    _NOW
    + """
local want, life, wait = tonumber(ARGV[4]), tonumber(ARGV[5]) * 1000, tonumber(ARGV[6]) * 1000
if ARGV[8] ~= '0' then give_back(tonumber(ARGV[8]), ARGV[9]) end
local whole, used, oldest = now, 0, nil
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  if fields[i] == 'w' then whole = math.max(now, tonumber(fields[i + 1]))
  else
    local ends = tonumber(fields[i]) * 1000000 + 61000000
    if ends <= now then redis.call('HDEL', key, fields[i])
    else
      used = used + tonumber(fields[i + 1])
      if oldest == nil or ends < oldest then oldest = ends end
    end
  end
end
local tokens = math.floor((interval * (burst - 1) - (whole - now)) / interval) + 1
local n = math.min(want, tokens, rpm - used)
if n < 1 then
  local retry = 1
  if tokens < 1 then retry = math.max(retry, whole - interval * (burst - 1) - now) end
  if rpm - used < 1 and oldest ~= nil then retry = math.max(retry, oldest - now) end
  return {0, 0, math.ceil(retry / 1000), math.max(0, rpm - used), math.ceil((whole - now) / 1000)}
end
local spent_by = now + wait
if n > tonumber(ARGV[7]) then whole = math.max(whole, now + life); spent_by = spent_by + life end
local slot = string.format('%d', math.floor(spent_by / 1000000))
redis.call('HINCRBY', key, slot, n)
redis.call('HSET', key, 'w', string.format('%d', whole + n * interval))
redis.call('PEXPIRE', key, math.ceil((whole + n * interval - now) / 1000) + 65000)
return {n, tonumber(slot), 0, rpm - used - n, 0}
"""
)
"""Lease up to ARGV[4] calls, of which ARGV[7] are made at once and the others within ARGV[5] ms; ARGV[6] is how long the answer may take.
ARGV[8] calls of the second ARGV[9] are left of the lease before, and go back.

Returns how many, the second in which they count, and for a refusal what a `RateRefusal` says."""
GIVE_BACK: Final = StoreScript(_NOW + "return give_back(tonumber(ARGV[4]), ARGV[5])")
STORE_TIME: Final = -1
"""As ARGV[1]: the store's own clock counts."""


class LeaseStore(Protocol):
    """What runs a script on one key (`shared_store.SharedStore`)."""

    def run(self, script: StoreScript, key: str, *args: str | bytes | float) -> Awaitable[Any]: ...


class _Bucket:
    """What this replica holds of one caller's quota."""

    __slots__ = (
        "asked_at",
        "fetching",
        "key",
        "lease_ms",
        "quota",
        "refusal",
        "refused_until",
        "slot",
        "tokens",
        "until",
        "waiting",
    )

    def __init__(self, key: str, quota: Quota) -> None:
        self.key = key
        self.asked_at = -math.inf
        self.tokens = 0
        self.until = 0.0
        self.slot = 0
        self.refusal: RateRefusal | None = None
        self.refused_until = 0.0
        self.fetching: asyncio.Task[None] | None = None
        self.waiting: deque[asyncio.Future[RateRefusal | None]] = deque()
        self.adopt(quota)

    def adopt(self, quota: Quota) -> None:
        self.quota = quota
        self.lease_ms = min(LEASE_MS, 60_000 * quota.burst // quota.rpm // _SHARE)
        self.refused_until = 0.0

    @property
    def is_idle(self) -> bool:
        return not self.tokens and self.fetching is None


class LeasedRateStore:
    """A `RateStore` over all replicas. `local` counts where the store can't be asked, unless `refuses`."""

    def __init__(
        self,
        store: LeaseStore,
        local: RateStore,
        name: Callable[[str, str], str],
        *,
        refuses: bool,
        clock: Callable[[], float] = time.monotonic,
        store_time_us: Callable[[], int] = lambda: STORE_TIME,
    ) -> None:
        """`name` makes the name of a key from caller and quota, without saying either."""
        self._store = store
        self._local = local
        self._name = name
        self._refuses = refuses
        self._clock = clock
        self._store_time_us = store_time_us
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._returning: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self.leases = 0

    def take(self, subject: str, quota: Quota) -> RateRefusal | Awaitable[RateRefusal | None] | None:
        bucket = self._buckets.get((subject, quota.name))
        if bucket is None:
            bucket = self._open(subject, quota)
        if bucket.quota is not quota:
            bucket.adopt(quota)
        now = self._clock()
        if bucket.tokens and now < bucket.until:
            bucket.tokens -= 1
            return None
        if bucket.refusal is not None and now < bucket.refused_until:
            return bucket.refusal
        return self._wait(subject, quota, bucket)

    async def close(self) -> None:
        """Give back what is left."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for bucket in self._buckets.values():
            self._give_back(bucket)
        if self._returning:
            await asyncio.wait(self._returning, timeout=WAIT_S)

    async def _wait(self, subject: str, quota: Quota, bucket: _Bucket) -> RateRefusal | None:
        turn: asyncio.Future[RateRefusal | None] = asyncio.get_running_loop().create_future()
        bucket.waiting.append(turn)
        if bucket.fetching is None:
            bucket.fetching = asyncio.create_task(self._fetch(bucket), name="lease of calls")
        try:
            return await turn
        except StoreUnavailableError as problem:
            if not self._refuses:
                decided = self._local.take(subject, quota)
                return decided if decided is None or isinstance(decided, RateRefusal) else await decided
            raise GatewayFailure(
                Kind.STATE_UNAVAILABLE,
                f"Calls are refused while the shared store can't count them ({problem}); see state.onFailure.rates.",
            ) from problem

    async def _fetch(self, bucket: _Bucket) -> None:
        """Lease calls until everybody who waits has an answer."""
        try:
            while bucket.waiting:
                try:
                    await self._lease(bucket)
                except StoreUnavailableError as problem:
                    _refuse_all(bucket.waiting, problem)
        except Exception as fault:  # noqa: BLE001 - whoever waits must not wait for ever
            _refuse_all(bucket.waiting, StoreUnavailableError(f"what it answered can't be read: {fault!r}"))
        finally:
            bucket.fetching = None

    async def _lease(self, bucket: _Bucket) -> None:
        quota = bucket.quota
        left, bucket.tokens = bucket.tokens, 0
        asked_at = self._clock()
        spare = min(quota.burst // _SHARE, _MAX_LEASE) if asked_at - bucket.asked_at < _BUSY_S else 0
        bucket.asked_at = asked_at
        waiting = sum(not turn.done() for turn in bucket.waiting)
        found = await self._store.run(
            TAKE,
            bucket.key,
            *(self._store_time_us(), quota.rpm, quota.burst),
            *(waiting + spare, bucket.lease_ms, int(WAIT_S * 1000), waiting),
            *(left, bucket.slot),
        )
        granted, slot, retry_ms, remaining, whole_ms = map(int, found)
        self.leases += 1
        for turn in _taken(bucket.waiting, granted):
            turn.set_result(None)
            granted -= 1
        if granted:
            bucket.tokens, bucket.slot = granted, slot
            bucket.until = asked_at + bucket.lease_ms / 1000
            self._watch()
        elif retry_ms:
            bucket.refusal = RateRefusal(retry_ms, max(whole_ms, retry_ms), remaining)
            bucket.refused_until = self._clock() + min(_REFUSED_S, retry_ms / 1000)
            for turn in _taken(bucket.waiting, len(bucket.waiting)):
                turn.set_result(bucket.refusal)

    def _give_back(self, bucket: _Bucket) -> None:
        """Return what is left of a lease. If the store can't be told, the calls count as used."""
        left, bucket.tokens = bucket.tokens, 0
        if left:
            task = asyncio.create_task(self._return(bucket, left, bucket.slot), name="return of leased calls")
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _return(self, bucket: _Bucket, count: int, slot: int) -> None:
        numbers = (self._store_time_us(), bucket.quota.rpm, bucket.quota.burst)
        try:
            await self._store.run(GIVE_BACK, bucket.key, *numbers, count, slot)
        except StoreUnavailableError:
            return

    def _open(self, subject: str, quota: Quota) -> _Bucket:
        while len(self._buckets) >= MAX_BUCKETS and self._drop_idle():
            pass
        bucket = self._buckets[subject, quota.name] = _Bucket(self._name(subject, quota.name), quota)
        return bucket

    def _drop_idle(self) -> bool:
        """A bucket without a lease holds nothing that the store does not know."""
        for key, bucket in list(islice(self._buckets.items(), _SWEPT)):
            if bucket.is_idle:
                del self._buckets[key]
                return True
            self._buckets.move_to_end(key)
        return False

    def _watch(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = self._clock()
        held = [bucket for bucket in self._buckets.values() if bucket.tokens]
        for bucket in held:
            if now >= bucket.until:
                self._give_back(bucket)
        if held:
            self._watch()


def _refuse_all(waiting: deque[asyncio.Future[RateRefusal | None]], problem: StoreUnavailableError) -> None:
    for turn in _taken(waiting, len(waiting)):
        turn.set_exception(problem)


def _taken(waiting: deque[asyncio.Future[RateRefusal | None]], count: int) -> list[asyncio.Future[RateRefusal | None]]:
    """The first of those who still wait."""
    taken: list[asyncio.Future[RateRefusal | None]] = []
    while waiting and len(taken) < count:
        turn = waiting.popleft()
        if not turn.done():
            taken.append(turn)
    return taken
