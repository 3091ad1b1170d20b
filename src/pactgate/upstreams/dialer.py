"""From a server's settings to a connected `Session`: one attempt, the right channel, the era found, nothing left behind on failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.core.recording import ConnectionRecorder
from pactgate.protocol.cache_hints import Hint
from pactgate.protocol.versions import Era
from pactgate.upstreams.channel import Channel, OutputLog, ProcessChannel
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.http.streamable import HttpChannel, NotStreamableHttpError
from pactgate.upstreams.in_process import InProcessChannel, InProcessServer
from pactgate.upstreams.negotiate import Identity, negotiate
from pactgate.upstreams.peer import Peer

if TYPE_CHECKING:
    from pactgate.upstreams.http.sse import HttpSseChannel
    from pactgate.upstreams.oauth.grants import CallerGrants
    from pactgate.upstreams.oauth.server_grant import ServerGrant
    from pactgate.upstreams.openapi.server import OpenApiServer
    from pactgate.upstreams.process.child_reaper import ChildReaper

MakeTap = Callable[[str, str], ConnectionRecorder | None]
"""A tap for a new connection to a server, by its id and transport; None where it is not recorded."""


def _no_tap(_server: str, _transport: str) -> None:
    return None


class Session:
    """A connected server: the conversation and what the server said of itself."""

    def __init__(self, peer: Peer, identity: Identity, transport: str, connect_ms: float) -> None:
        self.peer = peer
        self.identity = identity
        self.transport = transport
        self.connect_ms = connect_ms
        self._began_at = time.monotonic() - connect_ms / 1000
        self.log_level: str | None = None
        """What a legacy server was last told by `logging/setLevel`."""
        self.is_modern_http = identity.era is Era.MODERN and transport == "http"
        self.is_ours = peer.is_ours
        """Whether what runs there is our own code, so that what it says of its tools is believed."""
        self.effects_level = _effects_level(peer.channel, is_observed=self.is_ours)
        """ "declared", "observed", "enforced" or "partly enforced: ..."; None where no effects are declared (D12)."""
        self.is_inside = transport == "inside"
        self.may_be_private = False
        """Whether callers may have sessions of their own with this server, also those that can't be asked anything."""
        self.is_lists_alone = False
        """Whether it is for the lists of the server alone, because every caller has a grant of its own."""

    def hint(self) -> Hint:
        """How long what the server said of itself may still be taken for true."""
        return self.identity.hint.after((time.monotonic() - self._began_at) * 1000)

    @property
    def asks_by_result(self) -> bool:
        """Whether the server asks back by an input-required result: a modern one, and the runner of Python tools."""
        return self.identity.era is Era.MODERN or self.peer.is_ours

    @property
    def hears_unasked(self) -> bool:
        """Whether what a legacy server says by itself can reach us: over HTTP it needs a stream of its own, which it may not offer."""
        channel = self.peer.channel
        return channel.is_listening if isinstance(channel, HttpChannel) else True

    @property
    def pid(self) -> int | None:
        channel = self.peer.channel
        return channel.pid if isinstance(channel, ProcessChannel) else None

    @property
    def left_out(self) -> tuple[str, ...]:
        """What a server inside the gateway could have offered and does not, and why."""
        channel = self.peer.channel
        return channel.left_out if isinstance(channel, InProcessChannel) else ()


def _effects_level(channel: Channel, *, is_observed: bool) -> str | None:
    level = channel.sandbox_level if isinstance(channel, ProcessChannel) else None
    return "observed" if is_observed and level in (None, "declared") else level


def unresolved(server: str, what: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_CONFIG,
        f"{server} can't be started: {what} Set it and reload the configuration.",
        server=server,
        operation="connect",
        details={"permanent": True},
    )


