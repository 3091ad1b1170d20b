"""The part of a sign-in that a person sees: the URL to open, and the answer that comes back (RFC 6749, 4.1; RFC 7636; RFC 9207). Pure.

What was asked is kept beside the answer: state, verifier, issuer, redirect URI. An answer is refused unless it fits all of them, and the
text of an error is not shown, because anybody can make a browser send one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.discovery import AuthorizationServer
from pactgate.upstreams.oauth.steps import sign_in_failure

_ERROR: Final = re.compile(r"[a-z_]{1,60}")
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class AuthorizationRequest(Struct, frozen=True):
    """What was asked for, and what the answer has to fit."""

    server: str
    url: str
    state: str
    verifier: str
    issuer: str
    redirect_uri: str
    resource: str
    scopes: tuple[str, ...]
    needs_issuer: bool


def ask(
    server: str,
    found: AuthorizationServer,
    client: OAuthClient,
    *,
    redirect_uri: str,
    resource: str,
    scopes: tuple[str, ...],
    state: str,
    verifier: str,
    needs_promise: bool = True,
) -> AuthorizationRequest:
    """The request to open in a browser. `state` and `verifier` are fresh random text. Refused where PKCE is not promised, as MCP wants it;
    without `needs_promise` only where other methods are promised than S256."""
    if "S256" not in (found.challenge_methods or ()) and (needs_promise or found.challenge_methods is not None):
        why = f"{found.issuer} does not say that it supports PKCE with S256 (code_challenge_methods_supported)."
        raise sign_in_failure(server, why)
    endpoint = urlsplit(found.authorization_endpoint)
    if endpoint.scheme != "https" and not (endpoint.scheme == "http" and endpoint.hostname in _LOOPBACK):
        raise sign_in_failure(server, f"{found.issuer} has no authorization_endpoint that can be opened (https).")
    query = {
        **dict(parse_qsl(endpoint.query, keep_blank_values=True)),
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
    }
    if resource:
        query["resource"] = resource
    if scopes:
        query["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        query["prompt"] = "consent"  # OpenID Connect Core, 11
    return AuthorizationRequest(
        server=server,
        url=endpoint._replace(query=urlencode(query), fragment="").geturl(),
        state=state,
        verifier=verifier,
        issuer=found.issuer,
        redirect_uri=redirect_uri,
        resource=resource,
        scopes=scopes,
        needs_issuer=found.sends_issuer,
    )


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def read_answer(request: AuthorizationRequest, answer: Mapping[str, str]) -> str:
    """The code of an answer. Raises the failure that says why there is none."""
    server = request.server
    if not hmac.compare_digest(answer.get("state", "").encode(), request.state.encode()):
        raise sign_in_failure(server, "the answer belongs to another sign-in (its state differs).")
    issuer = answer.get("iss")
    if issuer is None and request.needs_issuer:
        raise sign_in_failure(server, f"the answer lacks the issuer that {request.issuer} promises (iss).")
    if issuer is not None and issuer != request.issuer:
        raise sign_in_failure(server, f"the answer comes from another issuer than {request.issuer} (iss).")
    if "error" in answer:
        error = answer["error"]
        raise sign_in_failure(server, f"it was refused ({error if _ERROR.fullmatch(error) else 'unreadable error'}).")
    if not answer.get("code"):
        raise sign_in_failure(server, "the answer has no code.")
    return answer["code"]
