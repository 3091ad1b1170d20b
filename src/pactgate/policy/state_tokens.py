"""Seals on what a caller carries between the rounds of one call: who it was made for, for which call, until when.

A sealed text is its content and a MAC over content and binding; the binding (subject, server, method, parameters) is
not in it but must be presented again, so a text that was altered, made for somebody else, or is shown with another
call does not open. The key lives and dies with the process. Nothing is hidden: what is sealed is known to its holder.
Pure but for the key. Must not: enforce single use; that needs memory.
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
    """What stands under a seal. `kind` says whose word `content` is; `expires_at` is in seconds of the gateway's own clock."""

    kind: str
    content: str
    expires_at: float


_sealed: Final = msgspec.json.Decoder(SignedState)


class StateBinding(Struct, frozen=True):
    """The call a seal is made for. `params` are its members without what changes from round to round."""

    subject: str
    server: str
    method: str
    params: Mapping[str, Raw]

    def digest(self) -> bytes:
        """Equal for equal calls, however the parameters are spelt."""
        said: dict[str, Any] = {name: messages.value(held) for name, held in self.params.items()}
        return hashlib.sha256(_encode([self.subject, self.server, self.method, said])).digest()


class StateSigner:
    def __init__(self, clock: Callable[[], float], key: bytes | None = None) -> None:
        self._clock = clock
        self._key = key or secrets.token_bytes(_MAC_BYTES)

    def seal(self, kind: str, content: str, binding: StateBinding, life_s: float) -> str:
        text = _encode(SignedState(kind, content, self._clock() + life_s))
        return urlsafe_b64encode(self._mac(text, binding) + text).decode("ascii")

    def open(self, sealed: str, binding: StateBinding) -> SignedState:
        """Raises `invalid_params` for anything but a seal of ours, for this very call, in time."""
        try:
            raw = urlsafe_b64decode(sealed.encode("ascii"))
        except (UnicodeEncodeError, Base64Error, ValueError):
            raise refused("it is not one this gateway gave") from None
        mac, text = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if urlsafe_b64encode(raw).decode("ascii") != sealed or not hmac.compare_digest(mac, self._mac(text, binding)):
            raise refused("it was not given for this call, or it was altered")
        opened = _sealed.decode(text)
        if self._clock() >= opened.expires_at:
            raise refused("it has expired")
        return opened

    def _mac(self, text: bytes, binding: StateBinding) -> bytes:
        return hmac.digest(self._key, binding.digest() + text, "sha256")


def refused(why: str) -> GatewayFailure:
    """A state that does not continue any call; nothing is done for it."""
    return GatewayFailure(
        Kind.INVALID_PARAMS, f"This requestState can't be used: {why}. Send the request anew, without it."
    )
