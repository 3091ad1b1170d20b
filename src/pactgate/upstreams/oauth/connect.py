"""The sign-ins of single callers: from the link that a call gives to the grant that is kept (`/connect`).

A ticket names a server and a caller, is random, good for ten minutes, and used up when its caller begins. What a browser began, only that
browser can finish: the state of the request to the authorization server belongs to a secret in its cookie. Must not: decide who opened a
link (the endpoint does), or put anything about a caller into a URL.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from pactgate.config.oauth_client import CALLBACK_PATH
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.state.handoffs import Handoffs
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.authorization import read_answer
from pactgate.upstreams.oauth.grants import CallerGrants, GrantMaker, fetcher_of, settings_of
from pactgate.upstreams.oauth.probe import wanted_of
from pactgate.upstreams.oauth.server_grant import RENEW_S
from pactgate.upstreams.oauth.sign_in import BegunSignIn
from pactgate.upstreams.oauth.steps import sign_in_failure
from pactgate.upstreams.oauth.stored_grants import StoredGrants
from pactgate.upstreams.oauth.tokens import UnknownClientError

TICKET_S: Final = 600.0
_LOOK_S: Final = 1.0
_MAX_LINKS: Final = 10_000
_NO_LINK: Final = ("", 0.0, 0.0)
_BROWSERLESS: Final = frozenset({PrincipalKind.ANONYMOUS, PrincipalKind.LOCAL, PrincipalKind.SOCKET})
"""Nothing that a browser can show proves that it is one of these."""


class Ticket(Struct, frozen=True):
    """Whose sign-in to which server a link is for."""

    server: str
    principal: str
    shown: str
    issuer: str
    """The identity provider that can say who a person is; empty for a caller with a token or key of the gateway."""


class _Begun(Struct, frozen=True):
    """A sign-in that waits for its answer, and the browser that it belongs to."""

    ticket: Ticket
    browser: str
    sign_in: BegunSignIn


class CallerSignIns:
    """`base` is where browsers reach the gateway; None where they can't. `grants` are those of each server that are in use."""

    def __init__(
        self,
        servers: Callable[[], Mapping[str, ServerConfig]],
        made_by: GrantMaker,
        handoffs: Handoffs,
        grants: Mapping[str, CallerGrants],
        base: Callable[[], str | None],
        document: Callable[[], str],
    ) -> None:
        self.base = base
        self.document = document
        """The client id metadata document that the gateway publishes; empty where it can't."""
        self._servers = servers
        self._made_by = made_by
        self._handoffs = handoffs
        self._grants = grants
        self._links: OrderedDict[tuple[str, str], tuple[str, float, float]] = OrderedDict()
        """The name of each link, until when it is given out again, and when it was made, by the wall clock."""
        self._waiting: WeakValueDictionary[tuple[str, str], asyncio.Event] = WeakValueDictionary()

    async def link(self, server: str, principal: Principal) -> str | None:
        """Where a caller signs in; None where that is impossible. The same link again as long as it is fresh and unused."""
        base = self.base()
        if base is None or principal.kind in _BROWSERLESS:
            return None
        key, now = (server, principal.key), time.monotonic()
        name, until, _ = self._links.get(key, _NO_LINK)
        if until < now or await self._handoffs.get(_ticket(name)) is None:
            name = secrets.token_urlsafe(32)
            issuer = principal.issuer if principal.kind is PrincipalKind.OAUTH else ""
            ticket = Ticket(server, principal.key, principal.shown, issuer)
            await self._handoffs.put(_ticket(name), msgspec.json.encode(ticket), TICKET_S)
            self._links[key] = name, now + TICKET_S / 2, time.time()
            self._links.move_to_end(key)
            if len(self._links) > _MAX_LINKS:
                self._links.popitem(last=False)
        return f"{base}/connect/{name}"

    async def find(self, name: str) -> Ticket | None:
        """The ticket of a link, which stays good."""
        data = await self._handoffs.get(_ticket(name))
        return None if data is None else msgspec.json.decode(data, type=Ticket)

    async def begin(self, name: str, browser: str) -> str:
        """Use the ticket up, for its own caller. Returns the URL of the authorization server. Raises GatewayFailure."""
        data = await self._handoffs.take(_ticket(name))
        if data is None:
            raise sign_in_failure("the server", "this link was used already.")
        ticket = msgspec.json.decode(data, type=Ticket)
        config, base = self._config_of(ticket.server), self.base()
        assert config.url is not None
        assert base is not None, "there would be no link"
        grants = self._stored(config, ticket.shown)
        challenge, held = await asyncio.to_thread(lambda: (grants.challenge(), grants.read()))
        steps = sign_in.begin(
            settings_of(config, self.document()),
            await wanted_of(config, self._made_by.client, challenge),
            grants.client,
            before=() if held is None else held.grant.requested,
            redirect_uri=f"{base}{CALLBACK_PATH}",
            state=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        begun = await fetcher_of(config, self._made_by.client).run(steps)
        if begun.client.redirect_uri:
            await asyncio.to_thread(grants.keep_client, begun.client)
        note = _Begun(ticket, digest(browser), begun)
        await self._handoffs.put(_state(begun.request.state), msgspec.json.encode(note), TICKET_S)
        return begun.request.url

    async def finish(self, answer: Mapping[str, str], browser: str) -> str | None:
        """Redeem the answer of an authorization server and keep the grant. Returns the server; None for what this browser did not begin.

        Raises GatewayFailure. An answer is looked at once, whoever brings it.
        """
        data = await self._handoffs.take(_state(answer.get("state", "")))
        begun = None if data is None else msgspec.json.decode(data, type=_Begun)
        if begun is None or not browser or not secrets.compare_digest(begun.browser, digest(browser)):
            return None
        ticket, config = begun.ticket, self._config_of(begun.ticket.server)
        code = read_answer(begun.sign_in.request, answer)
        fetcher, grants = fetcher_of(config, self._made_by.client), self._stored(config, ticket.shown)
        try:
            grant = await fetcher.run(sign_in.finish(begun.sign_in, code, time.time()))
        except UnknownClientError:
            await asyncio.to_thread(grants.forget_client, begun.sign_in.client)
            raise
        async with grants.locked(RENEW_S):
            await asyncio.to_thread(grants.write, grant)
        for live in self._grants.get(ticket.server, ()):
            with suppress(GatewayFailure):
                await live.reread()
        event = self._waiting.get((ticket.server, ticket.principal))
        if event is not None:
            event.set()
        return ticket.server

    async def wait(self, server: str, principal: Principal, within_s: float) -> None:
        """Wait until a caller has signed in since it got its link, here or at another replica, or for so long."""
        event = self._waiting.setdefault((server, principal.key), asyncio.Event())
        _, _, since = self._links.get((server, principal.key), _NO_LINK)
        grants = self._stored(self._config_of(server), principal.shown)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not (event.is_set() or await asyncio.to_thread(_is_newer, grants, since)):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            await event.wait()

    def _config_of(self, server: str) -> ServerConfig:
        config = self._servers().get(server)
        if config is None or not config.is_per_caller:
            raise sign_in_failure(server, "the configuration has changed.")
        return config

    def _stored(self, config: ServerConfig, shown: str) -> StoredGrants:
        assert self._made_by.store is not None, "there would be no link"
        assert config.url is not None
        return StoredGrants(self._made_by.store, config.id, config.url, shown)


def _is_newer(grants: StoredGrants, since: float) -> bool:
    """Whether there is a sign-in of after that time. A store that is away has none."""
    with suppress(GatewayFailure):
        held = grants.read()
        return held is not None and bool(held.grant.access_token) and held.grant.signed_in_at >= since
    return False


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _ticket(name: str) -> str:
    return f"ticket {name}"


def _state(name: str) -> str:
    return f"state {name}"
