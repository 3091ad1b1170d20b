from __future__ import annotations

import pytest

from pactgate.config.sections.oauth import Scope
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.policy.scopes import SCOPES, ScopePolicy


def holder(*scopes: str) -> Principal:
    return Principal("x", scopes=frozenset(scopes))


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        ((), set[str]()),
        (("openid", "mcp"), set[str]()),
        (("mcp:read",), {"query", "scan"}),
        (("mcp:write",), {"query", "scan", "mutation"}),
        (("openid", "mcp:run"), {"query", "scan", "mutation", "execution"}),
    ],
)
def test_a_scope_allows_its_categories_and_those_of_the_scopes_it_implies(
    held: tuple[str, ...], allowed: set[str]
) -> None:
    policy, principal = ScopePolicy({}), holder(*held)
    categories = ("query", "scan", "mutation", "execution")
    assert {one for one in categories if policy.of(one).is_held_by(principal)} == allowed
    assert policy.read.is_held_by(principal) == bool(allowed)


def test_a_principal_without_scopes_is_not_limited_by_them() -> None:
    assert ScopePolicy({}).of("execution").is_held_by(Principal("token"))


def test_what_is_missing_is_exactly_the_scope_of_the_category() -> None:
    policy = ScopePolicy({"all": Scope(categories=("query", "scan", "mutation", "execution"))})
    with pytest.raises(GatewayFailure) as refused:
        policy.of("mutation").require(holder("some"), "files.write")
    assert refused.value.kind is Kind.INSUFFICIENT_SCOPE
    assert refused.value.details == {SCOPES: ["all"]}


def test_what_nobody_knows_may_change_something() -> None:
    assert not ScopePolicy({}).unknown.is_held_by(holder("mcp:read"))
