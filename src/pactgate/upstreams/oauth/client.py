"""Who the gateway is at an authorization server, and how it proves it at the token endpoint (RFC 6749, 2.3; RFC 7591). Pure.

A client belongs to the issuer it was made at and is shown to no other (SEP-2352). A `clientId` that is an https URL is a client id
metadata document: it is used where the authorization server takes such documents. Must not: keep anything.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import quote_plus, urlsplit

from msgspec import Struct

from pactgate.config.oauth_client import CLIENT_NAME
from pactgate.config.value_checks import is_loopback
from pactgate.upstreams.oauth.discovery import AuthorizationServer
from pactgate.upstreams.oauth.steps import ClientSigner, Fetch, Steps, decode_object, sign_in_failure, text_of

_BASIC, _POST, _NONE, _SIGNED = "client_secret_basic", "client_secret_post", "none", "private_key_jwt"


class OAuthClient(Struct, frozen=True):
    """The gateway as a client of one authorization server."""

    issuer: str
    id: str
    secret: str = ""
    """For `private_key_jwt` the private key."""
    auth_method: str = _NONE
    redirect_uri: str = ""
    """Where a registered client gets its answers; empty for one that was not registered by us."""


def is_document(client_id: str) -> bool:
    return client_id.startswith("https://")


class ClientSettings(Struct, frozen=True):
    """Who the operator says that the gateway is at an authorization server. At most one of secret and private key is given."""

    id: str = ""
    secret: str = ""
    private_key: str = ""

    def __repr__(self) -> str:
        return f"ClientSettings(id={self.id!r})"


def given_client(server: str, found: AuthorizationServer, given: ClientSettings) -> OAuthClient | None:
    """The client of the settings, or None where another way has to be tried."""
    if not given.id or (is_document(given.id) and not found.takes_client_documents):
        return None
    if given.private_key:
        _require(server, found, (_SIGNED,))
        return OAuthClient(found.issuer, given.id, given.private_key, _SIGNED)
    method = _require(server, found, (_BASIC, _POST)) if given.secret else _NONE
    return OAuthClient(found.issuer, given.id, given.secret, method)


def _require(server: str, found: AuthorizationServer, known: tuple[str, ...]) -> str:
    """The first of these methods that the authorization server takes. Without a list any may do (RFC 8414, 2)."""
    offered = found.auth_methods or known
    chosen = next((method for method in known if method in offered), None)
    if chosen is None:
        why = f"{found.issuer} does not take {' or '.join(known)}; it offers {', '.join(offered)[:200]}."
        raise sign_in_failure(server, why)
    return chosen


def register(server: str, found: AuthorizationServer, redirect_uri: str, scopes: tuple[str, ...]) -> Steps[OAuthClient]:
    """Register the gateway as a client (RFC 7591), of a machine of its user's where its answers come to that machine."""
    if not found.registration_endpoint:
        why = (
            f"{found.issuer} registers no clients by itself. Register one there with the redirect URI {redirect_uri}, "
            f"and put its id and the issuer into `auth` of {server} as clientId and issuer."
        )
        raise sign_in_failure(server, why)
    offered = found.auth_methods or (_BASIC,)
    wanted = next((method for method in (_NONE, _BASIC, _POST) if method in offered), _NONE)
    body: dict[str, object] = {
        "client_name": CLIENT_NAME,
        "application_type": "native" if is_loopback(urlsplit(redirect_uri).hostname or "") else "web",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
    }
    if scopes:
        body["scope"] = " ".join(scopes)
    fetched = yield Fetch(found.registration_endpoint, json=body)
    members = decode_object(fetched) or {}
    client_id, secret = text_of(members, "client_id"), text_of(members, "client_secret")
    if fetched.status not in (200, 201) or not client_id:
        said = text_of(members, "error_description") or text_of(members, "error")
        raise sign_in_failure(server, f"{found.issuer} refused to register a client (HTTP {fetched.status}).", said)
    method = text_of(members, "token_endpoint_auth_method") or (wanted if secret or wanted == _NONE else _NONE)
    if method not in (_BASIC, _POST, _NONE):
        raise sign_in_failure(server, f"{found.issuer} wants a proof of the client that is not supported.", method)
    return OAuthClient(found.issuer, client_id, secret, method, redirect_uri)


def prove(client: OAuthClient, endpoint: str, form: Mapping[str, str]) -> Fetch:
    """The request to an endpoint with what proves the client."""
    if client.auth_method == _BASIC:
        pair = f"{quote_plus(client.id)}:{quote_plus(client.secret)}".encode()
        return Fetch(endpoint, form=form, authorization=f"Basic {base64.b64encode(pair).decode()}")
    named = {**form, "client_id": client.id}
    if client.auth_method == _SIGNED:
        return Fetch(endpoint, form=named, signer=ClientSigner(client.id, client.issuer, client.secret))
    return Fetch(endpoint, form=named | ({"client_secret": client.secret} if client.auth_method == _POST else {}))
