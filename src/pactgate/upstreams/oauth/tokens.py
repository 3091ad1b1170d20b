"""The token endpoint: from a code, a refresh token or the client itself to an access token (RFC 6749, 5; RFC 8707). Pure.

`resource` is in every request. Must not: repeat a request, or put what the endpoint wrote where others read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.oauth.authorization import AuthorizationRequest
from pactgate.upstreams.oauth.challenge import split_scopes
from pactgate.upstreams.oauth.client import OAuthClient, prove
from pactgate.upstreams.oauth.steps import Fetched, Steps, decode_object, sign_in_failure, text_of

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")
_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_BEARER_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG: Final = f"{_TOKEN_TYPE}id-jag"
"""An assertion for the authorization server of another resource (draft-ietf-oauth-identity-assertion-authz-grant)."""
_MAX_LIFETIME_S: Final = 10 * 365 * 86400


class TokenSet(Struct, frozen=True):
    """What a token endpoint gave. `expires_in_s` is None where it did not say; `scopes` where they are those asked for."""

    access_token: str
    refresh_token: str = ""
    expires_in_s: int | None = None
    scopes: tuple[str, ...] | None = None
    id_token: str = ""


class SubjectToken(Struct, frozen=True):
    """The token with which a caller calls the gateway, and what it is called (RFC 8693, 3)."""

    text: str
    kind: str = "access_token"

    def __repr__(self) -> str:
        return "SubjectToken()"


class RefusedGrantError(Exception):
    """The endpoint does not accept the grant any more (`invalid_grant`): only a new sign-in helps."""


class UnknownClientError(GatewayFailure):
    """The endpoint does not accept the client (`invalid_client`): one that was registered may have been forgotten there."""

    def __init__(self, server: str, client: OAuthClient) -> None:
        step = (
            "Try again: another client is registered."
            if client.redirect_uri
            else f"Check the client in `auth` of {server}."
        )
        super().__init__(
            Kind.AUTHORIZATION_REQUIRED,
            f"Signing in to {server} failed: {client.issuer} does not know the client of the gateway (invalid_client). {step}",
            server=server,
            details={"permanent": True},
        )


def redeem_code(endpoint: str, client: OAuthClient, request: AuthorizationRequest, code: str) -> Steps[TokenSet]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
        **({"resource": request.resource} if request.resource else {}),
    }
    return (yield from _ask(request.server, endpoint, client, form))


def refresh(server: str, endpoint: str, client: OAuthClient, refresh_token: str, resource: str) -> Steps[TokenSet]:
    """A new access token. Where the answer has no refresh token, the old one stays valid (RFC 6749, 6)."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "resource": resource}
    found = yield from _ask(server, endpoint, client, form)
    return found if found.refresh_token else replace(found, refresh_token=refresh_token)


def client_credentials(
    server: str, endpoint: str, client: OAuthClient, resource: str, scopes: tuple[str, ...]
) -> Steps[TokenSet]:
    form = {"grant_type": "client_credentials", "resource": resource, **_scope(scopes)}
    return (yield from _ask(server, endpoint, client, form))


def redeem_assertion(
    server: str, endpoint: str, client: OAuthClient, assertion: str, resource: str, scopes: tuple[str, ...]
) -> Steps[TokenSet]:
    """A token for what somebody else asserts, who is trusted by the authorization server (RFC 7523, 2.1)."""
    form = {"grant_type": _BEARER_GRANT, "assertion": assertion, "resource": resource, **_scope(scopes)}
    return (yield from _ask(server, endpoint, client, form))


def exchange(
    server: str, endpoint: str, client: OAuthClient, given: SubjectToken, wanted: Mapping[str, str]
) -> Steps[TokenSet]:
    """Another token for the token of a caller (RFC 8693), at the issuer of that token. `wanted` says which."""
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": given.text,
        "subject_token_type": f"{_TOKEN_TYPE}{given.kind}",
        **wanted,
    }
    return (yield from _ask(server, endpoint, client, form, is_bearer="requested_token_type" not in wanted))


def _scope(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}


def _ask(
    server: str, endpoint: str, client: OAuthClient, form: Mapping[str, str], *, is_bearer: bool = True
) -> Steps[TokenSet]:
    return _read(server, client, (yield prove(client, endpoint, form)), is_bearer=is_bearer)


def _read(server: str, client: OAuthClient, fetched: Fetched, *, is_bearer: bool) -> TokenSet:
    members = decode_object(fetched) or {}
    token = text_of(members, "access_token")
    if fetched.status != 200 or not token:
        error = text_of(members, "error")
        if error == "invalid_grant":
            raise RefusedGrantError
        if error == "invalid_client":
            raise UnknownClientError(server, client)
        said = text_of(members, "error_description") or error
        later = " Try again later." if fetched.status >= 500 or fetched.status == 429 else ""
        raise sign_in_failure(server, f"{client.issuer} gave no token (HTTP {fetched.status}).{later}", said)
    kinds = ("bearer", "") if is_bearer else ("n_a",)  # what is not for a resource has no type (RFC 8693, 2.2.1)
    if text_of(members, "token_type").lower() not in kinds or not _TOKEN.fullmatch(token):
        raise sign_in_failure(server, f"{client.issuer} gave a token that can't be used as a bearer token.")
    refresh_token = text_of(members, "refresh_token")
    scope = members.get("scope")
    return TokenSet(
        token,
        refresh_token if _TOKEN.fullmatch(refresh_token) else "",
        _lifetime_s(members.get("expires_in")),
        split_scopes(scope) if isinstance(scope, str) and scope else None,
        text_of(members, "id_token"),
    )


def _lifetime_s(value: object) -> int | None:
    """Some endpoints write the number as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:10])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_LIFETIME_S:
        return None
    return int(value)
