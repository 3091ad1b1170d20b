"""Grants, registered clients and wanted scopes in the credential store. Each belongs to a server and to its URL: another URL gets nothing.

Must not: write a token anywhere else.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.discovery import canonical_resource
from pactgate.upstreams.oauth.sign_in import SignInGrant

GRANT: Final = "grant"
_CLIENT: Final = "client"
_CHALLENGE: Final = "challenge"
_Kept = TypeVar("_Kept", bound=Struct)


class StoredGrant(Struct, frozen=True):
    """A grant and the generation of its row."""

    grant: SignInGrant
    generation: int


class StoredGrants:
    """What the store keeps of one server at one URL. Every method waits for the disk."""

    def __init__(self, store: CredentialStore, server: str, url: str) -> None:
        self.store = store
        self._server = server
        self._url = canonical_resource(url)

    def read(self) -> StoredGrant | None:
        row = self.store.read(GRANT, self._server, self._url)
        return None if row is None else StoredGrant(msgspec.json.decode(row.data, type=SignInGrant), row.generation)

    def write(self, grant: SignInGrant, *, replaces: int | None = None) -> int | None:
        """The new generation; None where another process has written since `replaces`."""
        return self.store.write(GRANT, self._server, self._url, msgspec.json.encode(grant), replaces=replaces)

    def client(self, issuer: str) -> OAuthClient | None:
        """The client that was registered at this issuer for this server."""
        return self._read(_CLIENT, f"{self._url} {issuer}", OAuthClient)

    def keep_client(self, client: OAuthClient) -> None:
        data = msgspec.json.encode(client)
        self.store.write(_CLIENT, self._server, f"{self._url} {client.issuer}", data)

    def challenge(self) -> Challenge | None:
        """What the server wanted and a grant did not have."""
        return self._read(_CHALLENGE, self._url, Challenge)

    def keep_challenge(self, challenge: Challenge) -> None:
        if challenge != self.challenge():
            self.store.write(_CHALLENGE, self._server, self._url, msgspec.json.encode(challenge))

    def _read(self, kind: str, name: str, of: type[_Kept]) -> _Kept | None:
        row = self.store.read(kind, self._server, name)
        return None if row is None else msgspec.json.decode(row.data, type=of)


def all_grants(store: CredentialStore) -> list[tuple[str, StoredGrant]]:
    """Every grant that is kept, with its server."""
    return [
        (row.server, StoredGrant(msgspec.json.decode(row.data, type=SignInGrant), row.generation))
        for row in store.rows(GRANT)
    ]
