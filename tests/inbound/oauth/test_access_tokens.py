"""The checks of a resource server, each named after the sentence of the specification that asks for it.

RFC 6750 (bearer tokens), 7515 (JWS), 7519 (JWT), 7662 (introspection), 8725 (JWT best practices), 9068 (JWT access tokens), and MCP
2026-07-28 (basic/authorization). Proofs of possession are in `test_proofs.py`, metadata and challenges in `test_protected_resource.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import time
from collections.abc import Callable

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from pactgate.core.events import RequestRefused
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.oauth import key_set
from pactgate.inbound.oauth.introspection import MAX_AGE_S
from pactgate.inbound.oauth.token_form import MAX_TOKEN_CHARS
from tests.support.eventually import eventually
from tests.support.facing import message, modern
from tests.support.identity_provider import (
    AUDIENCE,
    INTROSPECTION,
    JWKS,
    IdentityProvider,
    part,
    public_jwk,
    rsa_key,
    sign,
)
from tests.support.raw_http import get, post
from tests.support.token_guard import accepting, auth_for, token_frontend

Make = Callable[[IdentityProvider], str]
OTHER = "https://other.example"


def unsigned(provider: IdentityProvider) -> str:
    return f"{part({'alg': 'none', 'typ': 'at+jwt', 'kid': 'one'})}.{part(provider.claims())}."


def signed_with_the_public_key(provider: IdentityProvider) -> str:
    """The classic confusion: the public key taken for the secret of an HMAC."""
    pem = (
        rsa_key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    text = f"{part({'alg': 'HS256', 'typ': 'at+jwt', 'kid': 'one'})}.{part(provider.claims())}"
    return f"{text}.{part(hmac.digest(pem, text.encode(), hashlib.sha256))}"


def with_key(**members: object) -> Make:
    """A good token, but its key is published with these members."""

    def make(provider: IdentityProvider) -> str:
        provider.responses[JWKS] = 200, _json({"keys": [public_jwk(rsa_key(), kid="one", **members)]})
        return provider.token()

    return make


def with_symmetric_key(provider: IdentityProvider) -> str:
    provider.responses[JWKS] = 200, _json({"keys": [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}]})
    return provider.token()


def with_key_twice(provider: IdentityProvider) -> str:
    keys = [public_jwk(rsa_key(), kid="one"), public_jwk(rsa_key(1), kid="one")]
    provider.responses[JWKS] = 200, _json({"keys": keys})
    return provider.token()


def with_short_key(provider: IdentityProvider) -> str:
    provider.keys["one"] = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    return provider.token()


def raw(claims: Callable[[IdentityProvider], bytes], header: bytes | None = None) -> Make:
    """Signed bytes that are no ordinary JSON object."""

    def make(provider: IdentityProvider) -> str:
        text = f"{part(header or {'alg': 'RS256', 'typ': 'at+jwt', 'kid': 'one'})}.{part(claims(provider))}"
        return sign_text(text)

    return make


def sign_text(text: str) -> str:
    return f"{text}.{part(jwt.get_algorithm_by_name('RS256').sign(text.encode(), rsa_key()))}"


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _now() -> int:
    return int(time.time())


REFUSED: dict[str, Make] = {
    # RFC 9068, 4
    "the resource server MUST verify that the typ header value is at+jwt": lambda idp: idp.token({"typ": "dpop+jwt"}),
    "the typ of another JWT profile is rejected": lambda idp: idp.token({"typ": "logout+jwt"}),
    "the issuer identifier MUST exactly match the value of the iss claim": lambda idp: idp.token(iss=idp.issuer + "/"),
    "a token of an issuer that is not trusted is rejected": lambda idp: idp.token(iss=OTHER),
    "a token without iss is rejected": lambda idp: idp.token(iss=None),
    "the aud claim MUST contain a resource indicator of this resource server": lambda idp: idp.token(aud=OTHER),
    "a token without aud is rejected": lambda idp: idp.token(aud=None),
    "a list of audiences without this resource is rejected": lambda idp: idp.token(aud=[OTHER, "account"]),
    "an audience that only begins like this resource is rejected": lambda idp: idp.token(aud=AUDIENCE + ".evil"),
    "an audience far below this resource is rejected": lambda idp: idp.token(aud=AUDIENCE + "/v/a/b"),
    "the resource server MUST validate the signature": lambda idp: idp.token()[:-8] + "AAAAAAAA",
    "a token signed with another key is rejected": lambda idp: sign(
        {"alg": "RS256", "typ": "at+jwt", "kid": "one"}, idp.claims(), rsa_key(1)
    ),
    "the resource server MUST reject any JWT in which the value of alg is none": unsigned,
    "none in other letters is rejected": lambda idp: unsigned(idp).replace(
        part({"alg": "none"}), part({"alg": "nOnE"})
    ),
    "the current time MUST be before the time of the exp claim": lambda idp: idp.token(exp=_now() - 60),
    "a token without exp is rejected": lambda idp: idp.token(exp=None),
    "an exp that is not a number is rejected": lambda idp: idp.token(exp="never"),
    "sub identifies the principal and is required": lambda idp: idp.token(sub=None),
    "a sub with control characters is rejected": lambda idp: idp.token(sub="alice\0root"),
    # RFC 7519, 4.1
    "a token before its nbf MUST NOT be accepted": lambda idp: idp.token(nbf=_now() + 120),
    "a token from the future (iat) is rejected": lambda idp: idp.token(iat=_now() + 120),
    # RFC 8725
    "algorithms that are not expected are rejected (3.1)": lambda idp: idp.token({"alg": "RS512"}),
    "a public key is never the secret of an HMAC (2.1)": signed_with_the_public_key,
    "an ID token is not an access token (3.11)": lambda idp: idp.token({"typ": "JWT"}, scope=None, nonce="n"),
    "an ID token with at_hash is not an access token": lambda idp: idp.token({"typ": "JWT"}, scope=None, at_hash="h"),
    "a refresh token of Keycloak is not an access token": lambda idp: idp.token({"typ": "JWT"}, typ="Refresh"),
    "a logout token is not an access token": lambda idp: idp.token({"typ": "JWT"}, events={}),
    # RFC 7515, 4.1
    "an extension in crit that is not understood is rejected (4.1.11)": lambda idp: idp.token({"crit": ["exp"]}),
    "an empty crit is rejected (4.1.11)": lambda idp: idp.token({"crit": []}),
    "a key in the token itself is never used (4.1.3)": lambda idp: sign(
        {"alg": "RS256", "typ": "at+jwt", "jwk": public_jwk(rsa_key(1))}, idp.claims(), rsa_key(1)
    ),
    "a kid that names no key of the issuer is rejected (4.1.4)": lambda idp: idp.token({"kid": "two"}),
    "a token without kid is rejected": lambda idp: idp.token({"kid": None}),
    "a kid that is not a string is rejected": lambda idp: idp.token({"kid": 1}),
    "duplicate members of the header are rejected (4)": raw(
        lambda idp: _json(idp.claims()), b'{"alg":"RS256","kid":"one","alg":"RS256"}'
    ),
    "duplicate members of the claims are rejected (RFC 7519, 4)": raw(
        lambda idp: _json(idp.claims()).replace(b"{", b'{"sub":"root",', 1)
    ),
    "claims nested too deeply are rejected": raw(lambda idp: b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "claims that are no object are rejected": raw(lambda idp: b"[1]"),
    "padding in base64url is rejected (2)": lambda idp: idp.token() + "==",
    "a token that is longer than the bound is rejected": lambda idp: idp.token(pad="x" * MAX_TOKEN_CHARS),
    # RFC 7517, 4
    "a key for encryption is not used for signatures (use)": with_key(use="enc"),
    "a key that is not for verifying is not used (key_ops)": with_key(key_ops=["encrypt"]),
    "a key for another algorithm is not used (alg)": with_key(alg="PS256"),
    "a symmetric key in a public key set is not used": with_symmetric_key,
    "two keys with one id name none": with_key_twice,
    "an RSA key of less than 2048 bits is not used (RFC 7518, 3.3)": with_short_key,
    "a token that is bound to a certificate is not accepted without it (RFC 8705)": lambda idp: idp.token(
        cnf={"x5t#S256": "x"}
    ),
}

ACCEPTED: dict[str, Make] = {
    "an access token of a trusted issuer for this resource is accepted": lambda idp: idp.token(),
    "typ may be application/at+jwt": lambda idp: idp.token({"typ": "application/at+jwt"}),
    "typ may be JWT or absent, as many providers have it": lambda idp: idp.token({"typ": None}),
    "aud may be a list with this resource in it": lambda idp: idp.token(aud=[OTHER, AUDIENCE]),
    "clocks may differ by half a minute": lambda idp: idp.token(exp=_now() - 10, nbf=_now() + 10, iat=_now() + 10),
    "a nonce alone does not make an ID token, where scopes are granted": lambda idp: idp.token(nonce="n"),
    "unknown claims are ignored (RFC 7519, 4)": lambda idp: idp.token(anything={"a": [1]}),
}


@pytest.mark.parametrize("sentence", REFUSED)
async def test_refused(sentence: str) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        token = REFUSED[sentence](provider)
        answer = await served.ask(modern("tools/call", name="echo", authorization=f"Bearer {token}"))
        assert answer.status == 401
        assert 'error="invalid_token"' in (answer.header("www-authenticate") or "")
        (event,) = [one for one in served.events if isinstance(one, RequestRefused)]
        assert event.reason.startswith("access token not accepted: ")
        assert event.reason.partition(": ")[2] not in answer.body.decode(), "the reason is for the log"
        assert served.kernel.callers == []


@pytest.mark.parametrize("sentence", ACCEPTED)
async def test_accepted(sentence: str) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        token = ACCEPTED[sentence](provider)
        answer = await served.ask(modern("tools/call", name="echo", authorization=f"Bearer {token}"))
        assert answer.status == 200, served.events
        assert served.kernel.callers[0].principal == Principal(
            f"{provider.issuer}\0alice",
            kind=PrincipalKind.OAUTH,
            issuer=provider.issuer,
            subject="alice",
            client_id="desk",
            scopes=frozenset({"mcp:read"}),
        )


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()])
async def test_elliptic_keys_are_accepted(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        provider.keys["one"] = key
        algorithm = "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "EdDSA"
        token = sign({"alg": algorithm, "kid": "one"}, provider.claims(), key)
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {token}"))).status == 200


async def test_a_refreshed_token_is_the_same_caller_and_a_stolen_session_is_worth_nothing_to_another() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        session = await served.session(authorization=f"Bearer {provider.token()}")
        session["authorization"] = f"Bearer {provider.token(jti='2', scope='mcp:read mcp:write')}"
        assert (await served.ask(post(message("ping"), **session))).status == 200
        session["authorization"] = f"Bearer {provider.token(sub='mallory')}"
        assert (await served.ask(post(message("ping"), **session))).status == 404


async def test_subjects_of_two_issuers_are_two_callers() -> None:
    async with IdentityProvider() as one, IdentityProvider() as two:
        async with token_frontend(auth_for(one), auth_for(two)) as served:
            for provider in (one, two):
                token = provider.token()
                assert (
                    await served.ask(modern("tools/call", name="echo", authorization=f"Bearer {token}"))
                ).status == 200
            forged = sign({"alg": "RS256", "kid": "one"}, two.claims(iss=one.issuer), ec_or_rsa(one))
            assert (await served.ask(modern("server/discover", authorization=f"Bearer {forged}"))).status == 200
        assert len({caller.principal.key for caller in served.kernel.callers}) == 2


def ec_or_rsa(provider: IdentityProvider) -> rsa.RSAPrivateKey:
    key = provider.keys["one"]
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


async def test_a_token_that_expires_ends_what_is_open_under_it() -> None:
    settings = {"clockSkewMs": 0}
    async with IdentityProvider() as provider, token_frontend(auth_for(provider, **settings)) as served:
        async with served.client() as stream:
            session = await served.session(authorization=f"Bearer {provider.token(exp=time.time() + 1.2)}")
            await stream.send(get("/mcp", **session))
            assert (await stream.head()).status == 200
            assert await stream.chunk() == b""
        session["authorization"] = f"Bearer {provider.token()}"
        assert (await served.ask(post(message("ping"), **session))).status == 200, "the session is its subject's"


async def test_a_token_for_one_server_is_good_for_that_server_only() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        own = {"authorization": f"Bearer {provider.token(aud=AUDIENCE + '/files')}"}
        assert (await served.ask(modern("server/discover", "/mcp/files", **own))).status == 200
        assert (await served.ask(modern("server/discover", "/mcp/web", **own))).status == 401
        assert (await served.ask(modern("server/discover", "/mcp", **own))).status == 401
        whole = {"authorization": f"Bearer {provider.token()}"}
        assert (await served.ask(modern("server/discover", "/mcp/files", **whole))).status == 200


async def test_a_token_for_one_view_is_good_for_that_view_only() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        for path in ("/v/desk", "/v/files", "/files", "/v", ""):
            own = {"authorization": f"Bearer {provider.token(aud=AUDIENCE + '/v/desk')}"}
            status = (await served.ask(modern("server/discover", f"/mcp{path}", **own))).status
            assert (status == 401) == (path != "/v/desk"), path


async def test_keys_are_fetched_once_for_many_and_known_tokens_go_on_without_the_provider() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        known = [{"authorization": f"Bearer {provider.token(jti=str(number))}"} for number in range(20)]
        clients = [served.client() for _ in known]
        for client, headers in zip(clients, known, strict=True):
            await client.__aenter__()
            await client.send(modern("server/discover", **headers))
        for client in clients:
            assert (await client.answer()).status == 200
            await client.close()
        assert provider.asked.count(JWKS) == 1
        fresh = {"authorization": f"Bearer {provider.token(jti='fresh')}"}
        await provider.stop()
        assert (await served.ask(modern("server/discover", **known[0]))).status == 200
        assert (await served.ask(modern("server/discover", **fresh))).status == 200, "its key is known"


async def test_a_rotated_key_works_at_once_and_made_up_keys_are_not_asked_about_again() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {provider.token()}"))).status == 200
        provider.rotate(keep=True)
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {provider.token()}"))).status == 200
        for number in range(5):
            token = provider.token({"kid": f"made-up-{number}"})
            assert (await served.ask(modern("server/discover", authorization=f"Bearer {token}"))).status == 401
        assert provider.asked.count(JWKS) == 2


@pytest.mark.timing
async def test_without_the_provider_unknown_keys_are_refused_within_50_ms() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {provider.token()}"))).status == 200
        await provider.stop()
        for number in range(20):
            token = provider.token({"kid": f"unknown-{number}"})
            began = time.perf_counter()
            assert (await served.ask(modern("server/discover", authorization=f"Bearer {token}"))).status == 401
            assert time.perf_counter() - began < 0.05


async def test_a_withdrawn_key_takes_its_tokens_with_it() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        old = {"authorization": f"Bearer {provider.token()}"}
        async with served.client() as stream:
            await stream.send(get("/mcp", **await served.session(**old)))
            assert (await stream.head()).status == 200
            provider.rotate()
            assert (
                await served.ask(modern("server/discover", authorization=f"Bearer {provider.token()}"))
            ).status == 200
            assert await stream.chunk() == b""
        assert (await served.ask(modern("server/discover", **old))).status == 401


INTROSPECTING = {"introspection": {"clientId": "gateway", "clientSecret": "of-the-gateway"}}


async def test_a_token_that_is_no_jwt_is_asked_about_and_known_for_a_while() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider, **INTROSPECTING)) as served:
        provider.active["opaque"] = {"active": True, **provider.claims()}
        for _ in range(3):
            assert (await served.ask(modern("server/discover", authorization="Bearer opaque"))).status == 200
            assert (await served.ask(modern("server/discover", authorization="Bearer nobody-knows"))).status == 401
        assert provider.asked.count(INTROSPECTION) == 2


@pytest.mark.parametrize(
    "claims",
    [{"aud": OTHER}, {"aud": None}, {"iss": OTHER}, {"exp": 1}, {"sub": None}, {"active": "true"}, {"active": False}],
    ids=str,
)
async def test_an_introspected_token_is_checked_like_any_other(claims: dict[str, object]) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider, **INTROSPECTING)) as served:
        provider.active["opaque"] = {"active": True, **provider.claims(**claims)}
        assert (await served.ask(modern("server/discover", authorization="Bearer opaque"))).status == 401


async def test_an_introspected_token_is_asked_about_again_long_before_it_ends() -> None:
    async with IdentityProvider() as provider, accepting(auth_for(provider, **INTROSPECTING)) as tokens:
        now, issuer = time.time(), tokens.issuers[provider.issuer]
        known = tokens.admit_introspected(issuer, provider.claims(exp=now + 3600))
        assert known.expires_at <= time.time() + MAX_AGE_S
        assert known.credential_ends_at == now + 3600 + 30
        assert tokens.admit_introspected(issuer, provider.claims(exp=None)).credential_ends_at == math.inf


async def test_while_the_provider_is_down_a_token_that_is_no_jwt_is_neither_good_nor_bad() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider, **INTROSPECTING)) as served:
        await provider.stop()
        answer = await served.ask(modern("server/discover", authorization="Bearer opaque"))
        assert (answer.status, answer.header("retry-after")) == (503, "5")


async def test_a_token_that_one_provider_refuses_may_be_that_of_another_which_is_down() -> None:
    async with (
        IdentityProvider() as down,
        IdentityProvider() as other,
        token_frontend(auth_for(down, **INTROSPECTING), auth_for(other, **INTROSPECTING)) as served,
    ):
        await down.stop()
        assert (await served.ask(modern("server/discover", authorization="Bearer opaque"))).status == 503
        other.active["known"] = {"active": True, **other.claims()}
        assert (await served.ask(modern("server/discover", authorization="Bearer known"))).status == 200


async def until_fetched(provider: IdentityProvider, times: int) -> None:
    await eventually(lambda: provider.asked.count(JWKS) >= times)


async def test_keys_that_are_old_are_fetched_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_set, "MIN_AGE_S", 0.0)
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        provider.max_age_s = 0
        for number in range(3):
            token = provider.token(jti=str(number))
            assert (await served.ask(modern("server/discover", authorization=f"Bearer {token}"))).status == 200
            await until_fetched(provider, number + 1)
