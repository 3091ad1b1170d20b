"""The tokens that are kept to be exchanged: the latest of each principal with its rights, and of no other issuer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound import subject_tokens
from pactgate.inbound.subject_tokens import SubjectTokens

ISSUER = "https://idp.example"
ALICE = Principal(f"{ISSUER}\0alice", kind=PrincipalKind.OAUTH, issuer=ISSUER, subject="alice")


def kept() -> SubjectTokens:
    tokens = SubjectTokens()
    tokens.issuers = {ISSUER}
    return tokens


def test_the_latest_token_is_kept_for_these_very_rights() -> None:
    tokens = kept()
    tokens.note(ALICE, "first")
    tokens.note(ALICE, "second")
    assert tokens.of(ALICE) == "second"
    assert tokens.of(replace(ALICE, scopes=frozenset({"mcp:run"}))) is None


def test_tokens_that_no_server_needs_are_not_kept() -> None:
    tokens = kept()
    tokens.note(replace(ALICE, issuer="https://other.example"), "t")
    assert tokens.of(replace(ALICE, issuer="https://other.example")) is None


def test_a_principal_that_may_no_longer_call_is_forgotten_and_their_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject_tokens, "MAX_TOKENS", 2)
    tokens = kept()
    for name in ("a", "b", "c"):
        tokens.note(replace(ALICE, key=name), name)
    assert [tokens.of(replace(ALICE, key=name)) for name in ("a", "b", "c")] == [None, "b", "c"]
    tokens.forget("b")
    assert tokens.of(replace(ALICE, key="b")) is None
