"""The console's part of the HTTP endpoint: one list of routes, each with who may use it.

What the page shows comes from here and from the JSON API (`inbound/admin.py`), what it does goes through `/mcp` and so through every gate:
the console has no way of its own to change anything but sign-ins. Must not: admit anybody; the guard does, with `ConsoleSessions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from enum import StrEnum
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from pactgate.capture.differences import Difference, differences
from pactgate.config.sections.auth import ANONYMOUS
from pactgate.core.events import ConsoleOpened, Emit
from pactgate.core.failures import GatewayFailure
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.call_filter import CallFilterError, filter_of, read_filter
from pactgate.inbound.call_stream import CallStreams
from pactgate.inbound.console_captures import ConsoleCaptures
from pactgate.inbound.console_files import ConsoleFiles
from pactgate.inbound.console_sessions import HEADER, SESSION_PATH, ConsoleSessions, check_page, is_local_page
from pactgate.inbound.console_sign_in import ConsoleSignIn
from pactgate.inbound.exchange_tasks import ExchangeTasks, TaskBounds
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.replies import refuse
from pactgate.inbound.request_head import Headers, has_json
from pactgate.policy.access import sees_everything
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection, encode_json

STREAM_PATH: Final = "/api/stream"
MAX_DIFFERENCES: Final = 100
_HEAD: Final = JSON_HEAD + b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_LATER: Final = b"Retry-After: 5\r\n"
_TASKS: Final = TaskBounds(
    component="console",
    most=4,
    timeout_s=60.0,
    too_many="The console is busy with other questions; try again.",
    too_slow="This took too long.",
)

Answering = Callable[[], Coroutine[Any, Any, bytes]] | None
"""Gives the body, where that takes time; it may raise GatewayFailure or OSError. None: it is answered."""
SignIn = Callable[[str], Coroutine[Any, Any, str]]
"""Begins the sign-in of a person at a server; gives the URL to open. Raises GatewayFailure."""


class Access(StrEnum):
    """Who may use a route."""

    PAGE = "page"
    """Everybody who has loaded the console's page."""
    TOKEN = "token"
    """Whoever has the code or a token; the answer is a session."""
    SESSION = "session"
    ADMIN = "session of an administrator"


class ConsoleRoute(Struct, frozen=True):
    """A path that ends with `/` stands for all paths with one more part, which the answer is given."""

    method: str
    path: str
    access: Access
    answer: Callable[[HttpExchange, Principal, str], Answering]

    def fits(self, path: str) -> bool:
        if not self.path.endswith("/"):
            return path == self.path
        return path.startswith(self.path) and bool(rest := path.removeprefix(self.path)) and "/" not in rest


class _Pair(Struct):
    before: Any = None
    after: Any = None


_NOBODY: Final = Principal(ANONYMOUS, kind=PrincipalKind.ANONYMOUS)
_pair: Final = msgspec.json.Decoder(_Pair)


