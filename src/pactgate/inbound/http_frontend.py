"""The HTTP frontend: which path, which method, which era.

Decides by the raw path alone; no other spelling of a path is one of ours. Every request but the two plain health checks passes the guard
before its path is looked at; then method, types and message are checked, in this order. Must not: frame answers of an era.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Final

from pactgate.config.model import Sessions
from pactgate.core.events import Emit
from pactgate.core.recording import ConnectionRecorder
from pactgate.core.values import Principal
from pactgate.inbound.admin import Admin, CallTraces
from pactgate.inbound.auth import AuthError, Guard
from pactgate.inbound.batch import is_batch
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.http_legacy import LegacyHttpHandler
from pactgate.inbound.http_modern import ModernHttpHandler
from pactgate.inbound.replies import DroppedNotifications, Kernel, refuse
from pactgate.inbound.request_head import Accepts, McpRequestHead, has_json, read_accept, read_mcp_head
from pactgate.inbound.sessions import SessionTable
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Rejection, Request

_MCP: Final = "/mcp"
_SCOPED: Final = "/mcp/"
_MCP_METHODS: Final = b"Allow: GET, POST, DELETE, OPTIONS\r\n"
_ONLY_JSON: Final = Accepts(json=True, stream=False)
_ANYTHING: Final = Accepts(json=True, stream=True)


class HttpFrontend:
    """`servers` gives the ids that have a path of their own for callers of certain roles; `snapshot` the state the JSON API shows."""

    def __init__(
        self,
        kernel: Kernel,
        guard: Guard,
        *,
        servers: Callable[[frozenset[str]], Collection[str]],
        snapshot: Callable[[], dict[str, Any]],
        metrics: Callable[[], bytes],
        stories: CallTraces,
        emit: Emit,
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
        tap: ConnectionRecorder | None = None,
    ) -> None:
        self.drops = DroppedNotifications()
        self.sessions = SessionTable(sessions or Sessions(), clock, self.drops)
        self.sessions.on_end = kernel.left
        self._kernel = kernel
        kernel.join(self.sessions)
        self._guard = guard
        self._servers = servers
        self._emit = emit
        self._tap = tap
        self._admin = Admin(snapshot, metrics, stories, clock)
        self._modern = ModernHttpHandler(kernel, emit, clock, self.drops)
        self._legacy = LegacyHttpHandler(kernel, self.sessions, emit, clock, self.drops)

    def admit(self, exchange: HttpExchange) -> bool:
        """Whether the request waits for its body: judged by its head alone. All others are answered here."""
        head = exchange.head.mcp
        if head is None or not self._is_served(head.scope, head.principal):
            exchange.head.mcp = self._route(exchange)
        return exchange.head.mcp is not None

    def handle(self, exchange: HttpExchange) -> None:
        """Answer one exchange, or see that it is answered."""
        head = exchange.head.mcp
        if head is None or not self._is_served(head.scope, head.principal):
            head = exchange.head.mcp = self._route(exchange)
            if head is None:
                return
        exchange.extra_head = head.extra_head
        if self._tap is not None:
            self._note(exchange)
        body, exchange.body = exchange.body, b""
        if head.has_session and body[:1] != b"{" and is_batch(body):
            self._legacy.post_batch(exchange, head, body)
            return
        message = messages.decode(body)
        if isinstance(message, Rejection):
            refuse(exchange, self._emit, 400, message)
        elif head.names_modern or (isinstance(message, Request) and modern.has_envelope(message)):
            self._modern.post(exchange, head, message)
        else:
            self._legacy.post(exchange, head, message)

    def _route(self, exchange: HttpExchange) -> McpRequestHead | None:
        """What a POST to an MCP path says before its body; everything else is answered here."""
        if self._admin.answer_plainly(exchange):
            return None
        refusal = self._guard.check_source(exchange)
        if refusal is not None:
            self._turn_away(exchange, refusal)
            return None
        if exchange.method == "OPTIONS":
            self._guard.preflight(exchange)
            return None
        admitted, path = self._guard.identify(exchange), exchange.path
        if path == "/health":
            self._admin.health(exchange, admitted if isinstance(admitted, Principal) else None)
        elif isinstance(admitted, AuthError):
            self._turn_away(exchange, admitted)
        elif path == _MCP or path.startswith(_SCOPED):
            return self._mcp(exchange, admitted, None if path == _MCP else path.removeprefix(_SCOPED))
        elif not self._admin.answer(exchange, admitted):
            self._refuse(exchange, 404, "There is nothing at this path; MCP is served at /mcp.")
        return None

    def close(self) -> None:
        """End every session and what runs in it."""
        self._kernel.leave(self.sessions)
        self.sessions.close()

    def _note(self, exchange: HttpExchange) -> None:
        if self._tap is not None:
            exchange.hop = self._tap.requested(exchange.method, exchange.path, exchange.headers, exchange.body)

    def _is_served(self, scope: str | None, admitted: Principal) -> bool:
        return scope is None or scope in self._servers(admitted.roles)

    def _mcp(self, exchange: HttpExchange, admitted: Principal, scope: str | None) -> McpRequestHead | None:
        if not self._is_served(scope, admitted):
            refuse(exchange, self._emit, 404, Rejection(messages.INVALID_PARAMS, "There is no server at this path."))
        elif exchange.method == "POST":
            return self._post(exchange, admitted, scope)
        elif exchange.method == "GET":
            self._note(exchange)
            may_stream = read_accept(exchange.headers, otherwise=_ANYTHING).stream
            self._legacy.get(exchange, admitted, scope, may_stream=may_stream)
        elif exchange.method == "DELETE":
            self._note(exchange)
            self._legacy.delete(exchange, admitted, scope)
        else:
            self._refuse(exchange, 405, "Send POST requests here.", _MCP_METHODS)
        return None

    def _post(self, exchange: HttpExchange, admitted: Principal, scope: str | None) -> McpRequestHead | None:
        if not has_json(exchange.headers):
            self._refuse(exchange, 415, "Send Content-Type: application/json.")
            return None
        accepts = read_accept(exchange.headers, otherwise=_ONLY_JSON)
        if not (accepts.json or accepts.stream):
            self._refuse(exchange, 406, "Accept application/json and text/event-stream.")
            return None
        return read_mcp_head(exchange.headers, admitted, scope, accepts, exchange.extra_head)

    def _turn_away(self, exchange: HttpExchange, refusal: AuthError) -> None:
        self._refuse(exchange, refusal.status, refusal.message, refusal.head)

    def _refuse(self, exchange: HttpExchange, status: int, message: str, head: bytes = b"") -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message), head)
