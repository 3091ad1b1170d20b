"""The HTTP face: which path, which method, which era.

Decides by the raw path alone; no other spelling of a path is one of ours. Every request but the two plain health checks passes the guard
before its path is looked at; then method, types and message are checked, in this order. Must not: frame answers of an era.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pactgate.config.model import Sessions
from pactgate.core.events import Emit
from pactgate.core.tap import Tap
from pactgate.faces.admin import Admin, Stories
from pactgate.faces.answering import Drops, Kernel, refuse
from pactgate.faces.batch import is_batch
from pactgate.faces.exchange import Exchange
from pactgate.faces.guard import Admitted, Guard, Refusal
from pactgate.faces.http_legacy import LegacyFace, named_session
from pactgate.faces.http_modern import ModernFace
from pactgate.faces.sessions import SessionTable
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Message, Rejection, Request
from pactgate.protocol.versions import LEGACY_VERSIONS

_MCP: Final = "/mcp"
_SCOPED: Final = "/mcp/"
_MCP_METHODS: Final = b"Allow: GET, POST, DELETE, OPTIONS\r\n"
_MAX_TYPE_CHARS: Final = 1024
_JSON_TYPE: Final = re.compile(r'application/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?', re.IGNORECASE)
_REFUSED: Final = re.compile(r"[ \t]*q=0(?:\.0*)?[ \t]*")
_JSON_RANGES: Final = frozenset({"application/json", "application/*", "*/*"})
_STREAM_RANGES: Final = frozenset({"text/event-stream", "text/*", "*/*"})
_LEGACY: Final = frozenset(LEGACY_VERSIONS)
_LASTING: Final = frozenset({"initialize", "subscriptions/listen"})
"""A session and a stream."""


class Accepts(NamedTuple):
    json: bool
    stream: bool


class Post(NamedTuple):
    """What a POST to an MCP path says before its body. `names_modern`: its version is no legacy one (the ladder says what is wrong)."""

    admitted: Admitted
    scope: str | None
    accepts: Accepts
    has_session: bool
    session_id: str | None
    """The session it names, where it names one in good order."""
    names_modern: bool
    extra_head: bytes


class HttpFace:
    """`servers` gives the ids that have a path of their own for callers of certain roles; `snapshot` the state the JSON API shows."""

    def __init__(
        self,
        kernel: Kernel,
        guard: Guard,
        *,
        servers: Callable[[frozenset[str]], Collection[str]],
        snapshot: Callable[[], dict[str, Any]],
        metrics: Callable[[], bytes],
        stories: Stories,
        emit: Emit,
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
        tap: Tap | None = None,
    ) -> None:
        self.drops = Drops()
        self.sessions = SessionTable(sessions or Sessions(), clock, self.drops)
        self.sessions.on_end = kernel.left
        self._kernel = kernel
        kernel.join(self.sessions)
        self._guard = guard
        self._servers = servers
        self._emit = emit
        self._tap = tap
        self._admin = Admin(snapshot, metrics, stories, clock)
        self._modern = ModernFace(kernel, emit, clock, self.drops)
        self._legacy = LegacyFace(kernel, self.sessions, emit, clock, self.drops)

    def start(self, exchange: Exchange) -> bool:
        """Begin a request of a client whose head was judged before, unless it opens something that lasts."""
        post: Post | None = exchange.head.judged
        if post is None or not self._is_served(post.scope, post.admitted):
            return False
        message = exchange.message = messages.decode(exchange.body)
        if not isinstance(message, Request) or message.method in _LASTING:
            return False
        if self._tap is not None:
            self._note(exchange)
        exchange.extra_head, exchange.body = post.extra_head, b""
        accepts = post.accepts
        if post.names_modern or modern.has_envelope(message):
            self._modern.start(exchange, post.admitted, post.scope, message, accepts.stream, accepts.json)
        else:
            self._legacy.start(exchange, post.admitted, post.scope, message, post.session_id, may_stream=accepts.stream)
        return True

    async def handle(self, exchange: Exchange) -> None:
        """Answer one exchange."""
        post: Post | None = exchange.head.judged
        if post is None or not self._is_served(post.scope, post.admitted):
            post = exchange.head.judged = self._route(exchange)
            if post is None:
                return
        exchange.extra_head = post.extra_head
        if self._tap is not None:
            self._note(exchange)
        body, exchange.body = exchange.body, b""
        accepts = post.accepts
        if post.has_session and is_batch(body):
            await self._legacy.post_batch(exchange, post.admitted, post.scope, body, may_stream=accepts.stream)
            return
        message = exchange.message or messages.decode(body)
        if isinstance(message, Rejection):
            refuse(exchange, self._emit, 400, message)
        elif post.names_modern or _has_envelope(message):
            await self._modern.post(
                exchange, post.admitted, post.scope, message, may_stream=accepts.stream, may_json=accepts.json
            )
        else:
            await self._legacy.post(exchange, post.admitted, post.scope, message, may_stream=accepts.stream)

    def _route(self, exchange: Exchange) -> Post | None:
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
            self._admin.health(exchange, in_detail=isinstance(admitted, Admitted))
        elif isinstance(admitted, Refusal):
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

    def _note(self, exchange: Exchange) -> None:
        if self._tap is not None:
            exchange.hop = self._tap.requested(exchange.method, exchange.path, exchange.headers, exchange.body)

    def _is_served(self, scope: str | None, admitted: Admitted) -> bool:
        return scope is None or scope in self._servers(admitted.roles)

    def _mcp(self, exchange: Exchange, admitted: Admitted, scope: str | None) -> Post | None:
        if not self._is_served(scope, admitted):
            refuse(exchange, self._emit, 404, Rejection(messages.INVALID_PARAMS, "There is no server at this path."))
        elif exchange.method == "POST":
            return self._post(exchange, admitted, scope)
        elif exchange.method == "GET":
            self._note(exchange)
            self._legacy.get(exchange, admitted, scope, may_stream=self._accepts(exchange).stream)
        elif exchange.method == "DELETE":
            self._note(exchange)
            self._legacy.delete(exchange, admitted, scope)
        else:
            self._refuse(exchange, 405, "Send POST requests here.", _MCP_METHODS)
        return None

    def _post(self, exchange: Exchange, admitted: Admitted, scope: str | None) -> Post | None:
        headers = exchange.headers
        if not _is_json(headers.get("content-type")):
            self._refuse(exchange, 415, "Send Content-Type: application/json.")
            return None
        accepts = self._accepts(exchange)
        if not (accepts.json or accepts.stream):
            self._refuse(exchange, 406, "Accept application/json and text/event-stream.")
            return None
        return Post(
            admitted=admitted,
            scope=scope,
            accepts=accepts,
            has_session="mcp-session-id" in headers,
            session_id=named_session(headers),
            names_modern=not _LEGACY.issuperset(headers.get("mcp-protocol-version", ())),
            extra_head=exchange.extra_head,
        )

    @staticmethod
    def _accepts(exchange: Exchange) -> Accepts:
        values = exchange.headers.get("accept")
        if values is None:
            return Accepts(json=True, stream=False) if exchange.method == "POST" else Accepts(json=True, stream=True)
        return _read_accept(values[0] if len(values) == 1 else ",".join(values))

    def _turn_away(self, exchange: Exchange, refusal: Refusal) -> None:
        self._refuse(exchange, refusal.status, refusal.message, refusal.head)

    def _refuse(self, exchange: Exchange, status: int, message: str, head: bytes = b"") -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message), head)


def _has_envelope(message: Message) -> bool:
    return isinstance(message, Request) and modern.has_envelope(message)


def _is_json(types: list[str] | None) -> bool:
    return types is not None and len(types) == 1 and _is_json_type(types[0][:_MAX_TYPE_CHARS])


@lru_cache(maxsize=64)
def _is_json_type(text: str) -> bool:
    return _JSON_TYPE.fullmatch(text) is not None


def _read_accept(text: str) -> Accepts:
    return _known_accept(text) if len(text) <= _MAX_TYPE_CHARS else Accepts(json=False, stream=False)


@lru_cache(maxsize=64)
def _known_accept(text: str) -> Accepts:
    ranges: set[str] = set()
    for entry in text.lower().split(","):
        name, _, parameters = entry.partition(";")
        if not any(_REFUSED.fullmatch(parameter) for parameter in parameters.split(";")):
            ranges.add(name.strip())
    return Accepts(json=not ranges.isdisjoint(_JSON_RANGES), stream=not ranges.isdisjoint(_STREAM_RANGES))
