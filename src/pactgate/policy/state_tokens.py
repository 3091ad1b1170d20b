"""Signs state that a client sends back later: the `requestState` of a call, the cursor of a list.

A token is its content and a MAC over the content and the binding (subject, server, method, parameters). The binding is not in the token:
the client has to make the same request again. So a token that was altered, given to another client or sent with another request is refused.
The key exists as long as the process, unless replicas share one. The content is signed, not encrypted; it may name the replica that owns
what the token continues. Pure but for the key. Must not: enforce single use, because that needs memory.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages

_MAC_BYTES: Final = 32
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class SignedState(Struct, frozen=True, array_like=True):
    """The content of a token. `kind` says what it is for; `expires_at` is in seconds of the clock of the signer."""

    kind: str
    content: str
    expires_at: float
    sealed_at: float = 0.0
    owner: str = ""
    """The replica that has what the token continues; empty where any replica can."""


_sealed: Final = msgspec.json.Decoder(SignedState)


class StateBinding(Struct, frozen=True):
    """The request that a token is valid for. `params` are its members without those that change when the request is repeated."""

    subject: str
    server: str
    method: str
    params: Mapping[str, Raw]

    def digest(self) -> bytes:
        """A hash that is equal for equal requests, however their JSON is spelt."""
        said: dict[str, Any] = {name: messages.value(held) for name, held in self.params.items()}
        return hashlib.sha256(_encode([self.subject, self.server, self.method, said])).digest()


class StateSigner:
    """Signs with the first key and accepts all. `slack_s` is how far the clocks of replicas may differ."""

    def __init__(self, clock: Callable[[], float], keys: tuple[bytes, ...] = (), slack_s: float = 0.0) -> None:
        self._clock = clock
        self._keys = keys or (secrets.token_bytes(_MAC_BYTES),)
        self._slack_s = slack_s

    def seal(self, kind: str, content: str, binding: StateBinding, life_s: float, owner: str = "") -> str:
        now = self._clock()
        text = _encode(SignedState(kind, content, now + life_s, now, owner))
        return urlsafe_b64encode(self._mac(self._keys[0], text, binding) + text).decode("ascii")

    def open(self, sealed: str, binding: StateBinding) -> SignedState:
        """The content of a token. Raises `invalid_params` unless this gateway signed it, for this request, and it has not expired."""
        try:
            raw = urlsafe_b64decode(sealed.encode("ascii"))
        except (UnicodeEncodeError, Base64Error, ValueError):
            raise refused("it is not one this gateway gave") from None
        mac, text = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        is_signed = any(hmac.compare_digest(mac, self._mac(key, text, binding)) for key in self._keys)
        if urlsafe_b64encode(raw).decode("ascii") != sealed or not is_signed:
            raise refused("it was not given for this call, or it was altered")
        opened = _sealed.decode(text)
        if self._clock() >= opened.expires_at + self._slack_s:
            raise refused("it has expired")
        return opened

    def life_left_s(self, opened: SignedState) -> float:
        """For how long some replica may still accept it: its clock may be behind, and it allows for others that are."""
        return opened.expires_at + 2 * self._slack_s - self._clock()

    def _mac(self, key: bytes, text: bytes, binding: StateBinding) -> bytes:
        return hmac.digest(key, binding.digest() + text, "sha256")


def owner_of_state(sealed: str) -> str | None:
    """The replica a token names. The signature is not checked: that takes the request, and its owner does it."""
    try:
        return _sealed.decode(urlsafe_b64decode(sealed.encode("ascii"))[_MAC_BYTES:]).owner or None
    except (UnicodeEncodeError, Base64Error, ValueError):
        return None


def refused(why: str) -> GatewayFailure:
    """The failure for a token that can't be used."""
    return GatewayFailure(
        Kind.INVALID_PARAMS, f"This requestState can't be used: {why}. Send the request anew, without it."
    )
