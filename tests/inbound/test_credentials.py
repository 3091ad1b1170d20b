from __future__ import annotations

from pactgate.core.principal import Principal
from pactgate.inbound.credentials import EXPIRED, Admission, ConfiguredTokens, Credential

OPS = Principal("ops")


def test_a_configured_token_is_its_holders_until_it_expires_and_others_are_not_ours() -> None:
    now = 1000.0
    tokens = ConfiguredTokens([Credential(b"a", OPS, 1001.0)], lambda: now)
    assert tokens.find("", b"a", {}) == Admission(OPS, 1001.0)
    assert tokens.find("", b"b", {}) is None
    assert tokens.holders() == {OPS}
    now = 1001.0
    assert tokens.find("", b"a", {}) == EXPIRED
    assert tokens.holders() == frozenset()
