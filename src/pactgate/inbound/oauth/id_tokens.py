"""Whom an ID token is about (OpenID Connect Core, 3.1.3.7): only for a person at a browser, never to admit a request.

It comes straight from the token endpoint of its issuer, which TLS vouches for, so its signature says nothing more (3.1.3.7, 6).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from pactgate.config.sections.oauth import Issuer
from pactgate.inbound.oauth.claims import check_times, principal_key, subject_of
from pactgate.inbound.oauth.quirks import claim_names
from pactgate.inbound.oauth.token_form import TokenRefusedError


class CheckedPerson(Protocol):
    """What an identity provider says of a person, and what it has to fit."""

    @property
    def link(self) -> str: ...

    @property
    def issuer(self) -> Issuer: ...

    @property
    def access_token(self) -> str: ...

    @property
    def id_token(self) -> str: ...

    @property
    def client_id(self) -> str: ...

    @property
    def nonce(self) -> str: ...


class PersonCheck(Protocol):
    """Asks identity providers. `upstreams/oauth/person.py` has the one there is."""

    def knows(self, issuer: str) -> bool:
        """Whether people can sign in there."""

    async def begin(
        self, issuer: str, link: str, redirect_uri: str, browser: str, *, resource: str = "", scopes: Iterable[str] = ()
    ) -> str:
        """The URL at which a person signs in. `resource` and `scopes` are what an access token is wanted for. Raises GatewayFailure."""

    async def finish(self, answer: Mapping[str, str], browser: str) -> CheckedPerson | None:
        """Who it was; None for an answer to something else, or of another browser. Raises GatewayFailure."""


def principal_of(id_token: str, issuer: Issuer, client_id: str, nonce: str, now: float) -> str:
    """The key of the principal. Raises `TokenRefusedError`."""
    claims = _claims(id_token)
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if claims.get("iss") != issuer.issuer:
        raise TokenRefusedError("it is of another issuer (iss)")
    if not isinstance(audiences, list) or client_id not in audiences or claims.get("azp", client_id) != client_id:
        raise TokenRefusedError("it is for another client (aud)")
    if claims.get("nonce") != nonce:
        raise TokenRefusedError("it belongs to another sign-in (nonce)")
    if check_times(claims, issuer.clock_skew_ms / 1000, now) is None:
        raise TokenRefusedError("it does not say when it expires (exp)")
    return principal_key(issuer.issuer, subject_of(claims, claim_names(issuer)))


def _claims(id_token: str) -> dict[str, Any]:
    try:
        part = id_token.split(".")[1]
        return msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, Any])
    except (IndexError, ValueError, msgspec.DecodeError):
        raise TokenRefusedError("there is none, or it can't be read") from None
