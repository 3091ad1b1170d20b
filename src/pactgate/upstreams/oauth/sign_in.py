"""A sign-in from its beginning to its grant, as steps; and the grant as it is kept. Pure.

Must not: give a client, a secret or a refresh token of one issuer to another.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from pactgate.core.display import cut
from pactgate.upstreams.oauth import discovery, tokens
from pactgate.upstreams.oauth.authorization import AuthorizationRequest, ask
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import ClientSettings, OAuthClient, given_client, register
from pactgate.upstreams.oauth.discovery import AuthorizationServer, ServerResource
from pactgate.upstreams.oauth.steps import Steps, sign_in_failure
from pactgate.upstreams.oauth.tokens import SubjectToken, TokenSet

KnownClient = Callable[[str], OAuthClient | None]
"""The client that was registered at an issuer before."""


class SignInGrant(Struct, frozen=True, kw_only=True):
    """What a sign-in gave, and what is needed to refresh it. Times are seconds of the wall clock."""

    resource: str
    client: OAuthClient
    token_endpoint: str
    access_token: str
    refresh_token: str = ""
    expires_at: float | None = None
    requested: tuple[str, ...] = ()
    scopes: tuple[str, ...] | None = None
    signed_in_at: float
    refreshed_at: float | None = None
    unanswered: int = 0
    """How often the refresh token was presented without an answer that was kept."""

    @property
    def newest_at(self) -> float:
        return self.refreshed_at or self.signed_in_at


class ExchangeSettings(Struct, frozen=True, kw_only=True):
    """Where the token of a caller is exchanged: at its issuer, where the gateway is a client."""

    issuer: str
    client: ClientSettings
    audience: str = ""
    is_assertion: bool = False
    """Whether the issuer gives an assertion for the authorization server of the server."""


class SignInSettings(Struct, frozen=True, kw_only=True):
    """What the configuration says of one server's sign-in."""

    server: str
    url: str
    issuer: str | None = None
    client: ClientSettings = ClientSettings()
    document: str = ""
    """The client id metadata document that the gateway publishes itself."""
    scopes: tuple[str, ...] = ()
    exchange: ExchangeSettings | None = None


class BegunSignIn(Struct, frozen=True):
    """A sign-in that waits for the answer of a person."""

    request: AuthorizationRequest
    client: OAuthClient
    token_endpoint: str


def begin(
    settings: SignInSettings,
    challenge: Challenge,
    known_client: KnownClient,
    *,
    before: tuple[str, ...],
    redirect_uri: str,
    state: str,
    verifier: str,
) -> Steps[BegunSignIn]:
    """From a challenge to the URL that a person opens. `before` are scopes that were asked for before."""
    protected = yield from discovery.find_resource(settings.server, settings.url, challenge)
    found = yield from discovery.find_authorization_server(settings.server, _issuer(settings, protected))
    wanted = discovery.choose_scopes(
        settings=settings.scopes, challenged=challenge.scopes, offered=protected.scopes, before=before
    )
    scopes = discovery.with_offline_access(wanted, found)
    client = yield from _find_client(settings, found, known_client, redirect_uri, scopes)
    request = ask(
        settings.server,
        found,
        client,
        redirect_uri=redirect_uri,
        resource=protected.resource,
        scopes=scopes,
        state=state,
        verifier=verifier,
    )
    return BegunSignIn(request, client, found.token_endpoint)


def _issuer(settings: SignInSettings, protected: ServerResource) -> str:
    """The issuer to sign in at. Credentials that were made for one are shown to no other."""
    if settings.issuer is None:
        return protected.issuers[0]
    if settings.issuer not in protected.issuers:
        named = cut(", ".join(protected.issuers), 300)
        why = f"it now names another authorization server ({named}) than `issuer` in its `auth`, {settings.issuer}."
        raise sign_in_failure(settings.server, why)
    return settings.issuer


def _find_client(
    settings: SignInSettings,
    found: AuthorizationServer,
    known_client: KnownClient,
    redirect_uri: str,
    scopes: tuple[str, ...],
) -> Steps[OAuthClient]:
    """The client of the settings, else its metadata document, else the one registered before, else a new registration."""
    for given in (settings.client, ClientSettings(settings.document)):
        client = given_client(settings.server, found, given)
        if client is not None:
            return client
    known = known_client(found.issuer)
    if known is not None and known.issuer == found.issuer and known.redirect_uri == redirect_uri:
        return known
    return (yield from register(settings.server, found, redirect_uri, scopes))


