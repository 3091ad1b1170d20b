"""Grants, registered clients and wanted scopes in the credential store. Each belongs to a server and to its URL: another URL gets nothing.

Must not: write a token anywhere else.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pactgate.state.credential_store import LOCK_S, CredentialStore, SealedRow
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.discovery import canonical_resource
from pactgate.upstreams.oauth.sign_in import SignInGrant

GRANT: Final = "grant"
CLIENT: Final = "client"
CALLERS_CLIENT: Final = "callers-client"
_CHALLENGE: Final = "challenge"
_Kept = TypeVar("_Kept", bound=Struct)


class StoredGrant(Struct, frozen=True):
    """A grant and the generation of its row."""

    grant: SignInGrant
    generation: int


class StoredGrants:
    """What the store keeps of one server at one URL. Every method waits for the disk.

    `principal` is the caller whose grant it is, as people see it; empty for the one that all share. Registered clients are the gateway's,
    so all callers have the same; their answers come to another address than those of `pactgate login`.
    """

    def __init__(self, store: CredentialStore, server: str, url: str, principal: str = "") -> None:
        self.store = store
        self.server = server
        self.principal = principal
        self._url = canonical_resource(url)
        self._name = f"{self._url} {principal}" if principal else self._url
        self._client_kind = CALLERS_CLIENT if principal else CLIENT

    def locked(self, within_s: float = LOCK_S) -> AbstractAsyncContextManager[None]:
        """Hold this grant against every other process, which is waited for so long at most; a killed holder frees it."""
        return self.store.locked(self.server, self.principal, within_s=within_s)

    def read(self) -> StoredGrant | None:
        row = self.store.read(GRANT, self.server, self._name)
        return None if row is None else _stored(row)

    def write(self, grant: SignInGrant, *, replaces: int | None = None) -> int | None:
        """The new generation; None where another process has written since `replaces`."""
        return self.store.write(GRANT, self.server, self._name, msgspec.json.encode(grant), replaces=replaces)

    def client(self, issuer: str) -> OAuthClient | None:
        """The client that was registered at this issuer for this server."""
        return self._read(self._client_kind, f"{self._url} {issuer}", OAuthClient)

    def clients(self) -> list[OAuthClient]:
        """Those that were registered for this server at any issuer."""
        rows = (row for row in self.store.rows(self._client_kind) if row.server == self.server)
        return [found for row in rows if (found := _decoded(row.data, OAuthClient)) is not None]

    def keep_client(self, client: OAuthClient) -> None:
        data = msgspec.json.encode(client)
        self.store.write(self._client_kind, self.server, f"{self._url} {client.issuer}", data)

    def forget_client(self, client: OAuthClient) -> None:
        """Have the next sign-in register another one, where this one was registered."""
        if client.redirect_uri:
            self.keep_client(replace(client, redirect_uri=""))

    def challenge(self) -> Challenge | None:
        """What the server wanted and a grant did not have."""
        return self._read(_CHALLENGE, self._name, Challenge)

    def keep_challenge(self, challenge: Challenge) -> None:
        if challenge != self.challenge():
            self.store.write(_CHALLENGE, self.server, self._name, msgspec.json.encode(challenge))

    def _read(self, kind: str, name: str, of: type[_Kept]) -> _Kept | None:
        row = self.store.read(kind, self.server, name)
        return None if row is None else _decoded(row.data, of)


class KeptGrant(NamedTuple):
    """One grant of the store, whose server it is for, and whose it is: a caller, or nobody where all share it."""

    server: str
    principal: str
    stored: StoredGrant


def all_grants(store: CredentialStore) -> list[KeptGrant]:
    return [
        KeptGrant(row.server, row.name.partition(" ")[2], stored)
        for row in store.rows(GRANT)
        if (stored := _stored(row)) is not None
    ]


def _stored(row: SealedRow) -> StoredGrant | None:
    grant = _decoded(row.data, SignInGrant)
    return None if grant is None else StoredGrant(grant, row.generation)


def _decoded(data: bytes, of: type[_Kept]) -> _Kept | None:
    """What a row says; None for what another version wrote and this one can't read: then somebody signs in again."""
    try:
        return msgspec.json.decode(data, type=of)
    except msgspec.DecodeError:
        return None
