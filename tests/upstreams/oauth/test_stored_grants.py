"""What is kept of a server belongs to its URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.stored_grants import StoredGrants, all_grants
from tests.support.sign_in_steps import ISSUER, URL, grant_of


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    return CredentialStore.in_file(str(tmp_path / "pactgate.credentials"))


def test_a_grant_is_read_as_it_was_written_and_only_for_its_url(store: CredentialStore) -> None:
    grant = grant_of({"access_token": "t", "token_type": "bearer", "refresh_token": "r"})
    assert StoredGrants(store, "linear", URL).write(grant) == 1
    found = StoredGrants(store, "linear", f"{URL}#x").read()
    assert found is not None
    assert (found.grant, found.generation) == (grant, 1)
    assert StoredGrants(store, "linear", "https://evil.example/mcp").read() is None
    assert StoredGrants(store, "other", URL).read() is None
    assert [kept.server for kept in all_grants(store)] == ["linear"]


def test_a_client_is_kept_for_each_issuer(store: CredentialStore) -> None:
    grants = StoredGrants(store, "linear", URL)
    grants.keep_client(OAuthClient(ISSUER, "c1"))
    assert grants.client(ISSUER) == OAuthClient(ISSUER, "c1")
    assert grants.client("https://other.example") is None


def test_a_challenge_is_written_once(store: CredentialStore) -> None:
    grants = StoredGrants(store, "linear", URL)
    for _ in range(3):
        grants.keep_challenge(Challenge("", ("admin",)))
    assert grants.challenge() == Challenge("", ("admin",))
    assert store.rows("challenge")[0].generation == 1


def test_what_another_version_wrote_is_as_if_nobody_had_signed_in(store: CredentialStore) -> None:
    grants = StoredGrants(store, "linear", URL)
    for kind in ("grant", "client", "challenge"):
        store.write(kind, "linear", f"{URL} {ISSUER}" if kind == "client" else URL, b'{"of": "another version"}')
    assert (grants.read(), grants.client(ISSUER), grants.clients()) == (None, None, [])
    assert all_grants(store) == []
    assert grants.write(grant_of({"access_token": "t", "token_type": "bearer"})) == 2
    assert grants.read() is not None
