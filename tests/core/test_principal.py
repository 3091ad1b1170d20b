from __future__ import annotations

import pytest

from pactgate.core.principal import Principal, PrincipalKind


def test_a_principal_can_not_be_given_more_rights_on_its_way() -> None:
    bob = Principal("bob")
    with pytest.raises(AttributeError):
        bob.roles = frozenset({"admin"})  # type: ignore[misc]


def test_principals_with_equal_keys_and_other_rights_are_told_apart() -> None:
    before = Principal("https://idp.example bob", kind=PrincipalKind.OAUTH, scopes=frozenset({"mcp:read", "mcp:write"}))
    after = Principal("https://idp.example bob", kind=PrincipalKind.OAUTH, scopes=frozenset({"mcp:read"}))
    assert len({before, after}) == 2
