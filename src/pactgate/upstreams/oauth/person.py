"""Has a person at a browser sign in at the identity provider of a caller (OpenID Connect Core, 3.1), to know who it is.

Must not: decide what an ID token says, or keep one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from pactgate.config.sections.oauth import Issuer, provider_urls
from pactgate.state.handoffs import Handoffs
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth import discovery, tokens
from pactgate.upstreams.oauth.authorization import AuthorizationRequest, ask, read_answer
from pactgate.upstreams.oauth.client import ClientSettings, OAuthClient, given_client
from pactgate.upstreams.oauth.connect import TICKET_S, digest
from pactgate.upstreams.oauth.discovery import AuthorizationServer
from pactgate.upstreams.oauth.fetcher import SignInFetcher
from pactgate.upstreams.oauth.steps import Steps, sign_in_failure

_WHERE: Final = "the gateway"
"""What a person signs in to, in messages."""


class _Begun(Struct, frozen=True):
    """What was asked, in which browser, and the link that it was opened with."""

    link: str
    browser: str
    issuer: str
    nonce: str
    request: AuthorizationRequest
    client: OAuthClient
    token_endpoint: str


class SignedInPerson(Struct, frozen=True):
    """What the provider says of a person, straight from its token endpoint, and what it has to fit. `link` is what the person opened."""

    link: str
    issuer: Issuer
    access_token: str
    id_token: str
    client_id: str
    nonce: str

    def __repr__(self) -> str:
        return f"SignedInPerson(issuer={self.issuer.issuer!r})"


class PersonSignIn:
    """`issuers` are those of the configuration; those with `login` can say who a person is."""

    def __init__(self, issuers: Callable[[], Iterable[Issuer]], client: HttpClient, handoffs: Handoffs) -> None:
        self._issuers = issuers
        self._client = client
        self._handoffs = handoffs

    def knows(self, issuer: str) -> bool:
        return self._settings_of(issuer) is not None

    def _settings_of(self, issuer: str) -> Issuer | None:
        return next((one for one in self._issuers() if one.issuer == issuer and one.login is not None), None)

    async def begin(
        self, issuer: str, link: str, redirect_uri: str, browser: str, *, resource: str = "", scopes: Iterable[str] = ()
    ) -> str:
        """The URL at which a person signs in. `resource` and `scopes` are what an access token is wanted for. Raises GatewayFailure."""
        settings, nonce = self._settings_of(issuer), secrets.token_urlsafe(32)
        assert settings is not None, "only issuers that are known are asked"
        # Entra names people by `oid`, and puts it into an ID token for `profile` only.
        own = ("openid", "profile") if settings.quirks == "entra" else ("openid",)
        found, client, request = await self._fetcher(settings).run(
            _ask(settings, redirect_uri, resource, tuple(dict.fromkeys((*own, *scopes))))
        )
        begun = _Begun(link, digest(browser), issuer, nonce, request, client, found.token_endpoint)
        await self._handoffs.put(f"person {request.state}", msgspec.json.encode(begun), TICKET_S)
        return f"{request.url}&{urlencode({'nonce': nonce})}"

    async def finish(self, answer: Mapping[str, str], browser: str) -> SignedInPerson | None:
        """Who it was; None for an answer to something else, or of another browser. Raises GatewayFailure."""
        data = await self._handoffs.take(f"person {answer.get('state', '')}")
        begun = None if data is None else msgspec.json.decode(data, type=_Begun)
        if begun is None or not browser or not secrets.compare_digest(begun.browser, digest(browser)):
            return None
        settings = self._settings_of(begun.issuer)
        if settings is None:
            raise sign_in_failure(_WHERE, "the configuration has changed.")
        code = read_answer(begun.request, answer)
        redeeming = tokens.redeem_code(begun.token_endpoint, begun.client, begun.request, code)
        try:
            found = await self._fetcher(settings).run(redeeming)
        except tokens.RefusedGrantError:
            raise sign_in_failure(_WHERE, f"{begun.issuer} did not accept its own code.") from None
        return SignedInPerson(begun.link, settings, found.access_token, found.id_token, begun.client.id, begun.nonce)

    def _fetcher(self, settings: Issuer) -> SignInFetcher:
        return SignInFetcher(self._client, _WHERE, settings.issuer, provider_urls([settings]))


def _ask(
    settings: Issuer, redirect_uri: str, resource: str, scopes: tuple[str, ...]
) -> Steps[tuple[AuthorizationServer, OAuthClient, AuthorizationRequest]]:
    login = settings.login
    assert login is not None, "only such issuers are asked"
    found = yield from discovery.find_authorization_server(_WHERE, settings.issuer)
    client = given_client(_WHERE, found, ClientSettings(login.client_id, login.client_secret or ""))
    assert client is not None, "an id that the operator wrote down"
    request = ask(
        _WHERE,
        found,
        client,
        redirect_uri=redirect_uri,
        resource=resource,
        scopes=scopes,
        state=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
    )
    return found, client, request
