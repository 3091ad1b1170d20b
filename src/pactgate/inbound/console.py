"""The console's part of the HTTP endpoint: one list of routes, each with who may use it.

What the page shows comes from the JSON API (`inbound/admin.py`), what it does goes through `/mcp` and so through every gate: the console
has no way of its own to change anything but its own sign-in. Must not: admit anybody; the guard does, with `ConsoleSessions`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from pactgate.core.events import ConsoleOpened, Emit
from pactgate.core.principal import Principal
from pactgate.inbound.call_filter import CallFilterError, filter_of, read_filter
from pactgate.inbound.call_stream import CallStreams
from pactgate.inbound.console_files import ConsoleFiles
from pactgate.inbound.console_sessions import HEADER, SESSION_PATH, ConsoleSessions, check_page
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.replies import refuse
from pactgate.inbound.request_head import has_json
from pactgate.policy.access import sees_everything
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection, encode_json

STREAM_PATH: Final = "/api/stream"
_HEAD: Final = JSON_HEAD + b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"


class Access(StrEnum):
    """Who may use a route."""

    TOKEN = "token"
    """Whoever has the code or a token; the answer is a session."""
    SESSION = "session"


class ConsoleRoute(Struct, frozen=True):
    method: str
    path: str
    access: Access
    answer: Callable[[HttpExchange, Principal], None]


class Console:
    """`on_signed_out` is told when a session has ended, so that what is open under it ends too."""

    def __init__(self, sessions: ConsoleSessions, streams: CallStreams, emit: Emit) -> None:
        self.sessions = sessions
        self.on_signed_out: Callable[[], None] = _ignore
        self._files = ConsoleFiles()
        self._streams = streams
        self._emit = emit
        self.routes: Final = (
            ConsoleRoute("POST", SESSION_PATH, Access.TOKEN, self._sign_in),
            ConsoleRoute("GET", SESSION_PATH, Access.SESSION, self._show_session),
            ConsoleRoute("DELETE", SESSION_PATH, Access.SESSION, self._sign_out),
            ConsoleRoute("GET", STREAM_PATH, Access.SESSION, self._stream),
        )

    def answer_file(self, exchange: HttpExchange) -> bool:
        """Answer a request for the page itself, which everybody who reaches the gateway may read. Returns whether it was one."""
        return not self._is_routed(exchange.path) and self._files.answer(exchange)

    def answer(self, exchange: HttpExchange, admitted: Principal) -> bool:
        """Answer a route of the console. Returns whether the path is one of its own."""
        if not self._is_routed(exchange.path):
            return False
        allowed = [route for route in self.routes if route.path == exchange.path]
        route = next((one for one in allowed if one.method == exchange.method), None)
        if route is None:
            head = f"Allow: {', '.join(one.method for one in allowed)}\r\n".encode()
            self._refuse(exchange, 405, "This route has other methods.", head)
        elif HEADER not in exchange.headers or (route.access is Access.TOKEN) != ("authorization" in exchange.headers):
            self._refuse(exchange, 401, f"This route is for the console's page; it needs its {route.access.value}.")
        elif (foreign := check_page(exchange)) is not None:
            self._refuse(exchange, foreign.status, foreign.message)
        elif exchange.method == "POST" and not has_json(exchange.headers):
            self._refuse(exchange, 415, "Send Content-Type: application/json.")
        else:
            route.answer(exchange, admitted)
        return True

    def close(self) -> None:
        self._streams.close()

    def _is_routed(self, path: str) -> bool:
        return path in (SESSION_PATH, STREAM_PATH)

    def _sign_in(self, exchange: HttpExchange, admitted: Principal) -> None:
        signed_in = self.sessions.open(admitted, exchange.headers)
        body = {"key": signed_in.key, **_facts(admitted)}
        exchange.respond(200, _HEAD + signed_in.cookie, encode_json(body))
        self._emit(ConsoleOpened(admitted.shown, exchange.peer))

    def _show_session(self, exchange: HttpExchange, admitted: Principal) -> None:
        exchange.respond(200, _HEAD, encode_json(_facts(admitted)))

    def _sign_out(self, exchange: HttpExchange, admitted: Principal) -> None:
        exchange.respond(200, _HEAD + self.sessions.close(exchange.headers), b"{}")
        self.on_signed_out()

    def _stream(self, exchange: HttpExchange, admitted: Principal) -> None:
        try:
            keeps = read_filter(filter_of(exchange))
        except CallFilterError as problem:
            self._refuse(exchange, 400, str(problem))
            return
        if not self._streams.open(exchange, admitted, keeps):
            self._refuse(exchange, 503, "Too many consoles are open; close one.", b"Retry-After: 5\r\n")

    def _refuse(self, exchange: HttpExchange, status: int, message: str, head: bytes = b"") -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message), head)


def _facts(admitted: Principal) -> dict[str, Any]:
    return {"subject": admitted.shown, "isAdmin": sees_everything(admitted.roles)}


def _ignore() -> None:
    return
