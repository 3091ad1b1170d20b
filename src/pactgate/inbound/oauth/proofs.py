"""Proofs of possession (DPoP, RFC 9449, 4.3): that a request comes from whoever holds the key its token is bound to.

A proof is good for one request: its id is remembered while it could be used again. Bounded: proofs in all, and of one key. Must not: accept
a proof that it can't remember.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from typing import Any, Final
from urllib.parse import urlsplit

from pactgate.core.display import flat
from pactgate.inbound.oauth.key_set import PublicKey
from pactgate.inbound.oauth.token_form import TokenRefusedError, encode_part, read_signed

ALGORITHMS: Final = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "PS256")
MAX_AGE_S: Final = 60.0
MAX_PROOFS: Final = 100_000
MAX_OF_ONE_KEY: Final = 20_000
MAX_PROOF_CHARS: Final = 8192
_MAX_ID_CHARS: Final = 512
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
_IN_THUMBPRINT: Final = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class ProofCheck:
    """Checks proofs and remembers them."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._ends: deque[tuple[float, bytes, str]] = deque()
        self._of_key: Counter[str] = Counter()

    def require(
        self, sent: list[str], *, token: str, thumbprint: str, method: str, url: str, skew_s: float, now: float
    ) -> None:
        """Raise `TokenRefusedError` unless a request has exactly one good proof, for itself."""
        if len(sent) != 1:
            raise TokenRefusedError("a token that is bound to a key needs exactly one DPoP header")
        if len(sent[0]) > MAX_PROOF_CHARS:
            raise TokenRefusedError(f"the proof has more than {MAX_PROOF_CHARS} characters")
        proof = read_signed(sent[0])
        key = _key(proof.header)
        if key_thumbprint(key) != thumbprint:  # first: nobody has signatures of keys of its own choice verified
            raise TokenRefusedError("the proof is made with another key than the one the token is bound to")
        PublicKey(key).verify(proof.header["alg"], proof.signed, proof.signature)
        claims = proof.claims
        if claims.get("ath") != encode_part(hashlib.sha256(token.encode()).digest()):
            raise TokenRefusedError("the proof is for another token (ath)")
        if claims.get("htm") != method:
            raise TokenRefusedError("the proof is for another method (htm)")
        if not _is_same_url(claims.get("htu"), url):
            raise TokenRefusedError(f"the proof is for another URL than {flat(url, 200)} (htu)")
        made = claims.get("iat")
        if (
            isinstance(made, bool)
            or not isinstance(made, int | float)
            or not -skew_s <= now - made <= MAX_AGE_S + skew_s
        ):
            raise TokenRefusedError("the proof was not made just now (iat)")
        self._take(claims.get("jti"), thumbprint, now, made + MAX_AGE_S + skew_s)

    def _take(self, id_: Any, thumbprint: str, now: float, until: float) -> None:
        if not isinstance(id_, str) or not 0 < len(id_) <= _MAX_ID_CHARS:
            raise TokenRefusedError("the proof has no usable id (jti)")
        while self._ends and self._ends[0][0] <= now:
            _, mark, key = self._ends.popleft()
            self._seen.discard(mark)
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]
        mark = hashlib.sha256(f"{thumbprint}\0{id_}".encode()).digest()
        if mark in self._seen:
            raise TokenRefusedError("the proof was used before (jti)")
        if len(self._seen) >= MAX_PROOFS or self._of_key[thumbprint] >= MAX_OF_ONE_KEY:
            raise TokenRefusedError("more proofs were used within a minute than are remembered")
        self._seen.add(mark)
        self._of_key[thumbprint] += 1
        # All are kept equally long, so that the oldest is always the first: longer than needed by what the clocks differ.
        self._ends.append((max(until, self._ends[-1][0] if self._ends else until), mark, thumbprint))


def key_thumbprint(key: dict[str, Any]) -> str:
    """RFC 7638."""
    members = {name: key.get(name) for name in _IN_THUMBPRINT.get(str(key.get("kty")), ())}
    if not members or not all(isinstance(value, str) for value in members.values()):
        raise TokenRefusedError("the key of the proof can't be read")
    canonical = json.dumps(members, separators=(",", ":"), sort_keys=True)
    return encode_part(hashlib.sha256(canonical.encode()).digest())


def _key(header: dict[str, Any]) -> dict[str, Any]:
    if header.get("typ") != "dpop+jwt":
        raise TokenRefusedError("the proof is not of the type dpop+jwt")
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefusedError("the algorithm of the proof is not accepted")
    if "crit" in header:
        raise TokenRefusedError("the proof has extensions that have to be understood (crit)")
    key = header.get("jwk")
    if not isinstance(key, dict):
        raise TokenRefusedError("the proof has no key (jwk)")
    if not _PRIVATE.isdisjoint(key):
        raise TokenRefusedError("the proof has a private key in it")
    return key


def _is_same_url(sent: Any, own: str) -> bool:
    """Compared without query and fragment, after normalising what RFC 3986 (6.2.2 and 6.2.3) says is the same."""
    if not isinstance(sent, str) or len(sent) > 2048:
        return False
    try:
        return _normal(sent) == _normal(own)
    except ValueError:
        return False


def _normal(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS.get(scheme), parts.path or "/"
