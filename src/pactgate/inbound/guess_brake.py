"""Slows down whoever guesses credentials, and says where the guesses come from.

Wrong credentials are counted by the address of the client (an IPv6 client by its /64 network, of which it can use every address). After
some of them, each further refusal of that address waits, and its connection ends. Only refusals wait: a client with a good token at the
same address, as behind a proxy, is not slowed. Bounded: addresses, and events about them. Must not: refuse anything by itself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from pactgate.core.events import CredentialsRefused, Emit
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.peer_address import counted_address

FREE_GUESSES: Final = 5
"""Wrong credentials an address may send before it has to wait: people paste the wrong token."""
DELAY_S: Final = 1.0
MAX_ADDRESSES: Final = 4096
FORGET_AFTER_S: Final = 60.0
_EVENT_GAP_S: Final = 0.1
_REFUSED: Final = "refused"
_HUNDRED_YEARS_S: Final = 3e9


class _Guesser:
    __slots__ = ("count", "last_at", "told_at", "untold")

    def __init__(self) -> None:
        self.count = 0
        self.untold = 0
        self.last_at = self.told_at = -_HUNDRED_YEARS_S


class GuessBrake:
    """Counts wrong credentials by address."""

    def __init__(self, emit: Emit, clock: Callable[[], float]) -> None:
        self._emit = emit
        self._clock = clock
        self._guessers: OrderedDict[str, _Guesser] = OrderedDict()
        self._elsewhere = 0
        self._told_at = -_HUNDRED_YEARS_S

    def __len__(self) -> int:
        return len(self._guessers)

    def note(self, peer: str) -> float:
        """Count one more of this address. Returns the seconds its refusal has to wait."""
        now = self._clock()
        guesser = self._guesser(counted_address(peer), now)
        guesser.count += 1
        guesser.untold += 1
        guesser.last_at = now
        self._tell(peer, guesser, now)
        return DELAY_S if guesser.count > FREE_GUESSES else 0.0

    def _guesser(self, address: str, now: float) -> _Guesser:
        guesser = self._guessers.get(address)
        if guesser is None:
            guesser = self._guessers[address] = _Guesser()
            if len(self._guessers) > MAX_ADDRESSES:
                self._elsewhere += self._guessers.popitem(last=False)[1].untold
        elif now - guesser.last_at >= FORGET_AFTER_S:
            guesser.count = 0
        self._guessers.move_to_end(address)
        return guesser

    def _tell(self, peer: str, guesser: _Guesser, now: float) -> None:
        is_round = guesser.count == 10 ** (len(str(guesser.count)) - 1)
        if now - self._told_at < _EVENT_GAP_S or not (is_round or now - guesser.told_at >= FORGET_AFTER_S):
            return
        elsewhere, self._elsewhere = self._elsewhere, 0
        self._emit(CredentialsRefused(peer, guesser.untold, elsewhere))
        self._told_at = guesser.told_at = now
        guesser.untold = 0


class DelayedAnswer:
    """An answer that waits (`http_exchange.Work`). It is given at once when the gateway stops, and not at all when the client has gone."""

    def __init__(self, exchange: HttpExchange, delay_s: float, answer: Callable[[], None]) -> None:
        self._exchange = exchange
        self._answer = answer
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.cancel)
        exchange.keep_alive = False
        exchange.ended_because = _REFUSED
        exchange.work = self
        exchange.on_disconnect = self.cancel

    def cancel(self) -> None:
        """Answer now."""
        self._timer.cancel()
        self._exchange.work = None
        self._answer()
