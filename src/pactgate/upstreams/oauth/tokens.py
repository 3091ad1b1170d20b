"""The token endpoint: from a code, a refresh token or the client itself to an access token (RFC 6749, 5; RFC 8707). Pure.

`resource` is in every request. Must not: repeat a request, or put what the endpoint wrote where others read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from pactgate.upstreams.oauth.authorization import AuthorizationRequest
from pactgate.upstreams.oauth.challenge import split_scopes
from pactgate.upstreams.oauth.client import OAuthClient, prove
from pactgate.upstreams.oauth.steps import Fetch, Fetched, Steps, decode_object, sign_in_failure, text_of

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")
_MAX_LIFETIME_S: Final = 10 * 365 * 86400


class TokenSet(Struct, frozen=True):
    """What a token endpoint gave. `expires_in_s` is None where it did not say; `scopes` where they are those asked for."""

    access_token: str
    refresh_token: str = ""
    expires_in_s: int | None = None
    scopes: tuple[str, ...] | None = None


class RefusedGrantError(Exception):
    """The endpoint does not accept the grant any more (`invalid_grant`): only a new sign-in helps."""


def redeem_code(endpoint: str, client: OAuthClient, request: AuthorizationRequest, code: str) -> Steps[TokenSet]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
        "resource": request.resource,
    }
    return (yield from _ask(request.server, endpoint, client, form))


def refresh(server: str, endpoint: str, client: OAuthClient, refresh_token: str, resource: str) -> Steps[TokenSet]:
    """A new access token. Where the answer has no refresh token, the old one stays valid (RFC 6749, 6)."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "resource": resource}
    found = yield from _ask(server, endpoint, client, form)
    return (
        found if found.refresh_token else TokenSet(found.access_token, refresh_token, found.expires_in_s, found.scopes)
    )


def client_credentials(
    server: str, endpoint: str, client: OAuthClient, resource: str, scopes: tuple[str, ...]
) -> Steps[TokenSet]:
    form = {"grant_type": "client_credentials", "resource": resource}
    if scopes:
        form["scope"] = " ".join(scopes)
    return (yield from _ask(server, endpoint, client, form))


def _ask(server: str, endpoint: str, client: OAuthClient, form: Mapping[str, str]) -> Steps[TokenSet]:
    proved, authorization = prove(client, form)
    fetched = yield Fetch(endpoint, form=proved, authorization=authorization)
    return _read(server, client.issuer, fetched)


def _read(server: str, issuer: str, fetched: Fetched) -> TokenSet:
    members = decode_object(fetched) or {}
    token = text_of(members, "access_token")
    if fetched.status != 200 or not token:
        error = text_of(members, "error")
        if error == "invalid_grant":
            raise RefusedGrantError
        said = text_of(members, "error_description") or error
        raise sign_in_failure(server, f"{issuer} gave no token (HTTP {fetched.status}).", said)
    if text_of(members, "token_type").lower() not in ("bearer", "") or not _TOKEN.fullmatch(token):
        raise sign_in_failure(server, f"{issuer} gave a token that can't be used as a bearer token.")
    refresh_token = text_of(members, "refresh_token")
    scope = members.get("scope")
    return TokenSet(
        token,
        refresh_token if _TOKEN.fullmatch(refresh_token) else "",
        _lifetime_s(members.get("expires_in")),
        split_scopes(scope) if isinstance(scope, str) and scope else None,
    )


def _lifetime_s(value: object) -> int | None:
    """Some endpoints write the number as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:10])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_LIFETIME_S:
        return None
    return int(value)
