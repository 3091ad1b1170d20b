"""The key that replicas share, and what is derived from it: one key per purpose, by HKDF (RFC 5869).

`seal` is AES-256-GCM: what is sealed is neither read nor altered by others. `digest` names something without saying what it is.
What older keys sealed or signed is still accepted; new seals use the current key. `cryptography` is imported when the
first ring is made. Must not: derive a key per value; HKDF runs once per purpose.
"""

from __future__ import annotations

import hmac
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SALT: Final = b"pactgate state 1"
_NONCE_BYTES: Final = 12


class SealingKeys:
    """Seals with the first of `keys`. The others are accepted while keys are changed."""

    def __init__(self, *keys: bytes) -> None:
        from cryptography.exceptions import InvalidTag  # only replicas pay for it

        self._invalid = InvalidTag
        self._roots = tuple(hmac.digest(_SALT, one, "sha256") for one in keys)
        self._ciphers = lru_cache(maxsize=16)(self._make_ciphers)

    def keys(self, purpose: str) -> tuple[bytes, ...]:
        """The keys for one purpose, the current one first."""
        return tuple(hmac.digest(root, purpose.encode() + b"\x01", "sha256") for root in self._roots)

    def seal(self, purpose: str, data: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._ciphers(purpose)[0].encrypt(nonce, data, None)

    def open(self, purpose: str, sealed: bytes) -> bytes | None:
        """What was sealed for this purpose; None for everything else."""
        nonce, data = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        for cipher in self._ciphers(purpose):
            try:
                return cipher.decrypt(nonce, data, None)
            except (self._invalid, ValueError):
                continue
        return None

    def digest(self, purpose: str, *parts: str) -> str:
        """A name that is equal for equal parts and says nothing about them."""
        text = b"".join(b"%d:%b" % (len(part), part) for part in (part.encode() for part in parts))
        return hmac.digest(self.keys(purpose)[0], text, "sha256").hex()[:32]

    def _make_ciphers(self, purpose: str) -> tuple[AESGCM, ...]:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 30 ms: only replicas pay for it

        return tuple(AESGCM(key) for key in self.keys(purpose))
