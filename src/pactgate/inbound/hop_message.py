"""A request that one replica hands to another: what it says, its signature, and the window against replays.

The message is a MAC over everything that follows it: time and serial number, the claims, and the body of the request. The claims name
sender and receiver, so that a message is good once, for one replica, for a short time. They are the same for all requests with one head:
while a client repeats its head, they are encoded and read once. Credentials of the client are not in them: the principal is, as the sender
admitted it. Must not: be believed without `HopVerifier.open`.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from pactgate.core.principal import Principal
from pactgate.inbound.http_grammar import RequestHead

WINDOW_S: Final = 90.0
"""How old a message may be by the receiver's clock; clocks of replicas may differ by 30 s and more."""
MAX_CLAIMS_BYTES: Final = 128 * 1024
_MAC_BYTES: Final = 32
_STAMP: Final = struct.Struct(">dQI")
"""When it was sent, its serial number, and the length of the claims."""
_MAX_KNOWN: Final = 512
_MAX_KNOWN_BYTES: Final = 4096
_SERIALS: Final = 1024
"""Messages of one sender may overtake each other by so many."""
_MAX_SENDERS: Final = 1024
_ALL: Final = (1 << _SERIALS) - 1


class HopClaims(Struct, frozen=True):
    """Whose request it is, what its head says, and between whom it goes."""

    sender: str
    receiver: str
    method: str
    path: str
    headers: dict[str, list[str]]
    principal: Principal
    peer: str


_claims: Final = msgspec.json.Decoder(HopClaims)


class Forwarded(Struct):
    """Claims that arrived, and the head of the request they tell of."""

    claims: HopClaims
    head: RequestHead


def encode_hop(key: bytes, claims: bytes, body: bytes, *, sent_at: float, serial: int) -> bytes:
    """`claims` are encoded `HopClaims`."""
    signed = b"".join((_STAMP.pack(sent_at, serial, len(claims)), claims, body))
    return hmac.digest(key, signed, "sha256") + signed


class HopError(Exception):
    """A message that is refused. The reason is for the log of this replica."""


class _Window:
    """The serial numbers of one sender: the highest, and which of those before it have come."""

    __slots__ = ("highest", "last_at", "seen")

    def __init__(self) -> None:
        self.highest = -1
        self.seen = 0
        self.last_at = 0.0

    def take(self, serial: int) -> bool:
        if serial > self.highest:
            self.seen = (self.seen << min(serial - self.highest, _SERIALS) | 1) & _ALL
            self.highest = serial
            return True
        behind = self.highest - serial
        if serial < 0 or behind >= _SERIALS or self.seen >> behind & 1:
            return False
        self.seen |= 1 << behind
        return True


class HopVerifier:
    """Opens messages for `receiver`, each once."""

    def __init__(self, keys: tuple[bytes, ...], receiver: str, wall: Callable[[], float]) -> None:
        self._keys = keys
        self._receiver = receiver
        self._wall = wall
        self._windows: dict[str, _Window] = {}
        self._read_known = lru_cache(maxsize=_MAX_KNOWN)(_read)

    def open(self, data: bytes) -> tuple[Forwarded, bytes]:
        """The claims with their head, and the body.

        Raises `HopError` unless a replica signed it, for this one, now, and it is here for the first time.
        """
        mac, signed = data[:_MAC_BYTES], data[_MAC_BYTES:]
        for key in self._keys:
            if hmac.compare_digest(mac, hmac.digest(key, signed, "sha256")):
                break
        else:
            raise HopError("it has no valid signature")
        try:
            sent_at, serial, size = _STAMP.unpack_from(signed)
            encoded = signed[_STAMP.size : _STAMP.size + size]
            found = self._read_known(encoded) if size <= _MAX_KNOWN_BYTES else _read(encoded)
        except (struct.error, msgspec.DecodeError) as problem:
            raise HopError("its claims can't be read; do all replicas run the same version?") from problem
        claims, now = found.claims, self._wall()
        if claims.receiver != self._receiver:
            raise HopError("it is for another replica")
        if not abs(now - sent_at) <= WINDOW_S:  # nan is refused, too
            raise HopError("it is too old, or the clocks of the replicas differ too much")
        if not self._window(claims.sender, now).take(serial):
            raise HopError("it has come before")
        return found, signed[_STAMP.size + size :]

    def _window(self, sender: str, now: float) -> _Window:
        window = self._windows.get(sender)
        if window is None:
            if len(self._windows) >= _MAX_SENDERS:
                self._windows = {who: one for who, one in self._windows.items() if now - one.last_at <= 2 * WINDOW_S}
            if len(self._windows) >= _MAX_SENDERS:
                raise HopError("too many replicas have sent requests")
            window = self._windows[sender] = _Window()
        window.last_at = now
        return window


def _read(encoded: bytes) -> Forwarded:
    claims = _claims.decode(encoded)
    head = RequestHead(claims.method, is_http10=False)
    head.path, head.headers = claims.path, claims.headers
    return Forwarded(claims, head)
