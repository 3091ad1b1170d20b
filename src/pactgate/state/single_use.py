"""Makes sure that something sealed is used once, on all replicas together.

The store remembers a digest until the seal has expired. What was sealed before the store lost what it knew counts as used. Without the
store each replica remembers by itself, where that is the policy: then something can be used once on every replica. Must not: know what
is used.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.sealing_keys import SealingKeys
from pactgate.state.shared_store import SharedStore, StoreScript, StoreUnavailableError

_MAX_KNOWN: Final = 10_000
_PURPOSE: Final = "single use"
_TAKE: Final = StoreScript("return redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) and 1 or 0")


class SingleUse:
    def __init__(
        self,
        store: SharedStore,
        keys: SealingKeys,
        *,
        refuses: bool,
        store_born_at: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`store_born_at` is since when the store has lost nothing, on the clock that says when something was sealed."""
        self._store = store
        self._keys = keys
        self._refuses = refuses
        self._store_born_at = store_born_at
        self._clock = clock
        self._known: OrderedDict[str, float] = OrderedDict()

    async def take(self, sealed: str, sealed_at: float, life_s: float) -> bool:
        """Whether this is the first use, as far as is known. Raises while that can't be known and the policy is to refuse.

        `life_s` is for how long it may still be used.
        """
        name = self._keys.digest(_PURPOSE, sealed)
        is_first = self._take_here(name, life_s)  # also where the store decides: it may have been away before
        try:
            is_new = await self._store.run(_TAKE, f"once:{name}", max(1, int(life_s * 1000))) == 1
            return is_first and is_new and not (self._refuses and sealed_at < self._store_born_at())
        except StoreUnavailableError as problem:
            if not self._refuses:
                return is_first
            self._known.pop(name, None)
            raise GatewayFailure(
                Kind.STATE_UNAVAILABLE,
                f"A call that asked for input can't be continued while the shared store does not answer ({problem}); "
                "send the same request again later. See state.onFailure.singleUse.",
            ) from problem

    def _take_here(self, name: str, life_s: float) -> bool:
        now = self._clock()
        while self._known and (len(self._known) >= _MAX_KNOWN or next(iter(self._known.values())) <= now):
            self._known.popitem(last=False)
        if self._known.get(name, now) > now:
            return False
        self._known[name] = now + life_s
        return True
