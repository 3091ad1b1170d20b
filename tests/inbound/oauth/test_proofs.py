"""Proofs of possession, each check named after the sentence of RFC 9449 (4.3 and 7) that asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from pactgate.core.events import RequestRefused
from pactgate.inbound.oauth import proofs
from tests.support.facing import modern
from tests.support.identity_provider import AUDIENCE, IdentityProvider, ProofMaker, public_jwk
from tests.support.token_guard import auth_for, token_frontend

Make = Callable[[ProofMaker, str], str]


def proof(**claims: Any) -> Make:
    return lambda maker, token: maker.proof(token, AUDIENCE, **claims)


def headed(**header: Any) -> Make:
    return lambda maker, token: maker.proof(token, AUDIENCE, header=header)


def of_another_key(maker: ProofMaker, token: str) -> str:
    return ProofMaker().proof(token, AUDIENCE)


def with_a_private_key(maker: ProofMaker, token: str) -> str:
    return maker.proof(token, AUDIENCE, header={"jwk": {**public_jwk(maker.key), "d": "AAAA"}})


def signed_with_another_key(maker: ProofMaker, token: str) -> str:
    other = ProofMaker()
    return other.proof(token, AUDIENCE, header={"jwk": public_jwk(maker.key)})


REFUSED: dict[str, Make] = {
    "there is exactly one DPoP header": lambda maker, token: "-",
    "the header is a single well-formed JWT": lambda maker, token: "eyJ.x",
    "all required claims are contained: jti": proof(jti=None),
    "all required claims are contained: htm": proof(htm=None),
    "all required claims are contained: htu": proof(htu=None),
    "all required claims are contained: iat": proof(iat=None),
    "the typ has the value dpop+jwt": headed(typ="JWT"),
    "the alg is a registered asymmetric algorithm and not none": headed(alg="none"),
    "the alg is not symmetric": headed(alg="HS256"),
    "the signature verifies with the public key in the jwk": signed_with_another_key,
    "the jwk does not contain a private key": with_a_private_key,
    "the jwk is there": headed(jwk=None),
    "the htm matches the method of the request": proof(htm="GET"),
    "the htu matches the URL of the request": proof(htu="https://other.example/mcp"),
    "the htu matches the path of the request": proof(htu=AUDIENCE + "/files"),
    "the creation time is within an acceptable window: old": proof(iat=int(time.time()) - 600),
    "the creation time is within an acceptable window: future": proof(iat=int(time.time()) + 600),
    "the ath equals the hash of the access token": proof(ath="x"),
    "the ath is there": proof(ath=None),
    "the key the token is bound to matches that of the proof": of_another_key,
    "extensions that are not understood are refused": headed(crit=["b64"]),
    "an endless id is refused": proof(jti="x" * 1000),
}


@pytest.mark.parametrize("sentence", REFUSED)
async def test_refused(sentence: str) -> None:
    maker = ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        token = provider.token(cnf={"jkt": maker.thumbprint})
        answer = await served.ask(
            modern("server/discover", authorization=f"DPoP {token}", dpop=REFUSED[sentence](maker, token))
        )
        assert answer.status == 401
        assert (answer.header("www-authenticate") or "").startswith('DPoP error="invalid_dpop_proof", algs="ES256')
        (event,) = [one for one in served.events if isinstance(one, RequestRefused)]
        assert event.reason.startswith("proof of possession: ")


async def test_a_proof_is_good_for_one_request_also_on_one_connection() -> None:
    maker = ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served, served.client() as client:
        token = provider.token(cnf={"jkt": maker.thumbprint})
        request = modern("server/discover", authorization=f"DPoP {token}", dpop=maker.proof(token, AUDIENCE))
        assert (await client.ask(request)).status == 200
        assert (await client.ask(request)).status == 401
        other = modern("server/discover", authorization=f"DPoP {token}", dpop=maker.proof(token, AUDIENCE))
        assert (await client.ask(other)).status == 200


async def test_a_large_request_needs_its_proof_once() -> None:
    maker = ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        token = provider.token(cnf={"jkt": maker.thumbprint})
        for _ in range(2):
            sent = {"authorization": f"DPoP {token}", "dpop": maker.proof(token, AUDIENCE + "/files")}
            large = modern("tools/call", "/mcp/files", name="echo", arguments={"a": "x" * 300_000}, **sent)
            assert (await served.ask(large)).status == 200


async def test_a_bound_token_is_not_a_bearer_token_and_an_ordinary_one_is_not_sent_as_bound() -> None:
    maker = ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        bound, plain = provider.token(cnf={"jkt": maker.thumbprint}), provider.token()
        proofs_ = {token: maker.proof(token, AUDIENCE) for token in (bound, plain)}
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {bound}"))).status == 401
        assert (
            await served.ask(modern("server/discover", authorization=f"Bearer {bound}", dpop=proofs_[bound]))
        ).status == 401
        assert (
            await served.ask(modern("server/discover", authorization=f"DPoP {plain}", dpop=proofs_[plain]))
        ).status == 401
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {plain}"))).status == 200


@pytest.mark.parametrize(("mode", "bound", "plain"), [("off", 401, 200), ("allowed", 200, 200), ("required", 200, 401)])
async def test_the_operator_says_whether_tokens_are_bound(mode: str, bound: int, plain: int) -> None:
    maker = ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider, dpop=mode)) as served:
        token = provider.token(cnf={"jkt": maker.thumbprint})
        sent = modern("server/discover", authorization=f"DPoP {token}", dpop=maker.proof(token, AUDIENCE))
        assert (await served.ask(sent)).status == bound
        assert (await served.ask(modern("server/discover", authorization=f"Bearer {provider.token()}"))).status == plain


async def test_no_more_proofs_are_accepted_than_can_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_OF_ONE_KEY", 2)
    greedy, other = ProofMaker(), ProofMaker()
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:

        async def ask(maker: ProofMaker) -> int:
            token = provider.token(cnf={"jkt": maker.thumbprint})
            sent = modern("server/discover", authorization=f"DPoP {token}", dpop=maker.proof(token, AUDIENCE))
            return (await served.ask(sent)).status

        assert [await ask(greedy) for _ in range(3)] == [200, 200, 401]
        assert await ask(other) == 200


def test_a_thumbprint_is_that_of_rfc_7638() -> None:
    key = public_jwk(ec.generate_private_key(ec.SECP256R1()))
    maker = ProofMaker()
    assert proofs.key_thumbprint(public_jwk(maker.key)) == maker.thumbprint
    assert proofs.key_thumbprint({**key, "kid": "x"}) == proofs.key_thumbprint(key)
