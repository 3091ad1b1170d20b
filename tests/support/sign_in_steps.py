"""Plays the steps of a sign-in against documents, without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.sign_in import BegunSignIn, SignInSettings
from pactgate.upstreams.oauth.steps import Fetch, Fetched, Steps, T

URL = "https://api.example/team/mcp"
ISSUER = "https://login.example/tenant"
REDIRECT = "http://127.0.0.1:4711/callback"
PATH_FORM = "https://api.example/.well-known/oauth-protected-resource/team/mcp"
ROOT_FORM = "https://api.example/.well-known/oauth-protected-resource"
AS_FORM = "https://login.example/.well-known/oauth-authorization-server/tenant"
OIDC_FORM = "https://login.example/.well-known/openid-configuration/tenant"
OIDC_OLD_FORM = "https://login.example/tenant/.well-known/openid-configuration"
RESOURCE = {"resource": URL, "authorization_servers": [ISSUER]}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.example/authorize?tenant=1",
    "token_endpoint": "https://login.example/token",
    "registration_endpoint": "https://login.example/register",
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none"],
}
REGISTERED = {"client_id": "c1", "token_endpoint_auth_method": "none"}
Documents = Mapping[str, object]


def play(steps: Steps[T], documents: Documents) -> tuple[T, list[Fetch]]:
    """Run the steps: a document is answered with 200, an integer is a status, everything else is 404."""
    asked: list[Fetch] = []
    try:
        fetch = next(steps)
        while True:
            asked.append(fetch)
            found = documents.get(fetch.url, 404)
            answer = Fetched(found, b"") if isinstance(found, int) else Fetched(200, json.dumps(found).encode())
            fetch = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value, asked


def begin(
    documents: Documents,
    *,
    challenge: Challenge | None = None,
    known: OAuthClient | None = None,
    before: tuple[str, ...] = (),
    **settings: object,
) -> tuple[BegunSignIn, list[Fetch]]:
    wanted = SignInSettings(server="linear", url=URL, **settings)  # type: ignore[arg-type]
    steps = sign_in.begin(
        wanted,
        challenge or Challenge(),
        lambda issuer: known,
        before=before,
        redirect_uri=REDIRECT,
        state="state-1",
        verifier="verifier-1",
    )
    return play(steps, documents)


REGISTER: Documents = {"https://login.example/register": REGISTERED}
ALL: Documents = {PATH_FORM: RESOURCE, AS_FORM: METADATA, "https://login.example/register": REGISTERED}


def query(begun: BegunSignIn) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(begun.request.url).query).items()}


def grant_of(token: Mapping[str, object]) -> sign_in.SignInGrant:
    begun, _ = begin(ALL)
    found, asked = play(sign_in.finish(begun, "code-1", 1000.0), {"https://login.example/token": token})
    assert asked[0].form is not None
    assert asked[0].form["resource"] == URL
    assert asked[0].form["code_verifier"] == "verifier-1"
    return found
