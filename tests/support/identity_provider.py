"""A small identity provider: a real HTTP server with metadata, keys made for the test, and introspection; it signs what it is told to.

It can be told to misbehave: `responses` replaces what it says at a path. Must not: be taken for a good one; it checks nothing.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from functools import cache
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
AUDIENCE = "https://gateway.example/mcp"
JWKS = "/keys"
METADATA = "/.well-known/oauth-authorization-server"
INTROSPECTION = "/introspect"


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    """Made once in a run: it takes a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_jwk(key: PrivateKey, **members: Any) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        fields = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        fields = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        fields = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    fields.pop("key_ops", None)
    return {**fields, **members}


def part(value: Any) -> str:
    """One part of a token, from JSON or bytes."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class IdentityProvider:
    """`issuer` is its address; `key_id` names the key that it signs with."""

    def __init__(self, *, path: str = "") -> None:
        self._path = path
        self.keys: dict[str, PrivateKey] = {"one": rsa_key()}
        self.key_id = "one"
        self.max_age_s: int | None = None
        self.asked: list[str] = []
        self.responses: dict[str, tuple[int, bytes]] = {}
        self.active: dict[str, dict[str, Any]] = {}
        """What is said of tokens that are no JWT."""
        self.gate: Callable[[], Awaitable[object]] | None = None
        """Waited for before each response."""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._writers):
                writer.close()
            await self._server.wait_closed()
            self._server = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._path}"

    def key_set(self) -> dict[str, Any]:
        return {"keys": [public_jwk(key, kid=id_, use="sig") for id_, key in self.keys.items()]}

    def rotate(self, *, keep: bool = False) -> None:
        """Sign with a new key from now on."""
        if not keep:
            self.keys.clear()
        self.key_id = f"key-{len(self.asked)}-{len(self.keys)}"
        self.keys[self.key_id] = ec.generate_private_key(ec.SECP256R1())

    def claims(self, **claims: Any) -> dict[str, Any]:
        """Those of a good access token; None leaves one out."""
        now = int(time.time())
        good = {
            "iss": self.issuer,
            "sub": "alice",
            "aud": AUDIENCE,
            "exp": now + 300,
            "iat": now,
            "jti": "1",
            "client_id": "desk",
            "scope": "mcp:read",
        }
        return {name: value for name, value in {**good, **claims}.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        key = self.keys[self.key_id]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        head = {"alg": algorithm, "typ": "at+jwt", "kid": self.key_id, **(header or {})}
        return sign({name: value for name, value in head.items() if value is not None}, self.claims(**claims), key)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.split("\r\n")
                length = next((int(one[15:]) for one in lines if one.lower().startswith("content-length:")), 0)
                body = (await reader.readexactly(length)).decode()
                path = lines[0].split(" ")[1]
                self.asked.append(path)
                if self.gate is not None:
                    await self.gate()
                status, data = self.responses.get(path) or self._respond(path, body, head)
                age = "" if self.max_age_s is None else f"Cache-Control: public, max-age={self.max_age_s}\r\n"
                top = (
                    f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{age}\r\n"
                )
                writer.write(top.encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _respond(self, path: str, body: str, head: str) -> tuple[int, bytes]:
        if path == METADATA + self._path:
            facts = {
                "issuer": self.issuer,
                "jwks_uri": self._url(JWKS),
                "introspection_endpoint": self._url(INTROSPECTION),
            }
            return 200, json.dumps(facts).encode()
        if path == JWKS:
            return 200, json.dumps(self.key_set()).encode()
        if path == INTROSPECTION:
            assert "Basic " + base64.b64encode(b"gateway:of-the-gateway").decode() in head
            token = parse_qs(body)["token"][0]
            return 200, json.dumps(self.active.get(token, {"active": False})).encode()
        return 404, b"{}"

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


def sign(header: dict[str, Any], claims: dict[str, Any] | bytes, key: PrivateKey) -> str:
    """Signed with this key, whatever the header says. Bytes instead of claims are signed as they are."""
    signed = f"{part(header)}.{part(claims)}"
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm = jwt.get_algorithm_by_name("RS256")
    else:
        algorithm = jwt.get_algorithm_by_name("ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "EdDSA")
    return f"{signed}.{part(algorithm.sign(signed.encode(), key))}"


class ProofMaker:
    """A client's key, and proofs that it has it (RFC 9449)."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._count = 0

    @property
    def thumbprint(self) -> str:
        fields = public_jwk(self.key)
        canonical = json.dumps({name: fields[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"))
        return part(hashlib.sha256(canonical.encode()).digest())

    def proof(self, token: str, url: str, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        self._count += 1
        good = {
            "jti": f"proof-{self._count}",
            "htm": "POST",
            "htu": url,
            "iat": int(time.time()),
            "ath": part(hashlib.sha256(token.encode()).digest()),
        }
        head = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public_jwk(self.key), **(header or {})}
        wanted = {name: value for name, value in {**good, **claims}.items() if value is not None}
        return sign({name: value for name, value in head.items() if value is not None}, wanted, self.key)
