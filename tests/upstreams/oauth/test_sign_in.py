"""A sign-in from its beginning to its grant and its refresh."""

from __future__ import annotations

import pytest

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.authorization import challenge_of
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import ClientSettings, register
from pactgate.upstreams.oauth.discovery import AuthorizationServer
from pactgate.upstreams.oauth.tokens import RefusedGrantError
from tests.support.sign_in_steps import (
    ALL,
    AS_FORM,
    ISSUER,
    METADATA,
    PATH_FORM,
    REDIRECT,
    RESOURCE,
    URL,
    begin,
    grant_of,
    play,
    query,
)


def test_the_whole_way_from_a_challenge_to_the_url_a_person_opens() -> None:
    begun, asked = begin(ALL, challenge=Challenge("", ("read", "write")))
    assert [fetch.url for fetch in asked] == [PATH_FORM, AS_FORM, "https://login.example/register"]
    assert query(begun) == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "c1",
        "redirect_uri": REDIRECT,
        "state": "state-1",
        "code_challenge": challenge_of("verifier-1"),
        "code_challenge_method": "S256",
        "resource": URL,
        "scope": "read write",
    }
    assert asked[2].json is not None
    assert asked[2].json["application_type"] == "native"
    assert "refresh_token" in asked[2].json["grant_types"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("redirect_uri", "kind"),
    [
        ("http://127.0.0.1:7000/callback", "native"),
        ("http://localhost:7000/connect/callback", "native"),
        ("https://gw.example/connect/callback", "web"),
    ],
)
def test_a_client_says_whether_it_runs_on_the_machine_of_its_user(redirect_uri: str, kind: str) -> None:
    found = AuthorizationServer(ISSUER, "", "", "https://login.example/register")
    steps = register("linear", found, redirect_uri, ())
    asked = next(steps)
    assert asked.json is not None
    assert asked.json["application_type"] == kind


def test_given_credentials_go_to_the_issuer_they_were_made_for_and_to_no_other() -> None:
    elsewhere = {**ALL, PATH_FORM: {**RESOURCE, "authorization_servers": ["https://evil.example"]}}
    with pytest.raises(GatewayFailure, match="now names another authorization server"):
        begin(elsewhere, issuer=ISSUER, client=ClientSettings("given", "secret"))


def test_offline_access_is_asked_for_where_it_is_offered() -> None:
    offers = {**ALL, AS_FORM: {**METADATA, "scopes_supported": ["offline_access"]}}
    assert query(begin(offers, challenge=Challenge("", ("read",)))[0])["scope"] == "read offline_access"
    assert "scope" not in query(begin(ALL)[0])


def test_a_refresh_keeps_the_old_refresh_token_where_it_gets_no_new_one_and_invalid_grant_is_the_end() -> None:
    grant = grant_of({"access_token": "t", "token_type": "bearer", "refresh_token": "r"})
    endpoint = "https://login.example/token"
    found, asked = play(
        sign_in.refreshed("linear", grant, 2000.0), {endpoint: {"access_token": "t2", "token_type": "bearer"}}
    )
    assert (found.access_token, found.refresh_token, found.refreshed_at, found.signed_in_at) == (
        "t2",
        "r",
        2000.0,
        1000.0,
    )
    assert asked[0].form == {"grant_type": "refresh_token", "refresh_token": "r", "resource": URL, "client_id": "c1"}
    with pytest.raises(RefusedGrantError):
        play(sign_in.refreshed("linear", grant, 2000.0), {endpoint: {"error": "invalid_grant"}})
