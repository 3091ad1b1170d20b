"""What is special about the access tokens of known identity providers, as data: which claims say what.

A setting of the operator always comes first. Must not: have code for one provider.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pactgate.config.sections.oauth import Issuer


class ClaimNames(Struct, frozen=True):
    """Claims of an access token. Of `client_id` the first counts that is there; of `groups` and `scopes` all do."""

    subject: str = "sub"
    client_id: tuple[str, ...] = ("client_id", "azp")
    groups: tuple[str, ...] = ("groups",)
    scopes: tuple[str, ...] = ("scope", "scp")


QUIRKS: Final = {
    # Roles of a realm are not in `groups`; `azp` is the client.
    "keycloak": ClaimNames(client_id=("azp", "client_id"), groups=("groups", "realm_access.roles")),
    # `sub` differs from application to application, `oid` does not; `appid` is the client in tokens of version 1.0.
    "entra": ClaimNames(subject="oid", client_id=("azp", "appid"), groups=("groups", "roles"), scopes=("scp", "roles")),
    # With RBAC the granted permissions are in a claim of their own.
    "auth0": ClaimNames(client_id=("azp", "client_id"), scopes=("scope", "permissions")),
    # `sub` is a login name, which can be given to somebody else; `uid` is not reused. `uid` is absent in client credentials.
    "okta": ClaimNames(subject="uid|sub", client_id=("cid",), scopes=("scp",)),
    "authentik": ClaimNames(client_id=("azp", "client_id")),
    "descope": ClaimNames(client_id=("azp", "client_id"), groups=("roles",), scopes=("scope", "permissions")),
}


def claim_names(issuer: Issuer) -> ClaimNames:
    """The claims of this issuer's tokens."""
    known = QUIRKS[issuer.quirks] if issuer.quirks is not None else ClaimNames()
    return ClaimNames(
        subject=issuer.subject or known.subject,
        client_id=issuer.client_id or known.client_id,
        groups=issuer.groups or known.groups,
        scopes=issuer.scopes or known.scopes,
    )
