"""The composition root: from a configuration to a running gateway. The only module that names concrete classes of every layer.

Owns what has to be ended, and ends it in reverse order: faces, servers, outgoing connections, the guardian of child processes.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

from pactgate import __version__
from pactgate.catalog.catalog import Catalog
from pactgate.catalog.connections import Connections
from pactgate.config.model import Config, ServerConfig
from pactgate.core.display import Mask
from pactgate.core.events import Emit, Event, GatewayStarted, GatewayStopped, RequestFinished
from pactgate.core.model import Tool
from pactgate.faces.guard import Guard
from pactgate.faces.http import HttpFace
from pactgate.faces.limits import ServerLimits
from pactgate.faces.server import HttpServer
from pactgate.faces.stdio import serve_stdio
from pactgate.pipeline import status
from pactgate.pipeline.admit import Mirror, Read, Resolve
from pactgate.pipeline.dispatch import Dispatch
from pactgate.pipeline.forward import Forward
from pactgate.pipeline.handlers import Handlers
from pactgate.pipeline.kernel import Kernel
from pactgate.pipeline.settle import AcceptResult, Shape
from pactgate.pipeline.tool_call import ToolCall
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.connect import Dialer
from pactgate.upstreams.guardian import Guardian
from pactgate.upstreams.http_client import HttpClient

NAME: Final = "pactgate"
GRACE_S: Final = 5.0


def server_info() -> dict[str, Any]:
    return {"name": NAME, "title": "Pactgate", "version": __version__}


def build(config: Config, emit: Emit) -> Gateway:
    """Everything wired, nothing started: no process, socket or task yet."""
    return Gateway(config, emit)


class Gateway:
    """A configured gateway. `start` begins connecting and returns at once; a face is opened by `serve_http` or `serve_stdio`."""

    def __init__(self, config: Config, emit: Emit) -> None:
        self.config = config
        self.generated_token: str | None = None
        """Made when the address can be reached from elsewhere and the configuration names no token."""
        self.address: str | None = None
        self._listener = emit
        self._started_at = time.monotonic()
        self._calls = self._failed = 0
        self._rows_of: Catalog | None = None
        self._rows: list[dict[str, Any]] = []
        info = server_info()
        mask = Mask(config.secrets)
        encoded_info = encode_json(info)
        self._client = HttpClient()
        self._guardian = Guardian()
        self._http: HttpServer | None = None
        self._face: HttpFace | None = None
        self.connections = Connections(
            config.servers.values(),
            lambda server: self._dialer(server, info),
            naming=config.naming.exposed,
            server_info=encoded_info,
            own_resources=(status.DEFINITION,),
            emit=self._emit,
            mask=mask,
        )
        self.tool_call = ToolCall(
            admit=(Read(), Resolve(self.connections), Mirror()),
            dispatch=Dispatch(self.connections),
            verify=(AcceptResult(),),
            finish=(Shape(encoded_info),),
            default_limit_ms=config.timeouts.default_timeout_ms,
            limit_ms=self._limit_ms,
        )
        forward = Forward(self.connections, status.Status(self.connections).read, encoded_info, self._server_limit_ms)
        handlers = Handlers(self.connections, self.tool_call, forward, info)
        self.kernel = Kernel(handlers.table(), wire=config.wire.planes(), emit=self._emit, mask=mask)

    async def start(self) -> None:
        self.connections.start()

    async def serve_http(self) -> str:
        """Open the HTTP face on the configured address and return its URL."""
        listen = self.config.listen
        self._face = face = HttpFace(
            self.kernel,
            self._guard(),
            servers=lambda: self.connections.servers,
            snapshot=self.snapshot,
            emit=self._emit,
            sessions=self.config.sessions,
        )
        limits = ServerLimits(max_request_bytes=self.config.limits.max_request_bytes)
        self._http = HttpServer(face.handle, limits, self._emit)
        host, port = await self._http.listen(listen.host, listen.port)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{port}"
        self._emit(GatewayStarted(self.address, len(self.connections.servers)))
        return self.address

    async def serve_stdio(self) -> None:
        """Serve one caller on standard input and output until it goes away."""
        await serve_stdio(self.kernel, emit=self._emit, max_message_bytes=self.config.limits.max_request_bytes)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End everything, in reverse order, within the grace period and the ladder of the child processes."""
        if self._http is not None:
            await self._http.close(grace_s)
        if self._face is not None:
            self._face.close()
        await self.connections.stop()
        await self._client.close()
        await self._guardian.close()
        self._emit(GatewayStopped("asked to"))

    def snapshot(self) -> dict[str, Any]:
        """The state of the gateway as the admin API and the command line show it. No secrets, no command lines."""
        return {
            "name": NAME,
            "version": __version__,
            "address": self.address,
            "uptimeMs": round((time.monotonic() - self._started_at) * 1000),
            "servers": self.connections.rows(),
            "tools": self._tool_rows(),
            "calls": {"total": self._calls, "failed": self._failed},
        }

    def _tool_rows(self) -> list[dict[str, Any]]:
        """Decoded once per catalog: health checks ask often, tools change rarely."""
        catalog = self.connections.catalog
        if self._rows_of is not catalog:
            self._rows_of = catalog
            self._rows = [_tool_row(tool) for tool in catalog.tools.entries()]
        return self._rows

    def _emit(self, event: Event) -> None:
        if isinstance(event, RequestFinished) and event.record.method == "tools/call":
            self._calls += 1
            self._failed += event.record.outcome != "ok"
        self._listener(event)

    def _dialer(self, server: ServerConfig, info: dict[str, Any]) -> Dialer:
        return Dialer(
            server,
            client=self._client,
            guardian=self._guardian,
            emit=self._emit,
            client_info=info,
            max_frame_bytes=self.config.limits.max_upstream_frame_bytes,
        )

    def _limit_ms(self, tool: Tool) -> int:
        return self._server_limit_ms(tool.server)

    def _server_limit_ms(self, server: str) -> int:
        return min(self.config.timeouts.default_timeout_ms, self.config.servers[server].request_timeout_ms)

    def _guard(self) -> Guard:
        listen = self.config.listen
        tokens = {entry.token: (name, frozenset(entry.roles)) for name, entry in self.config.auth.tokens.items()}
        if self.config.needs_token:
            self.generated_token = secrets.token_urlsafe(32)
            tokens[self.generated_token] = ("generated", frozenset())
        return Guard(
            host=listen.host,
            hosts=listen.allowed_hosts,
            origins=listen.allowed_origins,
            tokens=tokens,
            anonymous=self.config.allows_anonymous,
        )


def _tool_row(tool: Tool) -> dict[str, Any]:
    definition = messages.value(tool.definition)
    return {
        "fullName": tool.full_name,
        "exposedName": tool.exposed_name,
        "toolName": tool.name,
        "serverId": tool.server,
        "title": definition.get("title"),
        "description": definition.get("description"),
        "inputSchema": definition.get("inputSchema"),
    }