class Dialer:
    """Makes sessions to one server. Each `dial` is one attempt; it remembers only which era worked last."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        client: HttpClient,
        child_reaper: ChildReaper | None,
        emit: Emit,
        client_info: Mapping[str, Any],
        max_frame_bytes: int,
        make_tap: MakeTap = _no_tap,
        inside: InProcessServer | None = None,
        private_client: HttpClient | None = None,
        private_paths: Sequence[str] = (),
        capabilities: Callable[[], Mapping[str, Any]] = dict,
        output: OutputLog | None = None,
        grant: ServerGrant | None = None,
        caller_grants: CallerGrants | None = None,
    ) -> None:
        """`child_reaper` is there where the server is a child process.

        `private_client` carries sessions of single callers, so that what they hold open is never missing to the others.

        `private_paths` are files of the gateway that a confined program does not see. `capabilities` are those of the only client
        there is, where there is only one: then the session that all clients share has them. `caller_grants` are there where each
        caller has a grant of its own; `grant` is for the lists alone then.
        """
        self._config = config
        self._inside = inside
        self._client = client
        self._private_client = private_client or client
        self._child_reaper = child_reaper
        self._emit = emit
        self._client_info = client_info
        self._max_frame_bytes = max_frame_bytes
        self._make_tap = make_tap
        self._private_paths = private_paths
        self._capabilities = capabilities
        self._output = output
        self._grant = grant
        self._caller_grants = caller_grants
        self._era = None if config.era == "auto" else Era(config.era)

    async def dial(self) -> Session:
        """Connect once. The caller bounds it with `connectionTimeoutMs`; cancelling leaves no process or socket."""
        if self._config.unresolved is not None:
            raise unresolved(self._config.id, self._config.unresolved)
        inside = self._inside
        if inside is not None:
            return await self._converse(lambda: InProcessChannel(self._config.id, inside), "inside", Era.MODERN)
        if self._config.tools is not None:
            # The era in which it may tell that its tools changed.
            return await self._converse(self._stdio, "stdio", Era.LEGACY)
        if self._config.endpoints is not None:
            return await self._converse(self._rest, "rest", Era.MODERN)
        if self._config.openapi is not None:
            from pactgate.upstreams.openapi.server import (
                OpenApiServer,
            )  # a gateway without such a server starts without it

            started = time.monotonic()
            server = OpenApiServer(self._config, self._client, max_body_bytes=self._max_frame_bytes)
            await server.load()
            return await self._converse(lambda: self._openapi(server), "rest", Era.MODERN, started=started)
        if self._config.url is None:
            return await self._dial_process()
        return await self._dial_url()

    async def dial_for(self, principal: Principal, like: Session, capabilities: Mapping[str, Any], era: Era) -> Session:
        """One more session with a server that is connected already, for callers with these capabilities, and with their own grant."""
        if like.transport == "stdio":
            return await self._converse(self._stdio, "stdio", Era.LEGACY, capabilities)
        grant = self._grant
        if self._caller_grants is not None:
            grant = self._caller_grants.of(principal)
            await grant.prepare()
        make = partial(self._over_http, like.transport, self._private_client, grant)
        return await self._converse(make, like.transport, era, capabilities)

    async def _dial_process(self) -> Session:
        try:
            return await self._converse(self._stdio, "stdio", self._era)
        except GatewayFailure as failure:
            # Some legacy servers exit at the first thing that is not `initialize`.
            if self._era is None and failure.kind is Kind.CONNECTION_LOST:
                return await self._converse(self._stdio, "stdio", Era.LEGACY)
            raise

    async def _dial_url(self) -> Session:
        if self._grant is not None:
            await self._grant.prepare()
        if self._config.transport == "sse":
            return await self._converse(self._sse, "sse", Era.LEGACY)
        try:
            return await self._converse(self._http, "http", self._era)
        except NotStreamableHttpError as refusal:
            if self._config.transport != "auto" or self._era is Era.MODERN:
                raise self._not_mcp(refusal.status) from refusal
        try:
            return await self._converse(self._sse, "sse", Era.LEGACY)
        except GatewayFailure as failure:
            failure.reword(lambda text: f"{text} (neither Streamable HTTP nor HTTP+SSE answers there)")
            raise

    async def _converse(
        self,
        make: Callable[[], Channel],
        transport: str,
        era: Era | None,
        capabilities: Mapping[str, Any] | None = None,
        *,
        started: float | None = None,
    ) -> Session:
        started = time.monotonic() if started is None else started
        channel = make()
        is_ours = self._config.tools is not None or isinstance(channel, InProcessChannel)
        peer = Peer(
            self._config.id,
            channel,
            self._emit,
            self._client_info,
            capabilities or (None if is_ours else self._capabilities()),
            is_ours=is_ours,
            output=self._output,
            answer_s=self._config.connection_timeout_ms / 2000,
        )
        connected = False
        try:
            await peer.open()
            identity = await negotiate(peer, era)
            if self._grant is not None and self._grant.issuer is not None:
                identity = replace(identity, issuer=self._grant.issuer)
            connected = True
        finally:
            if not connected:
                await peer.close()
        took_ms = (time.monotonic() - started) * 1000
        session = Session(peer, identity, transport, took_ms)
        session.is_lists_alone = self._config.is_per_caller
        session.may_be_private = self._config.isolation == "session" or session.is_lists_alone
        return session

    def _stdio(self) -> Channel:
        config = self._config
        assert self._child_reaper is not None, "handed in for servers that are processes"
        if config.tools is not None:
            from pactgate.upstreams.python_tools import python_tools  # only servers of Python tools need it

            return python_tools(
                config, self._emit, self._child_reaper, self._max_frame_bytes, self._private_paths, self._output
            )
        assert config.command is not None
        from pactgate.upstreams.process.stdio import StdioChannel  # only servers that are processes need it

        return StdioChannel(
            config.id,
            config.command,
            config.args,
            config.env,
            config.cwd,
            self._emit,
            child_reaper=self._child_reaper,
            effects=config.effects,
            private_paths=self._private_paths,
            max_frame_bytes=self._max_frame_bytes,
            tap=self._make_tap(config.id, "stdio"),
            output=self._output,
        )

    def _rest(self) -> Channel:
        from pactgate.upstreams.rest.server import RestServer, written_api

        config = self._config
        server = RestServer(config, written_api(config), self._client, max_body_bytes=self._max_frame_bytes)
        return InProcessChannel(config.id, server)

    def _openapi(self, server: OpenApiServer) -> Channel:
        channel = InProcessChannel(self._config.id, server)
        server.watch(channel.changed, channel.lost)
        return channel

    def _http(self) -> Channel:
        return self._over_http("http", self._client, self._grant)

    def _sse(self) -> Channel:
        return self._over_http("sse", self._client, self._grant)

    def _over_http(self, transport: str, client: HttpClient, grant: ServerGrant | None) -> Channel:
        config = self._config
        kind: type[HttpChannel | HttpSseChannel] = HttpChannel
        if transport == "sse":
            from pactgate.upstreams.http.sse import HttpSseChannel  # few servers still speak it

            kind = HttpSseChannel
        assert config.url is not None
        return kind(
            config.id,
            config.url,
            config.headers,
            client,
            self._emit,
            max_frame_bytes=self._max_frame_bytes,
            tap=self._make_tap(config.id, "http" if transport == "http" else "http+sse"),
            network=network_of(config),
            grant=grant,
        )

    def _not_mcp(self, status: int) -> GatewayFailure:
        return GatewayFailure(
            Kind.CONNECTION_FAILED,
            f"{self._config.id} answered HTTP {status}: no MCP endpoint at that address; check `url`",
            server=self._config.id,
            operation="connect",
            details={"permanent": True, "status": status},
        )
