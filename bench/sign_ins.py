"""Sign-ins at the servers of the benchmark, as a gateway keeps them: for everybody, or one for each client."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.sign_in import SignInGrant
from pactgate.upstreams.oauth.stored_grants import StoredGrants

if TYPE_CHECKING:
    from bench.lab import Row


def sign_in(servers: dict[str, dict[str, object]], row: Row, path: str) -> None:
    """Add what the entries of the servers need, and write the store."""
    store = CredentialStore.in_file(path)
    callers = [f"client-{number}" for number in range(row.tokens.count)] if row.who == "user" else []
    for name, entry in servers.items():
        entry["auth"] = {"type": "oauth", "who": row.who}
        for principal in ("", *callers):
            url = str(entry["url"])
            grant = SignInGrant(
                resource=url,
                client=OAuthClient("https://login.example", "gateway"),
                token_endpoint="https://login.example/token",
                access_token=f"access-token-of-{principal or 'everybody'}-0123456789abcdef",
                signed_in_at=time.time(),
            )
            StoredGrants(store, name, url, principal).write(grant)
