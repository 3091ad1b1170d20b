"""Makes the grants of a server from its settings: the one for the session that all share, and one for each caller.

A caller's grant lives as long as a session uses it. Must not: give the grant of one caller to another, or the shared one to any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from pactgate.config.file_access import read_regular_file
from pactgate.config.problems import UnreadableError
from pactgate.config.sections.sign_in import SignIn, TokenExchange
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.client import ClientSettings
from pactgate.upstreams.oauth.fetcher import SignInFetcher
from pactgate.upstreams.oauth.server_grant import Know, Obtain, ServerGrant
from pactgate.upstreams.oauth.sign_in import ExchangeSettings, SignInGrant, SignInSettings
from pactgate.upstreams.oauth.steps import authorization_required, sign_in_failure
from pactgate.upstreams.oauth.stored_grants import StoredGrants
from pactgate.upstreams.oauth.tokens import RefusedGrantError, SubjectToken

MAX_ASSERTION_BYTES: Final = 64 * 1024
TokenOf = Callable[[Principal], str | None]
"""The token with which a caller was admitted last."""


class GrantMaker(NamedTuple):
    """What grants of all servers have in common."""

    client: HttpClient
    store: CredentialStore | None
    know: Know
    token_of: TokenOf = lambda principal: None


def signs_in(config: ServerConfig) -> bool:
    """Whether the gateway signs in to a server: one over HTTP without credentials of the operator's."""
    return config.url is not None and not any(name.casefold() == "authorization" for name in config.headers)


def server_grant(config: ServerConfig, made_by: GrantMaker) -> ServerGrant | None:
    """The grant of the session that all callers share, which has the lists of the server."""
    if not signs_in(config):
        return None
    auth, fetcher = config.auth, fetcher_of(config, made_by.client)
    return ServerGrant(
        settings_of(config),
        fetcher,
        _stored(config, made_by, ""),
        made_by.know,
        obtain=_by_itself(config, auth, fetcher) if auth is not None and auth.lists_by_service else None,
        is_configured=auth is not None,
    )


def _stored(config: ServerConfig, made_by: GrantMaker, principal: str) -> StoredGrants | None:
    assert config.url is not None
    return None if made_by.store is None else StoredGrants(made_by.store, config.id, config.url, principal)


def _by_itself(config: ServerConfig, auth: SignIn, fetcher: SignInFetcher) -> Obtain:
    settings = settings_of(config)

    async def obtain(scopes: tuple[str, ...], now: float) -> SignInGrant:
        assertion = None
        if auth.assertion_file is not None:
            assertion = await asyncio.to_thread(_read_assertion, config.id, auth.assertion_file)
        return await fetcher.run(sign_in.by_itself(settings, scopes, now, assertion))

    return obtain


def _read_assertion(server: str, path: str) -> str:
    try:
        return read_regular_file(path, MAX_ASSERTION_BYTES).decode("ascii", "replace").strip()
    except UnreadableError as problem:
        raise sign_in_failure(server, f"its assertionFile: {problem.message} {problem.hint}") from None


class CallerGrants:
    """The grants of the callers of one server, while sessions use them."""

    def __init__(self, config: ServerConfig, made_by: GrantMaker) -> None:
        self._config = config
        self._made_by = made_by
        self._held: WeakValueDictionary[str | Principal, ServerGrant] = WeakValueDictionary()

    def __iter__(self) -> Iterator[ServerGrant]:
        return iter(list(self._held.values()))

    def of(self, principal: Principal) -> ServerGrant:
        """The grant of a caller. Raises where this caller can have none.

        A sign-in belongs to the principal. What is exchanged follows from the rights in a token, so others are another grant.
        """
        auth = self._config.auth
        assert auth is not None, "only such servers have grants of callers"
        key = principal.key if auth.exchange is None else principal
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = self._make(principal, auth)
        return held

    def _make(self, principal: Principal, auth: SignIn) -> ServerGrant:
        config, made_by = self._config, self._made_by
        fetcher = fetcher_of(config, made_by.client)
        if auth.exchange is not None:
            obtain = self._by_exchange(principal, auth.exchange, fetcher)
            required = partial(_not_exchanged, config.id)
            return ServerGrant(settings_of(config), fetcher, None, made_by.know, obtain=obtain, required=required)
        if principal.kind is PrincipalKind.LOCAL:  # whoever started the gateway is who runs `pactgate login`
            grants = _stored(config, made_by, "")
            return ServerGrant(settings_of(config), fetcher, grants, made_by.know)
        if principal.kind is PrincipalKind.ANONYMOUS:
            why = "each client has a sign-in of its own there, and this one can't be told from others."
            raise authorization_required(config.id, why, next_step="Call with a token.")
        grants = _stored(config, made_by, principal.shown)
        required = partial(authorization_required, config.id, is_callers=True)
        return ServerGrant(settings_of(config), fetcher, grants, made_by.know, required=required)

    def _by_exchange(self, principal: Principal, wanted: TokenExchange, fetcher: SignInFetcher) -> Obtain:
        settings, token_of, server = settings_of(self._config), self._made_by.token_of, self._config.id

        async def obtain(scopes: tuple[str, ...], now: float) -> SignInGrant:
            token = token_of(principal) if principal.issuer == wanted.issuer else None
            if token is None:
                raise _not_exchanged(server, f"it takes callers with a token of {wanted.issuer} only.")
            subject = SubjectToken(token, wanted.subject_token_type)
            try:
                return await fetcher.run(sign_in.by_exchange(settings, subject, scopes, now))
            except RefusedGrantError:
                raise _not_exchanged(server, f"{wanted.issuer} did not exchange the token of this caller.") from None

        return obtain


def _not_exchanged(server: str, why: str) -> GatewayFailure:
    return authorization_required(server, why, next_step="Sign in to your identity provider again.")


def settings_of(config: ServerConfig, document: str = "") -> SignInSettings:
    """`document` is the client id metadata document that the gateway publishes itself."""
    assert config.url is not None
    auth = config.auth
    if auth is None:
        return SignInSettings(server=config.id, url=config.url, document=document)
    client = ClientSettings(auth.client_id or "", auth.client_secret or "", auth.private_key or "")
    wanted, exchange, issuer = auth.exchange, None, auth.issuer
    if wanted is not None:
        there = ClientSettings(wanted.client_id or "", wanted.client_secret or "", wanted.private_key or "")
        exchange = ExchangeSettings(
            issuer=wanted.issuer,
            client=there if there.id else client,
            audience=wanted.audience or "",
            is_assertion=wanted.id_jag,
        )
        issuer = issuer or wanted.issuer
    return SignInSettings(
        server=config.id,
        url=config.url,
        issuer=issuer,
        client=client,
        document=document,
        scopes=auth.scopes,
        exchange=exchange,
    )


def fetcher_of(config: ServerConfig, client: HttpClient) -> SignInFetcher:
    assert config.url is not None
    auth = config.auth
    named = () if auth is None else (auth.issuer, None if auth.exchange is None else auth.exchange.issuer)
    return SignInFetcher(client, config.id, config.url, named, network=network_of(config))
