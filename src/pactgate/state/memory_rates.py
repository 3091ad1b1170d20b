"""The rate store in this process: one token bucket with a sliding window for each caller and quota.

A bucket lets a call through when two conditions hold: a token is left (`burst` at most, one back every 60/rpm seconds), and fewer than
`rpm` calls went through in the last 60 seconds. Tokens alone would allow rpm + burst calls in a minute; the window alone would allow all of
them at once. A refusal names the longer of the two waits and leaves the bucket unchanged.

The number of buckets is bounded. A full bucket equals a new one, so it is dropped without loss. When all buckets are in use, the least used
of a small sample is dropped, so a caller can't get rid of a spent bucket by calling under other names.
Times are whole nanoseconds of a monotonic clock; should it run back, the bucket moves with it, and nobody waits for the difference.
One thread. Must not: wait, or know where a quota comes from. Enforces the counting of S2/MCP-006.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

from pactgate.state.ports import Quota, RateRefusal

MAX_BUCKETS: Final = 20_000
"""Each takes about 500 bytes, and 40 more for each of its last `rpm` calls."""
WINDOW_NS: Final = 60_000_000_000
_SAMPLE: Final = 8
_SWEEP_EVERY_NS: Final = 1_000_000_000
_SWEEPS: Final = 60
"""So many sweeps look at every bucket once."""
_NS_PER_MS: Final = 1_000_000


class _Bucket:
    """The token bucket of one caller for one quota.

    `whole_ns` is when all tokens are back. `times` are the calls that went through, at most `rpm` of them: a ring once it is full, whose
    oldest member is at `head`, so that the newest is always the one before. `earlier` are calls a quota that became smaller has no
    place for; they count should it grow again within their minute.
    """

    __slots__ = ("earlier", "head", "interval_ns", "quota", "rpm", "slack_ns", "subject", "times", "whole_ns")

    def __init__(self, subject: str, quota: Quota, now_ns: int) -> None:
        self.subject = subject
        self.times: list[int] = []
        self.earlier: list[int] = []
        self.head = 0
        self.whole_ns = now_ns
        self._set(quota)

    def _set(self, quota: Quota) -> None:
        self.quota = quota
        self.rpm = quota.rpm
        self.interval_ns = WINDOW_NS // quota.rpm
        self.slack_ns = self.interval_ns * (quota.burst - 1)

    def adopt(self, quota: Quota, now_ns: int) -> None:
        """Change the quota. The calls of the last minute stay counted, and so do the tokens in use, up to the new number of tokens."""
        used_ns = max(0, self.whole_ns - now_ns)
        before_ns = self.interval_ns
        times = self.earlier + self.times[self.head :] + self.times[: self.head]
        times = [time_ns for time_ns in times if now_ns - time_ns < WINDOW_NS] or times[-1:]
        self.times, self.earlier, self.head = times[-quota.rpm :], times[: -quota.rpm], 0
        self._set(quota)
        self.whole_ns = now_ns + min(used_ns * self.interval_ns // before_ns, self.slack_ns + self.interval_ns)

    def run_back(self, by_ns: int) -> None:
        """The clock ran back: move all times with it, so that the last call was just now."""
        self.times = [time_ns - by_ns for time_ns in self.times]
        self.earlier = [time_ns - by_ns for time_ns in self.earlier]
        self.whole_ns -= by_ns

    def newest_ns(self) -> int:
        return self.times[self.head - 1]

    def is_whole(self, now_ns: int) -> bool:
        return self.whole_ns <= now_ns and now_ns - self.newest_ns() >= WINDOW_NS

    def used_in_window(self, now_ns: int) -> int:
        times, head, count = self.times, self.head, len(self.times)
        return count - bisect_right(range(count), now_ns - WINDOW_NS, key=lambda place: times[(head + place) % count])

    def spent(self, now_ns: int) -> float:
        """The part of the quota in use, 0 to 1: of its tokens or of its window, whichever is larger."""
        tokens = max(0, self.whole_ns - now_ns) / (self.slack_ns + self.interval_ns)
        return max(tokens, self.used_in_window(now_ns) / self.rpm)

    def wait_ns(self, now_ns: int) -> int:
        """How long until a call goes through; 0 or less when one would now."""
        for_token_ns = self.whole_ns - self.slack_ns - now_ns
        if len(self.times) < self.rpm:
            return for_token_ns
        return max(for_token_ns, self.times[self.head] + WINDOW_NS - now_ns)


class MemoryRateStore:
    """A `RateStore` in this process."""

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns, max_buckets: int = MAX_BUCKETS) -> None:
        self._clock_ns = clock_ns
        self._max_buckets = max_buckets
        self._tables: dict[str, dict[str, _Bucket]] = {}
        """Buckets by the name of the quota, then by caller. Empty tables are removed."""
        self._order: OrderedDict[_Bucket, None] = OrderedDict()
        """All buckets, in the order in which sweeps look at them."""
        self._sweep_at_ns = 0

    def __len__(self) -> int:
        return len(self._order)

    def take(self, subject: str, quota: Quota) -> RateRefusal | None:
        # This runs on every call, so the two conditions of `wait_ns` are inlined.
        now_ns = self._clock_ns()
        try:
            bucket = self._tables[quota.name][subject]
        except KeyError:
            bucket = self._open(subject, quota, now_ns)
        if bucket.quota is not quota:
            bucket.adopt(quota, now_ns)
        whole_ns = bucket.whole_ns
        if whole_ns <= now_ns:
            whole_ns = now_ns
        elif whole_ns - now_ns > bucket.slack_ns:
            return self._refuse(bucket, now_ns)
        times = bucket.times
        head = bucket.head
        if len(times) < bucket.rpm:
            times.append(now_ns)
        elif now_ns - times[head] < WINDOW_NS:
            return self._refuse(bucket, now_ns)
        else:
            times[head] = now_ns
            bucket.head = (head + 1) % bucket.rpm
        bucket.whole_ns = whole_ns + bucket.interval_ns
        return None

    def _refuse(self, bucket: _Bucket, now_ns: int) -> RateRefusal:
        ahead_ns = bucket.newest_ns() - now_ns
        if ahead_ns > 0:
            bucket.run_back(ahead_ns)
        until_whole_ns = max(bucket.whole_ns, bucket.newest_ns() + WINDOW_NS) - now_ns
        return RateRefusal(
            retry_after_ms=_ms(bucket.wait_ns(now_ns)),
            reset_in_ms=_ms(until_whole_ns),
            remaining_in_window=max(0, bucket.rpm - bucket.used_in_window(now_ns)),
        )

    def _open(self, subject: str, quota: Quota, now_ns: int) -> _Bucket:
        if now_ns >= self._sweep_at_ns:
            self._sweep(now_ns)
        if len(self._order) >= self._max_buckets:
            self._make_room(now_ns)
        bucket = _Bucket(subject, quota, now_ns)
        self._tables.setdefault(quota.name, {})[subject] = bucket
        self._order[bucket] = None
        return bucket

    def _drop(self, bucket: _Bucket) -> None:
        del self._order[bucket]
        table = self._tables[bucket.quota.name]
        del table[bucket.subject]
        if not table:
            del self._tables[bucket.quota.name]

    def _sweep(self, now_ns: int) -> None:
        """Drop full buckets, looking at a part of all buckets at a time."""
        self._sweep_at_ns = now_ns + _SWEEP_EVERY_NS
        for bucket in list(islice(self._order, self._max_buckets // _SWEEPS + 1)):
            if bucket.is_whole(now_ns):
                self._drop(bucket)
            else:
                self._order.move_to_end(bucket)

    def _make_room(self, now_ns: int) -> None:
        """Drop the least used bucket of a small sample; the rest of the sample goes to the end of the order."""
        few = list(islice(self._order, _SAMPLE))
        for bucket in few:
            self._order.move_to_end(bucket)
        self._drop(min(few, key=lambda bucket: bucket.spent(now_ns)))


def _ms(ns: int) -> int:
    return max(1, -(-ns // _NS_PER_MS))
