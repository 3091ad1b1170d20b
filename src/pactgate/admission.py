"""Wires who may call over HTTP and the Unix socket: makes the guard of a configuration, and another one whenever its sources change (D18).

Owns the watch of the key file, what checks access tokens, and the token that is made for a run. Must not: decide about a request; the
guard does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.sections.listen import OFF
from pactgate.config.sections.oauth import provider_urls
from pactgate.core.events import Emit
from pactgate.inbound.auth import Guard, credentials_of
from pactgate.inbound.console_sessions import ConsoleSessions
from pactgate.inbound.http_frontend import HttpFrontend
from pactgate.inbound.key_watch import KeyWatch
from pactgate.inbound.subject_tokens import SubjectTokens
from pactgate.inbound.unix_socket import local_user
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.documents import DocumentClient

if TYPE_CHECKING:
    from pactgate.inbound.oauth.access_tokens import AccessTokens
    from pactgate.state.revoked_keys import RevokedKeys

_TOKEN_BYTES: Final = 32


class Admission:
    """`generated_token` is made when the address can be reached from elsewhere and the configuration names no token."""

    def __init__(
        self,
        config: Config,
        client: HttpClient,
        emit: Emit,
        subject_tokens: SubjectTokens,
        *,
        revoked: RevokedKeys | None = None,
        on_keys: Callable[[], None],
    ) -> None:
        """`client` asks identity providers. `revoked` has the API keys that other replicas have revoked. `on_keys` is called when
        the keys are others: there may be several principals now."""
        self.generated_token: str | None = None
        self._subject_tokens = subject_tokens
        self._config = config
        self._client = client
        self._emit = emit
        self._revoked = revoked
        self._on_keys = on_keys
        self._bound: tuple[str, int | None] = config.listen.host, config.listen.tcp_port
        self._is_anonymous = config.allows_anonymous
        self._users = partial(local_user, config.listen.socket_mode)
        self._console: ConsoleSessions | None = None
        self._frontend: HttpFrontend | None = None
        self._keys: KeyWatch | None = None
        self._access_tokens: AccessTokens | None = None

    def open_keys(self) -> None:
        """Read the file of API keys, where there may be one; nothing is served before. Raises GatewayFailure."""
        if self._keys is None and self._config.key_file is not None:
            self._keys = KeyWatch(self._config.key_file, self._keys_changed, self._emit, revoked=self._revoked)

    def make_token(self) -> str | None:
        """The token of this run, where one is needed."""
        if self._config.needs_token:
            self.generated_token = secrets.token_urlsafe(_TOKEN_BYTES)
        return self.generated_token

    def first_guard(self, console: ConsoleSessions | None) -> Guard:
        """The guard before the address is known that the gateway listens on."""
        self._console = console
        return self._guard()

    def watch(self, frontend: HttpFrontend, port: int | None) -> None:
        """The gateway listens: give its frontend the guard of this address, and every later one."""
        self._bound = self._config.listen.host, port
        self._frontend = frontend
        self._replace_guard()
        if self._keys is not None:
            self._keys.start()

    def apply(self, config: Config) -> None:
        """Follow another configuration, on what is open too."""
        before, self._config = self._config, config
        is_same = (config.auth, config.listen) == (before.auth, before.listen)
        if not is_same or config.exchanged_issuers != before.exchanged_issuers:
            self._replace_guard()

    def check_again(self) -> None:
        """Ask about everything that is open again: what a source of credentials knows has changed."""
        if self._frontend is not None:
            self._frontend.check_again()

    async def close(self) -> None:
        if self._keys is not None:
            await self._keys.close()
        if self._access_tokens is not None:
            self._access_tokens.close()

    def _keys_changed(self) -> None:
        self._replace_guard()
        self._on_keys()

    def _replace_guard(self) -> None:
        if self._frontend is not None:
            self._frontend.replace_guard(self._guard())

    def _guard(self) -> Guard:
        """The guard of the configuration on the address the gateway listens on, whatever the configuration says of that now."""
        host, port = self._bound
        keys = self._keys if self._keys is not None and self._keys.has_file else None
        self._subject_tokens.issuers = self._config.exchanged_issuers
        listen = replace(self._config.listen, host=host, port=OFF if port is None else port)
        config = replace(self._config, listen=listen, has_key_file=self._config.has_key_file or keys is not None)
        if config.auth.anonymous is not None:
            self._is_anonymous = config.auth.anonymous
        else:  # clients without a token are let in at the start only: taking the last token away must not do it
            self._is_anonymous = self._is_anonymous and config.allows_anonymous
        tokens = self._tokens_of_issuers(config)
        return Guard(
            host=host,
            port=port,
            hosts=listen.allowed_hosts,
            origins=listen.allowed_origins,
            credentials=credentials_of(config, self.generated_token),
            sources=[*([] if keys is None else [keys.source]), *([] if tokens is None else [tokens])],
            resource=None if tokens is None else tokens.resource,
            anonymous=self._is_anonymous,
            users=self._users,
            console=self._console,
            tokens=self._subject_tokens,
        )

    def _tokens_of_issuers(self, config: Config) -> AccessTokens | None:
        """What checks access tokens. It keeps the keys of the issuers as long as their settings stay as they are."""
        before, self._access_tokens = self._access_tokens, None
        if config.auth.issuers:
            from pactgate.inbound.oauth.access_tokens import AccessTokens  # cryptography takes 20 MiB

            documents = DocumentClient(self._client, "auth.issuers", provider_urls(config.auth.issuers))
            self._access_tokens = AccessTokens.of(config.auth, documents.fetch, before)
            self._access_tokens.on_keys_removed(self.check_again)
        if before is not None and before is not self._access_tokens:
            before.close()
        return self._access_tokens
