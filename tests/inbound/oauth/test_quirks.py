from __future__ import annotations

from typing import Any, get_args

import pytest

from pactgate.config.sections.oauth import Issuer, Quirks
from pactgate.inbound.oauth.claims import check_claims
from pactgate.inbound.oauth.quirks import QUIRKS, claim_names

COMMON = {"aud": "a", "exp": 2000.0}
TOKENS: dict[str, tuple[dict[str, Any], tuple[str, str, set[str], set[str]]]] = {
    "keycloak": (
        {"sub": "1", "azp": "desk", "scope": "mcp:read", "groups": ["g"], "realm_access": {"roles": ["r"]}},
        ("1", "desk", {"g", "r"}, {"mcp:read"}),
    ),
    "entra": (
        {"sub": "pairwise", "oid": "1", "appid": "desk", "scp": "mcp:read", "roles": ["r"]},
        ("1", "desk", {"r"}, {"mcp:read", "r"}),
    ),
    "auth0": (
        {"sub": "auth0|1", "azp": "desk", "scope": "openid", "permissions": ["mcp:read"]},
        ("auth0|1", "desk", set(), {"openid", "mcp:read"}),
    ),
    "okta": (
        {"sub": "ann@example.org", "uid": "1", "cid": "desk", "scp": ["mcp:read"], "groups": ["g"]},
        ("1", "desk", {"g"}, {"mcp:read"}),
    ),
    "authentik": ({"sub": "1", "azp": "desk", "scope": "mcp:read", "nonce": "n"}, ("1", "desk", set(), {"mcp:read"})),
    "descope": (
        {"sub": "1", "azp": "desk", "permissions": ["mcp:read"], "roles": ["r"]},
        ("1", "desk", {"r"}, {"mcp:read"}),
    ),
}


def test_every_quirk_of_the_settings_is_known() -> None:
    assert set(get_args(Quirks)) == set(QUIRKS) == set(TOKENS)


@pytest.mark.parametrize("quirks", get_args(Quirks))
def test_the_claims_of_a_known_provider_are_found(quirks: Quirks) -> None:
    claims, (subject, client, groups, scopes) = TOKENS[quirks]
    issuer = Issuer(issuer="https://idp.example", audiences=("a",), quirks=quirks)
    principal = check_claims({**COMMON, **claims}, issuer, claim_names(issuer), 1000.0).principal
    assert (principal.subject, principal.client_id) == (subject, client)
    assert (principal.groups, principal.scopes) == (groups, scopes)


def test_a_setting_comes_before_a_quirk() -> None:
    issuer = Issuer(issuer="https://idp.example", quirks="okta", subject="email", scopes=("https://a.example/scopes",))
    names = claim_names(issuer)
    assert (names.subject, names.scopes, names.client_id) == ("email", ("https://a.example/scopes",), ("cid",))