class Console:
    """`on_signed_out` is told when a session has ended, so that what is open under it ends too; `credential_end` says when the token of
    an admitted request ends. `client_entries` gives what each known client has to be told of an address."""

    def __init__(
        self,
        sessions: ConsoleSessions,
        streams: CallStreams,
        captures: ConsoleCaptures,
        people: ConsoleSignIn,
        emit: Emit,
        *,
        sign_in: SignIn,
        client_entries: Callable[[str], list[dict[str, Any]]],
        needs_token: Callable[[], bool],
    ) -> None:
        self.sessions = sessions
        self.on_signed_out: Callable[[], None] = _ignore
        self.credential_end: Callable[[Headers], float] = _never
        self._files = ConsoleFiles()
        self._streams = streams
        self._captures = captures
        self.people = people
        self._emit = emit
        self._begin_sign_in = sign_in
        self._client_entries = client_entries
        self._needs_token = needs_token
        self._tasks = ExchangeTasks(_TASKS, FaultBarrier(emit))
        self.routes: Final = (
            ConsoleRoute("GET", "/console/issuers", Access.PAGE, self._show_issuers),
            ConsoleRoute("POST", "/console/issuers/", Access.PAGE, self._begin_at_issuer),
            ConsoleRoute("POST", SESSION_PATH, Access.TOKEN, self._sign_in),
            ConsoleRoute("GET", SESSION_PATH, Access.SESSION, self._show_session),
            ConsoleRoute("DELETE", SESSION_PATH, Access.SESSION, self._sign_out),
            ConsoleRoute("GET", STREAM_PATH, Access.SESSION, self._stream),
            ConsoleRoute("GET", "/api/clients", Access.SESSION, self._show_clients),
            ConsoleRoute("GET", "/api/captures", Access.ADMIN, self._list_captures),
            ConsoleRoute("GET", "/api/captures/", Access.ADMIN, self._show_capture),
            ConsoleRoute("GET", "/api/capture-checks/", Access.ADMIN, self._check_capture),
            ConsoleRoute("GET", "/api/capture-differences/", Access.ADMIN, self._compare_captures),
            ConsoleRoute("GET", "/api/messages", Access.ADMIN, self._show_messages),
            ConsoleRoute("POST", "/api/differences", Access.ADMIN, self._show_differences),
            ConsoleRoute("POST", "/api/sign-ins/", Access.ADMIN, self._start_sign_in),
        )

    def answer_anybody(self, exchange: HttpExchange) -> bool:
        """Answer what everybody may ask who reaches the gateway: the page, and what it needs to sign in. Returns whether it was that."""
        allowed = self._routes_of(exchange.path)
        if allowed and all(route.access is Access.PAGE for route in allowed):
            return self.answer(exchange, _NOBODY)
        return not allowed and self._files.answer(exchange)

    def takes_body(self, exchange: HttpExchange) -> bool:
        """Whether the answer depends on a body."""
        return exchange.method == "POST" and exchange.path == "/api/differences"

    def answer(self, exchange: HttpExchange, admitted: Principal) -> bool:
        """Answer a route of the console. Returns whether the path is one of its own."""
        allowed = self._routes_of(exchange.path)
        if not allowed:
            return False
        route = next((one for one in allowed if one.method == exchange.method), None)
        if route is None:
            head = f"Allow: {', '.join(one.method for one in allowed)}\r\n".encode()
            self._refuse(exchange, 405, "This route has other methods.", head)
        elif HEADER not in exchange.headers or (route.access is Access.TOKEN) != ("authorization" in exchange.headers):
            self._refuse(exchange, 401, f"This route is for the console's page; it needs its {route.access.value}.")
        elif (foreign := check_page(exchange)) is not None:
            self._refuse(exchange, foreign.status, foreign.message)
        elif route.access is Access.ADMIN and not sees_everything(admitted.roles):
            self._refuse(exchange, 403, "This is for administrators.")
        elif exchange.method == "POST" and not has_json(exchange.headers):
            self._refuse(exchange, 415, "Send Content-Type: application/json.")
        elif (body_of := route.answer(exchange, admitted, exchange.path.removeprefix(route.path))) is not None:
            self._run(exchange, body_of)
        return True

    def close(self) -> None:
        self._tasks.close()
        self.people.close()
        self._streams.close()

    def _routes_of(self, path: str) -> list[ConsoleRoute]:
        return [route for route in self.routes if route.fits(path)]

    def _run(self, exchange: HttpExchange, body_of: Callable[[], Coroutine[Any, Any, bytes]]) -> None:
        """Answer when the body is there."""

        async def answer() -> None:
            try:
                body = await body_of()
            except GatewayFailure as failure:
                give_up(failure.message, 404)
            except OSError as problem:
                give_up(f"The captures can't be read: {problem.strerror}.")
            else:
                exchange.work = exchange.on_disconnect = None
                exchange.respond(200, _HEAD, body)

        def give_up(reason: str, status: int = 503) -> None:
            exchange.work = exchange.on_disconnect = None
            if exchange.is_connected:
                self._refuse(exchange, status, reason, _LATER if status == 503 else b"")

        task = self._tasks.start(answer, give_up)
        if task is not None:
            exchange.work, exchange.on_disconnect = task, partial(_stop, task)

    def _show_issuers(self, exchange: HttpExchange, nobody: Principal, _: str) -> None:
        exchange.respond(200, _HEAD, encode_json({"issuers": self.people.issuers(exchange.headers)}))

    def _begin_at_issuer(self, exchange: HttpExchange, nobody: Principal, issuer: str) -> None:
        self.people.begin(exchange, unquote(issuer))

    def _sign_in(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        headers = exchange.headers
        signed_in = self.sessions.open(
            admitted, headers, self.credential_end(headers), is_secure=self.sessions.is_secure(headers)
        )
        body = {"key": signed_in.key, **self._facts(admitted)}
        exchange.respond(200, _HEAD + signed_in.cookie, encode_json(body))
        self._emit(ConsoleOpened(admitted.shown, exchange.peer))

    def _show_session(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        exchange.respond(200, _HEAD, encode_json(self._facts(admitted)))

    def _sign_out(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        exchange.respond(200, _HEAD + self.sessions.close(exchange.headers), b"{}")
        self.on_signed_out()

    def _stream(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        try:
            keeps = read_filter(filter_of(exchange))
        except CallFilterError as problem:
            self._refuse(exchange, 400, str(problem))
            return
        if not self._streams.open(exchange, admitted, keeps):
            self._refuse(exchange, 503, "Too many consoles are open; close one.", _LATER)

    def _show_clients(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        scheme = "https" if self.sessions.is_secure(exchange.headers) else "http"
        entries = self._client_entries(f"{scheme}://{exchange.headers['host'][0]}")
        exchange.respond(200, _HEAD, encode_json({"clients": entries}))

    def _list_captures(self, exchange: HttpExchange, admitted: Principal, _: str) -> Answering:
        return self._captures.listing

    def _show_capture(self, exchange: HttpExchange, admitted: Principal, name: str) -> Answering:
        return partial(self._captures.read, name)

    def _check_capture(self, exchange: HttpExchange, admitted: Principal, name: str) -> Answering:
        return partial(self._captures.check, name)

    def _compare_captures(self, exchange: HttpExchange, admitted: Principal, names: str) -> Answering:
        """The part of the path is both names, with a comma between."""
        name, _, other = names.partition(",")
        return partial(self._captures.compare, name, other)

    def _show_messages(self, exchange: HttpExchange, admitted: Principal, _: str) -> Answering:
        try:
            return partial(self._captures.of_calls, read_filter(filter_of(exchange)))
        except CallFilterError as problem:
            self._refuse(exchange, 400, str(problem))
            return None

    def _show_differences(self, exchange: HttpExchange, admitted: Principal, _: str) -> None:
        """Of two answers, as `pactgate replay` compares them."""
        try:
            pair = _pair.decode(exchange.body)
            found = differences(pair.before, pair.after)
        except (msgspec.DecodeError, RecursionError):
            self._refuse(exchange, 400, "Send an object with `before` and `after`.")
            return
        rows = [_difference(one) for one in found[:MAX_DIFFERENCES]]
        exchange.respond(200, _HEAD, encode_json({"differences": rows, "more": max(0, len(found) - MAX_DIFFERENCES)}))

    def _start_sign_in(self, exchange: HttpExchange, admitted: Principal, server: str) -> Answering:
        if not is_local_page(exchange.headers):  # the answer comes to an address of the gateway's machine
            self._refuse(exchange, 404, f"Sign in where the gateway runs: pactgate login {server}")
            return None

        async def body() -> bytes:
            return encode_json({"url": await self._begin_sign_in(server)})

        return body

    def _facts(self, admitted: Principal) -> dict[str, Any]:
        return {
            "subject": admitted.shown,
            "isAdmin": sees_everything(admitted.roles),
            "needsToken": self._needs_token(),
        }

    def _refuse(self, exchange: HttpExchange, status: int, message: str, head: bytes = b"") -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message), head)


def _difference(one: Difference) -> dict[str, Any]:
    return {"pointer": one.pointer, "kind": one.kind, "recorded": one.before, "now": one.after}


def _stop(task: Any) -> None:
    task.cancel()


def _ignore() -> None:
    return


def _never(headers: Headers) -> float:
    return math.inf