def finish(begun: BegunSignIn, code: str, now: float) -> Steps[SignInGrant]:
    """From the code of the answer to the grant."""
    request = begun.request
    try:
        given = yield from tokens.redeem_code(begun.token_endpoint, begun.client, request, code)
    except tokens.RefusedGrantError:
        raise sign_in_failure(
            request.server, f"{request.issuer} did not accept its own code (invalid_grant)."
        ) from None
    return _granted(given, begun.client, begun.token_endpoint, request.resource, request.scopes, now)


def by_itself(
    settings: SignInSettings, scopes: tuple[str, ...], now: float, assertion: str | None = None
) -> Steps[SignInGrant]:
    """A grant of the gateway's own: no person is asked. By its credentials (RFC 6749, 4.4), or for an assertion of its platform."""
    assert settings.issuer is not None, "checked with the configuration"
    found, client = yield from _known_server(settings.server, settings.issuer, settings.client)
    resource = discovery.canonical_resource(settings.url)
    if assertion is None:
        asked = tokens.client_credentials(settings.server, found.token_endpoint, client, resource, scopes)
    else:
        asked = tokens.redeem_assertion(settings.server, found.token_endpoint, client, assertion, resource, scopes)
    try:
        given = yield from asked
    except tokens.RefusedGrantError:
        raise sign_in_failure(settings.server, f"{settings.issuer} refused the client (invalid_grant).") from None
    return _granted(given, client, found.token_endpoint, resource, scopes, now)


def by_exchange(
    settings: SignInSettings, subject: SubjectToken, scopes: tuple[str, ...], now: float
) -> Steps[SignInGrant]:
    """A grant of a caller, from its token. That token goes to its issuer alone. Raises RefusedGrantError where it is not good enough."""
    wanted = settings.exchange
    assert wanted is not None, "checked with the configuration"
    server, resource = settings.server, discovery.canonical_resource(settings.url)
    provider, client = yield from _known_server(server, wanted.issuer, wanted.client)
    asked = {"resource": resource, **({"audience": wanted.audience} if wanted.audience else {})}
    if not wanted.is_assertion:
        asked |= {"scope": " ".join(scopes)} if scopes else {}
        given = yield from tokens.exchange(server, provider.token_endpoint, client, subject, asked)
        return _granted(given, client, provider.token_endpoint, resource, scopes, now)
    assert settings.issuer is not None, "checked with the configuration"
    asked = {"audience": settings.issuer, **asked, "requested_token_type": tokens.ID_JAG}
    assertion = yield from tokens.exchange(server, provider.token_endpoint, client, subject, asked)
    found, client = yield from _known_server(server, settings.issuer, settings.client)
    given = yield from tokens.redeem_assertion(
        server, found.token_endpoint, client, assertion.access_token, resource, scopes
    )
    return _granted(given, client, found.token_endpoint, resource, scopes, now)


def _known_server(server: str, issuer: str, given: ClientSettings) -> Steps[tuple[AuthorizationServer, OAuthClient]]:
    """An authorization server that the operator wrote down, and the client that the gateway is there."""
    found = yield from discovery.find_authorization_server(server, issuer)
    client = given_client(server, found, given)
    if client is None:
        raise sign_in_failure(server, f"{issuer} does not take client id metadata documents.")
    return found, client


def refreshed(server: str, grant: SignInGrant, now: float) -> Steps[SignInGrant]:
    """The grant with a new access token. Raises RefusedGrantError where only a sign-in helps."""
    given = yield from tokens.refresh(server, grant.token_endpoint, grant.client, grant.refresh_token, grant.resource)
    made = _granted(given, grant.client, grant.token_endpoint, grant.resource, grant.requested, grant.signed_in_at)
    scopes = grant.scopes if given.scopes is None else given.scopes
    return replace(made, scopes=scopes, refreshed_at=now, expires_at=_end(given, now))


def _granted(
    given: TokenSet, client: OAuthClient, endpoint: str, resource: str, requested: tuple[str, ...], now: float
) -> SignInGrant:
    return SignInGrant(
        resource=resource,
        client=client,
        token_endpoint=endpoint,
        access_token=given.access_token,
        refresh_token=given.refresh_token,
        expires_at=_end(given, now),
        requested=requested,
        scopes=given.scopes,
        signed_in_at=now,
    )


def _end(given: TokenSet, now: float) -> float | None:
    return None if given.expires_in_s is None else now + given.expires_in_s
