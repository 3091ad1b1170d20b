from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.oauth import Issuer
from pactgate.inbound.oauth.claims import MAX_LISTED, Granted, check_claims, principal_key
from pactgate.inbound.oauth.quirks import claim_names
from pactgate.inbound.oauth.token_form import TokenRefusedError

NOW = 1000.0
ISSUER = Issuer(issuer="https://idp.example", audiences=("a",))
GOOD: dict[str, Any] = {"sub": "ann", "aud": "a", "exp": NOW + 100, "scope": "x y"}


def check(issuer: Issuer = ISSUER, **claims: Any) -> Granted:
    return check_claims({**GOOD, **claims}, issuer, claim_names(issuer), NOW)


def test_a_token_is_good_until_it_expires_and_the_clocks_agree_on_it() -> None:
    assert check().expires_at == NOW + 130
    assert check(exp=None).expires_at is None


@pytest.mark.parametrize(
    "claims", [{"exp": NOW - 30}, {"nbf": NOW + 31}, {"iat": NOW + 31}, {"exp": True}, {"exp": "9"}]
)
def test_times_are_checked_with_the_skew(claims: dict[str, Any]) -> None:
    with pytest.raises(TokenRefusedError):
        check(**claims)


def test_a_claim_may_be_a_path_and_a_name_with_dots_comes_first() -> None:
    issuer = Issuer(issuer="https://idp.example", audiences=("a",), groups=("realm_access.roles", "https://x.y/groups"))
    found = check(issuer, realm_access={"roles": ["r"]}, **{"https://x.y/groups": ["g"]}).principal.groups
    assert found == {"r", "g"}
    assert check(issuer, **{"realm_access.roles": ["whole"]}).principal.groups == {"whole"}


def test_a_group_may_have_a_space_in_its_name_and_a_scope_may_not() -> None:
    principal = check(groups="Site Owners", scope="a b").principal
    assert principal.groups == {"Site Owners"}
    assert principal.scopes == {"a", "b"}


def test_more_groups_than_a_bound_are_refused_and_not_cut() -> None:
    with pytest.raises(TokenRefusedError):
        check(groups=["g"] * (MAX_LISTED + 1))


@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_no_two_principals_share_a_key(pairs: list[tuple[str, str]]) -> None:
    legal = [(issuer.replace("\0", ""), subject.replace("\0", "")) for issuer, subject in pairs]
    assert (legal[0] == legal[1]) == (principal_key(*legal[0]) == principal_key(*legal[1]))


NAMES = st.sampled_from(["sub", "aud", "exp", "nbf", "iat", "scope", "groups", "cnf", "typ", "azp", "events"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, JSON))
def test_whatever_the_claims_are_they_are_refused_or_name_a_principal(claims: dict[str, Any]) -> None:
    try:
        granted = check_claims({**GOOD, **claims}, ISSUER, claim_names(ISSUER), NOW)
    except TokenRefusedError:
        return
    assert granted.principal.key.startswith("https://idp.example\0")
