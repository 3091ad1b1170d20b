from __future__ import annotations

from collections.abc import Callable

import pytest

from pactgate.inbound.oauth.explanation import explain_token
from tests.support.identity_provider import IdentityProvider, rsa_key, sign
from tests.support.token_guard import accepting, auth_for

INTROSPECTION = {"clientId": "gateway", "clientSecret": "of-the-gateway"}
CASES: dict[str, tuple[Callable[[IdentityProvider], str], list[str]]] = {
    "good": (lambda idp: idp.token(), ["form", "issuer", "key", "signature", "claims"]),
    "another issuer": (lambda idp: idp.token(iss="https://other.example"), ["form", "refused"]),
    "an unknown key": (lambda idp: idp.token({"kid": "x"}), ["form", "issuer", "refused"]),
    "forged": (
        lambda idp: sign({"alg": "RS256", "kid": "one"}, idp.claims(), rsa_key(1)),
        ["form", "issuer", "key", "refused"],
    ),
    "expired": (lambda idp: idp.token(exp=1), ["form", "issuer", "key", "signature", "refused"]),
    "for one server": (
        lambda idp: idp.token(aud="https://gateway.example/mcp/files"),
        ["form", "issuer", "key", "signature", "claims", "audience"],
    ),
    "opaque and unknown": (lambda idp: "what-is-this", ["form", "introspection"]),
}


@pytest.mark.parametrize("case", CASES)
async def test_each_step_is_said_up_to_the_one_that_fails(case: str) -> None:
    make, steps = CASES[case]
    async with IdentityProvider() as provider, accepting(auth_for(provider, introspection=INTROSPECTION)) as tokens:
        token = make(provider)
        found = await explain_token(tokens, token)
        assert [step.name for step in found.steps] == steps
        is_accepted = case in ("good", "for one server")
        assert (found.steps[-1].is_good, found.admission is not None) == (is_accepted, is_accepted)
        assert not any(part in step.text for step in found.steps for part in token.split(".") if len(part) > 12)


async def test_an_active_opaque_token_is_explained() -> None:
    async with IdentityProvider() as provider, accepting(auth_for(provider, introspection=INTROSPECTION)) as tokens:
        provider.active["opaque"] = {"active": True, **provider.claims()}
        found = await explain_token(tokens, "opaque")
        assert [step.name for step in found.steps] == ["form", "introspection", "claims"]
        assert found.admission is not None
