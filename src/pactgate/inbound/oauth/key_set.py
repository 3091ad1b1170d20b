"""The public keys of an issuer (RFC 7517), fetched when they are needed and kept while the provider is down.

One fetch at a time. Keys are fetched again in the background when they are old, and for a key id that nobody knows at most every 30 s, so
that made-up ids are refused at once. Must not: make a request wait for keys that are at hand, or trust a key for what it is not meant for.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import jwt
from msgspec import Struct

from pactgate.core.failures import GatewayFailure
from pactgate.inbound.oauth.token_form import TokenRefusedError

MIN_AGE_S: Final = 60.0
MAX_AGE_S: Final = 24 * 3600.0
DEFAULT_AGE_S: Final = 3600.0
STALE_S: Final = 24 * 3600.0
"""How long keys are used beyond their age while the provider can't be reached."""
UNKNOWN_KEY_GAP_S: Final = 30.0
RETRY_S: Final = 5.0
MAX_KEYS: Final = 100
_FAMILIES: Final = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("Ed",)}


class KeyDocument(Struct, frozen=True):
    """A key set as fetched, and for how long its provider says it is good."""

    keys: Any
    max_age_s: float | None = None


LoadKeys = Callable[[], Awaitable[KeyDocument]]
"""Fetches the key set, within a bound of time. Raises `GatewayFailure` or `TimeoutError`."""


class PublicKey:
    """One key of a set. Prepared for an algorithm when a token first needs it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self._prepared: dict[str, jwt.PyJWK] = {}

    def verify(self, algorithm: str, signed: bytes, signature: bytes) -> None:
        """Raise `TokenRefusedError` unless the signature was made with the private half of this key."""
        key = self._prepared.get(algorithm)
        if key is None:
            key = self._prepared[algorithm] = self._prepare(algorithm)
        if not key.Algorithm.verify(signed, key.key, signature):
            raise TokenRefusedError("its signature is wrong", is_guess=True)

    def _prepare(self, algorithm: str) -> jwt.PyJWK:
        why = unfit(self._fields, algorithm)
        if why is not None:
            raise TokenRefusedError(f"the key that it names {why}")
        try:
            key = jwt.PyJWK(self._fields, algorithm)
        except (jwt.PyJWTError, ValueError) as fault:
            raise TokenRefusedError(f"the key that it names can't be used: {type(fault).__name__}") from None
        weak = key.Algorithm.check_key_length(key.key)
        if weak:
            raise TokenRefusedError(f"the key that it names is too short for {algorithm}")
        return key


def unfit(fields: dict[str, Any], algorithm: str) -> str | None:
    """Why a key is not for signatures with this algorithm (RFC 7517, 4)."""
    if not algorithm.startswith(_FAMILIES.get(str(fields.get("kty")), ("none",))):
        return f"is of another type than {algorithm} needs (kty)"
    if fields.get("use", "sig") != "sig":
        return "is not for signatures (use)"
    operations = fields.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return "is not for verifying (key_ops)"
    if fields.get("alg", algorithm) != algorithm:
        return "is for another algorithm (alg)"
    return None


def read_keys(document: Any) -> dict[str, PublicKey]:
    """The keys of a set by their ids. What is no public key with an id of its own is left out; an id given twice names no key."""
    listed = document.get("keys") if isinstance(document, dict) else None
    keys: dict[str, PublicKey] = {}
    twice: set[str] = set()
    for fields in (listed if isinstance(listed, list | tuple) else ())[:MAX_KEYS]:
        id_ = fields.get("kid") if isinstance(fields, dict) else None
        if not isinstance(id_, str) or fields.get("use", "sig") != "sig" or "d" in fields or "k" in fields:
            continue
        if id_ in keys:
            twice.add(id_)
        keys[id_] = PublicKey(fields)
    return {id_: key for id_, key in keys.items() if id_ not in twice}


class KeyStore:
    """The keys of one issuer. `load` is None where they are configured."""

    def __init__(
        self, load: LoadKeys | None, *, given: Any = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._clock = clock
        self._keys = {} if given is None else read_keys(given)
        self._fresh_until = self._usable_until = -math.inf if given is None else math.inf
        self._retry_at = self._ask_at = -math.inf
        self._loading: asyncio.Task[None] | None = None
        self.trouble = ""
        """Why the last fetch failed."""
        self.on_removed: Callable[[], None] = _ignore
        """Told when the provider has withdrawn a key."""

    def find(self, id_: str) -> PublicKey | asyncio.Task[None]:
        """The key, or the fetch to wait for before asking again. Raises `TokenRefusedError` where waiting would not help."""
        now = self._clock()
        is_usable = now < self._usable_until
        if now >= self._fresh_until and now >= self._retry_at:
            self._start()
        key = self._keys.get(id_) if is_usable else None
        if key is not None:
            return key
        if self._loading is None and is_usable and now >= self._ask_at:
            self._ask_at = now + UNKNOWN_KEY_GAP_S
            self._start()
        if self._loading is not None:
            return self._loading
        if self.trouble:
            raise TokenRefusedError(f"the keys of its issuer can't be fetched ({self.trouble})")
        raise TokenRefusedError("its issuer has no key with its id (kid)")

    def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()

    def _start(self) -> None:
        if self._loading is None and self._load is not None:
            self._loading = asyncio.get_running_loop().create_task(self._fetch(self._load))

    async def _fetch(self, load: LoadKeys) -> None:
        try:
            document = await load()
            keys = read_keys(document.keys)
            if not keys:
                self._failed("there is no key for signatures in it")
                return
        except GatewayFailure as failure:
            self._failed(failure.message)
        except TimeoutError:
            self._failed("the provider did not answer in time")
        else:
            self._take(keys, document.max_age_s)
        finally:
            self._loading = None

    def _failed(self, why: str) -> None:
        self.trouble = why
        self._retry_at = self._clock() + RETRY_S

    def _take(self, keys: dict[str, PublicKey], max_age_s: float | None) -> None:
        age_s = min(max(DEFAULT_AGE_S if max_age_s is None else max_age_s, MIN_AGE_S), MAX_AGE_S)
        self._fresh_until = self._clock() + age_s
        self._usable_until = self._fresh_until + STALE_S
        removed, self._keys = self._keys.keys() - keys.keys(), keys
        self.trouble = ""
        if removed:
            self.on_removed()


def _ignore() -> None:
    return
