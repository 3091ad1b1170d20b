"""Wires the sign-ins at servers: where they are kept, whose they are, and where callers sign in.

Owns the grants in use and the watch of the store. Must not: decide about a request, or make a sign-in by itself.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Collection
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from pactgate.catalog.connections import Connections
from pactgate.catalog.sign_in_watch import SignInWatch
from pactgate.config.model import Config
from pactgate.config.sections.state import StateSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.auth import Guard
from pactgate.inbound.guess_brake import GuessBrake
from pactgate.inbound.subject_tokens import SubjectTokens
from pactgate.pipeline.sign_in_bridge import SignInBridge
from pactgate.state.credential_keys import KEY_VARIABLE, GivenKeys
from pactgate.state.credential_store import CredentialStore
from pactgate.state.handoffs import Handoffs, MemoryHandoffs
from pactgate.state.sealing_keys import keys_of
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.grants import CallerGrants, GrantMaker, server_grant
from pactgate.upstreams.oauth.server_grant import Know, ServerGrant

if TYPE_CHECKING:
    from pactgate.inbound.connect_pages import ConnectPages
    from pactgate.inbound.console_sign_in import ConsoleSignIn
    from pactgate.upstreams.oauth.connect import CallerSignIns
    from pactgate.upstreams.oauth.person import KnownProviders, PersonSignIn


class SignIns:
    """`address` is where the gateway listens, once it does; `know` is told tokens, to mask them."""

    def __init__(
        self,
        config: Callable[[], Config],
        client: HttpClient,
        handoffs: Handoffs,
        *,
        know: Know,
        address: Callable[[], str | None],
    ) -> None:
        self.subject_tokens = SubjectTokens()
        """The tokens of callers that servers take in exchange."""
        self._config = config
        self._address = address
        self._store = credential_store(config())
        self._maker = GrantMaker(client, self._store, know, self.subject_tokens.of)
        self._grants: dict[str, ServerGrant] = {}
        self._of_callers: dict[str, CallerGrants] = {}
        self._client = client
        self._handoffs = handoffs
        self._providers: KnownProviders = {}
        self._watch: SignInWatch | None = None

    @cached_property
    def links(self) -> CallerSignIns:
        """Where callers sign in: made for the first that has to, by a call or at a browser."""
        from pactgate.upstreams.oauth.connect import CallerSignIns

        return CallerSignIns(
            lambda: self._config().servers,
            self._maker,
            self._handoffs,
            self._of_callers,
            base=self.base,
            document=lambda: self._config().client_document,
        )

    @property
    def bridge(self) -> SignInBridge | None:
        """Asks callers for their sign-ins; None where none could be kept."""
        return None if self._store is None else SignInBridge(lambda: self.links)

    def pages(
        self, guard: Callable[[], Guard], emit: Emit, brake: GuessBrake, console: ConsoleSignIn | None
    ) -> ConnectPages:
        """The pages at which callers sign in, made when a browser comes."""
        from pactgate.inbound.connect_pages import ConnectPages

        return ConnectPages(self.links, self._person(self._handoffs), guard, emit, brake, console)

    def console_person(self) -> PersonSignIn:
        """Signs people in to the console, which is one of this gateway. Anybody may begin that, so it has a place of its own."""
        from pactgate.inbound.console_sign_in import MAX_PENDING

        return self._person(MemoryHandoffs(most=MAX_PENDING))

    def _person(self, handoffs: Handoffs) -> PersonSignIn:
        from pactgate.upstreams.oauth.person import PersonSignIn

        return PersonSignIn(lambda: self._config().auth.issuers, self._client, handoffs, self._providers)

    def grants_of(self, server: ServerConfig) -> tuple[ServerGrant | None, CallerGrants | None]:
        """The grant of the session that all share, and where each caller has its own, the place of those. Made anew."""
        grant = server_grant(server, self._maker)
        of_callers = CallerGrants(server, self._maker) if grant is not None and server.is_per_caller else None
        self.keep_only(self._grants.keys() - {server.id})
        if grant is not None:
            self._grants[server.id] = grant
        if of_callers is not None:
            self._of_callers[server.id] = of_callers
        return grant, of_callers

    def keep_only(self, servers: Collection[str]) -> None:
        """Forget the grants of servers that are gone."""
        for id_ in self._grants.keys() - set(servers):
            del self._grants[id_]
            self._of_callers.pop(id_, None)

    @property
    def store(self) -> CredentialStore | None:
        return self._store

    @property
    def wanted_count(self) -> int:
        """Servers that wait until somebody signs in."""
        return sum(grant.is_wanted for grant in self._grants.values())

    async def start(self, connections: Connections) -> None:
        """Watch the store. A wrong key is said at the start; a store of the replicas that is away stops nothing."""
        if self._store is None:
            return
        try:
            await asyncio.to_thread(self._store.check)
        except GatewayFailure as failure:
            if failure.kind is not Kind.STATE_UNAVAILABLE:
                raise
        self._watch = SignInWatch(self._store, self._grants, connections, lambda: chain(*self._of_callers.values()))
        self._watch.start()

    async def end_watch(self) -> None:
        """Before the servers end: none is tried again."""
        if self._watch is not None:
            await self._watch.close()

    async def close(self) -> None:
        """After the servers have ended."""
        for grant in chain(self._grants.values(), *self._of_callers.values()):
            await grant.close()

    def base(self) -> str | None:
        """Where browsers reach the gateway."""
        config, address = self._config(), self._address()
        if config.public_base is not None or not config.is_loopback:
            return config.public_base
        return address if address is not None and address.startswith("http") else None


def credential_store(config: Config) -> CredentialStore | None:
    """Where the credentials of sign-ins are kept: with the replicas, or in a file. None without a configuration file."""
    if config.state.url is not None:
        return shared_credentials(config.state)
    if config.credential_file is None:
        return None
    return CredentialStore.in_file(config.credential_file, os.environ.get(KEY_VARIABLE))


def shared_credentials(state: StateSection) -> CredentialStore:
    """The credentials of sign-ins in the store of the replicas, sealed with a key of their own."""
    from pactgate.state.shared_credentials import SharedRows  # only replicas pay for it

    assert state.url is not None, "there is a store"
    keys = keys_of(state)
    given = ",".join(base64.b64encode(key).decode() for key in keys.keys("credentials"))
    return CredentialStore(SharedRows(state.url, state.key_prefix, keys), GivenKeys(given, "state.key"))
