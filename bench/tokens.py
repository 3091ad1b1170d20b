"""The tokens of the benchmark's clients, as load generator and gateway know them. Signed tokens are access tokens (JWT)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ed25519
from msgspec import Struct

from pactgate.core.api_key import read_id, write_key
from pactgate.state.key_file import ApiKey, KeyRing, digest_of

_ISSUER: Final = "https://idp.example"
_AUDIENCE: Final = "https://gateway.example/mcp"


class Tokens(Struct, frozen=True):
    """One token for each of `count` principals; 0: no client sends one."""

    count: int
    kind: Literal["token", "key", "jwt"] = "token"

    def of(self, client: int) -> str:
        """Tokens of the configuration have the form of a key, which they may have, too."""
        number = client % self.count
        return _signed_token(number) if self.kind == "jwt" else write_key(number, number)

    def key_file(self) -> bytes:
        """A file with the keys that the load generator sends."""
        empty = KeyRing(pepper="5" * 64)
        keys = [
            ApiKey(id=read_id(key) or "", name=f"client-{n}", digest=digest_of(empty, key).hex(), created=0)
            for n, key in enumerate(map(self.of, range(self.count)))
        ]
        return msgspec.json.encode(KeyRing(pepper=empty.pepper, keys=tuple(keys)))

    def settings(self) -> dict[str, Any]:
        """The section `auth` of a gateway that accepts them."""
        if self.kind == "jwt":
            key = jwt.algorithms.OKPAlgorithm.to_jwk(_key().public_key(), as_dict=True)
            key.pop("key_ops", None)
            issuer = {"issuer": _ISSUER, "audiences": [_AUDIENCE], "jwks": {"keys": [{**key, "kid": "bench"}]}}
            return {"resource": _AUDIENCE, "issuers": [issuer]}
        return {"tokens": {f"client-{number}": {"token": self.of(number)} for number in range(self.count)}}


NO_TOKENS: Final = Tokens(0)


@cache
def _signed_token(number: int) -> str:
    """The same in every process: Ed25519 signs without chance."""
    claims: dict[str, Any] = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": f"client-{number:04d}", "scope": "mcp:run"}
    claims |= {"iat": 1_700_000_000, "exp": 4_000_000_000}
    return jwt.encode(claims, _key(), algorithm="EdDSA", headers={"kid": "bench", "typ": "at+jwt"})


@cache
def _key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.from_private_bytes(b"of the benchmark, known to all..")
