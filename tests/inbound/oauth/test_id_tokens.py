"""Whom an ID token is about, as a person at a browser; the journeys try it over HTTP."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pactgate.config.sections.oauth import Issuer
from pactgate.inbound.oauth.id_tokens import principal_of
from pactgate.inbound.oauth.token_form import TokenRefusedError

ISSUER = "https://idp.example"
GOOD = {"iss": ISSUER, "aud": "gateway", "sub": "alice", "oid": "a-1", "nonce": "n", "exp": 1060}


def id_token(claims: Any) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.s"


def found(claims: Any, **settings: Any) -> str:
    return principal_of(id_token(claims), Issuer(issuer=ISSUER, **settings), "gateway", "n", 1000.0)


def test_the_subject_is_the_one_that_access_tokens_of_the_issuer_have() -> None:
    assert found(GOOD) == f"{ISSUER}\0alice"
    assert found(GOOD, quirks="entra") == f"{ISSUER}\0a-1"
    assert found({**GOOD, "aud": ["gateway", "other"], "azp": "gateway"}) == f"{ISSUER}\0alice"


@pytest.mark.parametrize(
    "claims",
    [
        {**GOOD, "iss": "https://other.example"},
        {**GOOD, "aud": "other"},
        {**GOOD, "aud": None},
        {**GOOD, "azp": "other"},
        {**GOOD, "nonce": "m"},
        {**GOOD, "exp": 900},
        {name: value for name, value in GOOD.items() if name != "exp"},
        {name: value for name, value in GOOD.items() if name != "nonce"},
        {name: value for name, value in GOOD.items() if name != "sub"},
        [],
    ],
)
def test_what_does_not_fit_is_refused(claims: Any) -> None:
    with pytest.raises(TokenRefusedError):
        found(claims)


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "a.e30"])
def test_what_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(TokenRefusedError):
        principal_of(text, Issuer(issuer=ISSUER), "gateway", "n", 1000.0)
