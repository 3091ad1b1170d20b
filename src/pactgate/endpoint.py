"""The HTTP endpoint of a gateway, wired: who may call, the frontend, the console, and the server that listens (D18).

Opened once, and ended in two steps: connections first, what belongs to them after other replicas know. Must not: decide about a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pactgate.admission import Admission
from pactgate.catalog.connections import Connections
from pactgate.config.model import Config
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal
from pactgate.inbound.console_sessions import ConsoleSessions
from pactgate.inbound.http_frontend import HttpFrontend
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.peer_address import TrustedProxies
from pactgate.inbound.server_limits import ServerLimits
from pactgate.observers import Observers
from pactgate.pipeline.kernel import Kernel
from pactgate.policy.access import sees_everything
from pactgate.replicas import Replicas
from pactgate.sign_ins import SignIns
from pactgate.telemetry.snapshot import GatewaySnapshot
from pactgate.upstreams.http.client import HttpClient

if TYPE_CHECKING:
    from pactgate.inbound.console import Console
    from pactgate.upstreams.oauth.browser_sign_in import BrowserSignIns


class HttpEndpoint:
    """`address` is the URL it was opened at, or `unix:PATH` of a socket alone."""

    def __init__(
        self,
        config: Config,
        *,
        kernel: Kernel,
        connections: Connections,
        facts: GatewaySnapshot,
        snapshot: Callable[[], dict[str, Any]],
        observers: Observers,
        replicas: Replicas,
        sign_ins: SignIns,
        client: HttpClient,
        on_keys: Callable[[], None],
        on_token: Callable[[str], None],
        on_gone: Callable[[str], None],
    ) -> None:
        """`client` asks identity providers. `on_token` is told the token that is made for a run,
        `on_gone` whose rights have ended."""
        self.address: str | None = None
        self._config = config
        self._kernel = kernel
        self._connections = connections
        self._facts = facts
        self._snapshot = snapshot
        self._observers = observers
        self._replicas = replicas
        self._browser_sign_ins: BrowserSignIns | None = None
        self._sign_ins = sign_ins
        self._on_token = on_token
        self._on_gone = on_gone
        self._admission = Admission(
            config, client, observers.emit, sign_ins.subject_tokens, revoked=replicas.revoked, on_keys=on_keys
        )
        self._console_sessions: ConsoleSessions | None = None
        self._frontend: HttpFrontend | None = None
        self._server: HttpServer | None = None

    async def open(self) -> str:
        """Listen on the configured address and socket. Raises GatewayFailure where it can't, or the file of API keys can't be read."""
        config, emit = self._config, self._observers.emit
        self.open_keys()
        token = self._admission.make_token()
        if token is not None:
            self._on_token(token)
        if config.has_console:
            self._console_sessions = ConsoleSessions(
                time.time, is_tls=config.listen.tls is not None, public=lambda: self._config.public_base
            )
        self._frontend = frontend = HttpFrontend(
            self._kernel,
            self._admission.first_guard(self._console_sessions),
            reach=self._connections,
            snapshot=self._snapshot,
            metrics=self._facts.render_metrics,
            stories=self._observers.stories,
            server_logs=self._observers.server_logs,
            traffic=self._facts.traffic,
            emit=emit,
            sessions=config.sessions,
            tap=self._observers.recorders.http_callers(),
            new_id=self._replicas.new_id,
            console=None if self._console_sessions is None else partial(self._console, self._console_sessions),
            connect=self._sign_ins.pages,
        )
        await self._replicas.open(frontend)
        limits = ServerLimits(
            max_request_bytes=config.limits.max_request_bytes,
            max_connections_per_address=config.listen.max_connections_per_address,
        )
        proxies = TrustedProxies(config.listen.trusted_proxies)
        self._server = HttpServer(frontend.handle, limits, emit, frontend.admit, proxies=proxies)
        frontend.exchanges = self._server.exchanges
        frontend.on_gone = self._on_gone
        self.address, port = await self._listen(self._server)
        self._admission.watch(frontend, port)
        return self.address

    def open_keys(self) -> None:
        """Read the file of API keys, where there may be one; nothing is served before. Raises GatewayFailure."""
        self._admission.open_keys()

    @property
    def is_open(self) -> bool:
        return self._frontend is not None

    @property
    def generated_token(self) -> str | None:
        """Made when the address can be reached from elsewhere and the configuration names no token."""
        return self._admission.generated_token

    @property
    def console_link(self) -> str | None:
        """Opens the console once, signed in as an administrator; None where no console is served."""
        if self._console_sessions is None or self.address is None or not self.address.startswith("http"):
            return None
        return f"{self.address}/console/#code={self._console_sessions.code}"

    @property
    def session_count(self) -> int:
        return 0 if self._frontend is None else len(self._frontend.sessions)

    def apply(self, config: Config) -> None:
        """Follow another configuration, on what is open too."""
        self._config = config
        self._admission.apply(config)

    def check_again(self) -> None:
        """Ask about everything that is open again: another replica has taken rights away."""
        self._admission.check_again()

    def drain(self) -> None:
        """Say to load balancers that nothing new is to come."""
        if self._frontend is not None:
            self._frontend.is_draining = True

    async def end_connections(self, grace_s: float) -> None:
        if self._server is not None:
            await self._server.close(grace_s)

    async def close(self) -> None:
        """After the connections have ended."""
        if self._frontend is not None:
            self._frontend.close()
        if self._browser_sign_ins is not None:
            await self._browser_sign_ins.close()
        await self._admission.close()

    def _console(self, sessions: ConsoleSessions) -> Console:
        """Made when somebody opens it."""
        from pactgate.inbound.call_stream import CallStreams
        from pactgate.inbound.console import Console
        from pactgate.inbound.console_captures import ConsoleCaptures
        from pactgate.inbound.console_sign_in import ConsoleSignIn

        streams = CallStreams(
            self._observers.stories,
            self._servers_for,
            listen=partial(self._observers.listeners.add, "console"),
            unlisten=partial(self._observers.listeners.remove, "console"),
        )
        captures = ConsoleCaptures(
            self._config.capture.dir, lambda count, keeps: self._observers.stories.latest(count, None, keeps)
        )
        people = ConsoleSignIn(
            self._sign_ins.console_person(),
            sessions,
            self._observers.emit,
            auth=lambda: self._config.auth,
            base=self._sign_ins.base,
        )
        return Console(
            sessions,
            streams,
            captures,
            people,
            self._observers.emit,
            sign_in=self._sign_in,
            client_entries=self._client_entries,
            needs_token=self._needs_token,
        )

    def _client_entries(self, address: str) -> list[dict[str, Any]]:
        from pactgate.config.clients.shown_entries import shown_entries  # for the few who ask

        return shown_entries(f"{address}/mcp", needs_token=self._needs_token())

    def _needs_token(self) -> bool:
        return not self._config.allows_anonymous

    async def _sign_in(self, server: str) -> str:
        """Begin the sign-in of a person at a server, in the browser of this machine. Raises GatewayFailure."""
        from pactgate.upstreams.oauth.browser_sign_in import BrowserSignIns  # for the few who press the button

        store = self._sign_ins.store
        if store is None or not self._config.is_loopback or server not in self._config.servers:
            message = f"Sign in where the gateway runs: pactgate login {server}"
            raise GatewayFailure(Kind.UNKNOWN_SERVER, message, server=server)
        if self._browser_sign_ins is None:
            self._browser_sign_ins = BrowserSignIns(store, self._sign_in_failed)
        return await self._browser_sign_ins.begin(self._config.servers[server])

    def _sign_in_failed(self, server: str, reason: str) -> None:
        self._observers.server_logs.wrote(server, [f"sign-in: {reason}".encode()])

    def _servers_for(self, principal: Principal) -> list[dict[str, Any]]:
        """The rows of the servers that exist for a client."""
        facts = {"servers": self._connections.rows()}
        shown = None if sees_everything(principal.roles) else self._connections.shown_to(principal, facts)
        rows: list[dict[str, Any]] = (shown or facts)["servers"]
        return rows

    async def _listen(self, server: HttpServer) -> tuple[str, int | None]:
        """The address and the port of what was opened."""
        listen = self._config.listen
        if listen.socket is not None:
            await server.listen_locally(listen.socket, listen.socket_mode)
        if listen.tcp_port is None:
            return f"unix:{listen.socket}", None
        if listen.tls is None:
            host, port = await server.listen(listen.host, listen.tcp_port, reuse_port=listen.reuse_port)
        else:
            host, port = await server.listen_tls(
                listen.host, listen.tcp_port, listen.tls.files(), reuse_port=listen.reuse_port
            )
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if listen.tls is None else 'https'}://{shown}:{port}", port
