"""Which authorization server speaks for a server, and which documents are refused."""

from __future__ import annotations

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.oauth.discovery import canonical_resource, choose_scopes, covers
from tests.support.sign_in_steps import (
    ALL,
    AS_FORM,
    ISSUER,
    METADATA,
    OIDC_FORM,
    OIDC_OLD_FORM,
    PATH_FORM,
    REGISTER,
    REGISTERED,
    RESOURCE,
    ROOT_FORM,
    URL,
    Documents,
    begin,
)


def test_metadata_is_looked_for_in_every_place_the_specification_names() -> None:
    documents = {ROOT_FORM: {**RESOURCE, "resource": "https://api.example"}, OIDC_OLD_FORM: METADATA, **REGISTER}
    begun, asked = begin(documents)
    assert [fetch.url for fetch in asked] == [PATH_FORM, ROOT_FORM, AS_FORM, OIDC_FORM, OIDC_OLD_FORM, *REGISTER]
    assert begun.request.resource == "https://api.example"


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        (
            {**ALL, PATH_FORM: {**RESOURCE, "resource": "https://evil.example/mcp"}},
            "metadata is that of another resource",
        ),
        ({**ALL, PATH_FORM: {**RESOURCE, "resource": "https://api.example/team/mc"}}, "another resource"),
        ({**ALL, PATH_FORM: {"resource": URL}}, "names no authorization server"),
        ({**ALL, AS_FORM: {**METADATA, "issuer": f"{ISSUER}/"}}, "names another issuer"),
        ({PATH_FORM: RESOURCE}, "has no metadata document"),
        ({**ALL, AS_FORM: {**METADATA, "code_challenge_methods_supported": None}}, "PKCE"),
        ({**ALL, AS_FORM: {**METADATA, "code_challenge_methods_supported": ["plain"]}}, "PKCE"),
        ({**ALL, AS_FORM: {**METADATA, "authorization_endpoint": "javascript:alert(1)"}}, "can be opened"),
        ({**ALL, AS_FORM: {**METADATA, "authorization_endpoint": "http://login.example/a"}}, "can be opened"),
        ({**ALL, AS_FORM: {**METADATA, "token_endpoint": 5}}, "no token_endpoint"),
        ({**ALL, AS_FORM: {**METADATA, "registration_endpoint": None}}, "registers no clients by itself"),
        ({**ALL, "https://login.example/register": 400}, "refused to register a client"),
        (
            {**ALL, "https://login.example/register": {**REGISTERED, "token_endpoint_auth_method": "tls"}},
            "not supported",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(documents: Documents, why: str) -> None:
    with pytest.raises(GatewayFailure, match=why) as refused:
        begin(documents)
    assert refused.value.kind is Kind.AUTHORIZATION_REQUIRED


def test_scopes_are_those_of_the_challenge_then_those_on_offer_and_never_fewer_than_before() -> None:
    assert choose_scopes(settings=(), challenged=("a",), offered=("b",), before=()) == ("a",)
    assert choose_scopes(settings=(), challenged=(), offered=("b",), before=()) == ("b",)
    assert choose_scopes(settings=(), challenged=(), offered=None, before=()) == ()
    assert choose_scopes(settings=(), challenged=("b",), offered=None, before=("a",)) == ("a", "b")
    assert choose_scopes(settings=("s",), challenged=("b",), offered=("o",), before=()) == ("s", "b")


@pytest.mark.parametrize(
    ("said", "does"),
    [
        (URL, True),
        ("https://api.example/team", True),
        ("https://api.example/team/", True),
        ("https://api.example", True),
        ("https://api.example/team/mcp/", True),
        ("https://api.example/tea", False),
        ("http://api.example/team/mcp", False),
        ("https://api.example:8443/team/mcp", False),
        ("https://api.example.evil.example/team/mcp", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_a_resource_covers_its_own_paths_only(said: str, does: bool) -> None:
    assert covers(said, canonical_resource(URL)) is does
