"""Has a person at a browser sign in at the identity provider of a caller (OpenID Connect Core, 3.1), to know who it is.

Must not: decide what an ID token says, or keep one.
"""

from __future__ import annotations

import secrets
import time
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
from pactgate.upstreams.oauth.steps import sign_in_failure

METADATA_S: Final = 300.0
"""How long the metadata of a provider is used again."""
_WHERE: Final = "the gateway"
"""What a person signs in to, in messages."""
_SLOT_CHARS: Final = 32
KnownProviders = dict[str, tuple[AuthorizationServer, float]]
"""The metadata of each issuer, and until when it is used."""


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
    """`issuers` are those of the configuration; those with `login` can say who a person is. `known` is what providers said of themselves.

    A browser has one sign-in at a time for a link, or for what is no link: the next takes the place of the one before."""

    def __init__(
        self,
        issuers: Callable[[], Iterable[Issuer]],
        client: HttpClient,
        handoffs: Handoffs,
        known: KnownProviders | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuers = issuers
        self._client = client
        self._handoffs = handoffs
        self._known = {} if known is None else known
        self._clock = clock

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
        login, found = settings.login, await self._provider(settings)
        assert login is not None, "only such issuers are known"
        client = given_client(_WHERE, found, ClientSettings(login.client_id, login.client_secret or ""))
        assert client is not None, "an id that the operator wrote down"
        slot = digest(f"{browser} {link}")[:_SLOT_CHARS]
        request = ask(
            _WHERE,
            found,
            client,
            redirect_uri=redirect_uri,
            resource=resource,
            scopes=tuple(dict.fromkeys((*own, *scopes))),
            state=f"{slot}{secrets.token_urlsafe(32)}",
            verifier=secrets.token_urlsafe(48),
            # Entra and Cognito do not list what they support, and providers that know no PKCE ignore it: the nonce binds the answer too.
            needs_promise=False,
        )
        begun = _Begun(link, digest(browser), issuer, nonce, request, client, found.token_endpoint)
        await self._handoffs.put(_note_of(request.state), msgspec.json.encode(begun), TICKET_S)
        return f"{request.url}&{urlencode({'nonce': nonce})}"

    async def finish(self, answer: Mapping[str, str], browser: str) -> SignedInPerson | None:
        """Who it was; None for an answer to something else, or of another browser. Raises GatewayFailure."""
        begun = await self._take(answer.get("state", ""))
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

    async def _take(self, state: str) -> _Begun | None:
        """What was begun with this state, once. What the same browser has begun since stays."""
        begun = None
        for read in (self._handoffs.get, self._handoffs.take):
            data = await read(_note_of(state))
            begun = None if data is None else msgspec.json.decode(data, type=_Begun)
            if begun is None or begun.request.state != state:
                return None
        return begun

    async def _provider(self, settings: Issuer) -> AuthorizationServer:
        """The metadata of a provider; what is old is forgotten, also that of issuers that are gone."""
        now = self._clock()
        for issuer in [issuer for issuer, (_, until) in self._known.items() if until <= now]:
            del self._known[issuer]
        if settings.issuer not in self._known:
            found = await self._fetcher(settings).run(discovery.find_authorization_server(_WHERE, settings.issuer))
            self._known[settings.issuer] = found, now + METADATA_S
        return self._known[settings.issuer][0]

    def _fetcher(self, settings: Issuer) -> SignInFetcher:
        return SignInFetcher(self._client, _WHERE, settings.issuer, provider_urls([settings]))


def _note_of(state: str) -> str:
    return f"person {state[:_SLOT_CHARS]}"
