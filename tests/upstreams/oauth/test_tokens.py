"""What a token endpoint gives, as far as it can be believed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.steps import Fetched
from pactgate.upstreams.oauth.tokens import client_credentials
from tests.support.sign_in_steps import (
    ALL,
    ISSUER,
    URL,
    begin,
    grant_of,
)


@pytest.mark.parametrize(
    ("lifetime", "end"),
    [(60, 1060.0), ("60", 1060.0), (None, None), (-1, None), (True, None), (1e99, None), ("x", None)],
)
def test_the_end_of_a_token_is_what_can_be_believed(lifetime: object, end: float | None) -> None:
    token = {"access_token": "t", "token_type": "bearer", "expires_in": lifetime}
    assert grant_of(token).expires_at == end


@pytest.mark.parametrize("token", [{}, {"access_token": "a b"}, {"access_token": "a\r\nX: y"}, {"access_token": 5}])
def test_a_token_that_can_not_stand_in_a_header_is_refused(token: dict[str, object]) -> None:
    with pytest.raises(GatewayFailure, match="Signing in to linear failed"):
        grant_of(token)


def test_a_token_of_another_type_is_refused() -> None:
    with pytest.raises(GatewayFailure, match="bearer"):
        grant_of({"access_token": "t", "token_type": "dpop"})


@pytest.mark.parametrize(
    ("status", "error", "hint"),
    [
        (503, "", "Try again later"),
        (429, "slow_down", "Try again later"),
        (401, "invalid_client", "Check the client in `auth` of linear"),
        (400, "invalid_scope", "It said: 'invalid_scope'"),
    ],
)
def test_an_endpoint_that_gives_no_token_leaves_somebody_something_to_do(status: int, error: str, hint: str) -> None:
    steps = client_credentials("linear", f"{ISSUER}/token", OAuthClient(ISSUER, "robot", "secret"), URL, ())
    next(steps)
    with pytest.raises(GatewayFailure, match=re.escape(hint)):
        steps.send(Fetched(status, json.dumps({"error": error}).encode()))


@given(st.binary(max_size=200), st.integers(100, 599))
def test_any_answer_of_a_token_endpoint_is_a_grant_or_a_failure(body: bytes, status: int) -> None:
    begun, _ = begin(ALL)
    steps = sign_in.finish(begun, "code-1", 1000.0)
    next(steps)
    with pytest.raises(GatewayFailure):
        steps.send(Fetched(status, body))
