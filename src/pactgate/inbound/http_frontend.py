"""The HTTP frontend: decides which path, which method and which era a request is for.

Only the raw path counts; no other spelling of a path is one of ours. Every request but the two plain health checks passes the guard
before the frontend looks at its path; then it checks method, types and message, in this order. When the guard changes, everything that is
open is checked again. Must not: frame answers of an era.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pactgate.config.model import Sessions
from pactgate.config.oauth_client import DOCUMENT_PATH
from pactgate.core.events import Emit
from pactgate.core.failures import Kind
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal
from pactgate.core.recording import ConnectionRecorder
from pactgate.inbound.admin import Admin, CallTraces, Reach, ServerLogReader
from pactgate.inbound.auth import Guard, cors_head
from pactgate.inbound.batch import is_batch
from pactgate.inbound.credentials import AuthError, PendingCheck
from pactgate.inbound.error_data import data_of
from pactgate.inbound.exchange_tasks import CREDENTIALS, ExchangeTasks
from pactgate.inbound.guess_brake import DelayedAnswer, GuessBrake
from pactgate.inbound.http_exchange import HttpExchange, Work
from pactgate.inbound.http_legacy import LegacyHttpHandler
from pactgate.inbound.http_modern import ModernHttpHandler
from pactgate.inbound.replies import REVOKED, DroppedNotifications, Kernel, body_rejection, refuse, status_of
from pactgate.inbound.request_head import Accepts, McpRequestHead, has_json, read_accept, read_mcp_head
from pactgate.inbound.sessions import SessionTable
from pactgate.policy.refused_bytes import LARGE_BYTES
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Rejection, Request
from pactgate.protocol.unread import id_of
from pactgate.state.owned_ids import new_plain_id

if TYPE_CHECKING:
    from pactgate.inbound.connect_pages import ConnectPages
    from pactgate.inbound.console import Console
    from pactgate.inbound.console_sign_in import ConsoleSignIn
    from pactgate.inbound.hop import HopSender
    from pactgate.inbound.hop_message import HopClaims

_MCP: Final = "/mcp"
_SCOPED: Final = "/mcp/"
_CONSOLE: Final = ("/console", "/api/")
_CONNECT: Final = ("/connect/", DOCUMENT_PATH)
_LATER: Final = b"Retry-After: 1\r\n"
_MCP_METHODS: Final = b"Allow: GET, POST, DELETE, OPTIONS\r\n"
_ONLY_JSON: Final = Accepts(json=True, stream=False)
_ANYTHING: Final = Accepts(json=True, stream=True)
_WELL_KNOWN: Final = "/.well-known/"
_NOTHING_HERE: Final = "There is nothing at this path; MCP is served at /mcp."
_EXPIRY_SLACK_S: Final = 0.01
_EXPIRY_LOOK_S: Final = 60.0


MakeConnectPages = Callable[[Callable[[], Guard], Emit, GuessBrake, "ConsoleSignIn | None"], "ConnectPages"]


def _ignore(subject: str) -> None:
    return


def _stop(work: Work) -> None:
    work.cancel()


class HttpFrontend:
    """`reach` says what exists for a caller; `snapshot` is the state the JSON API shows."""

    def __init__(
        self,
        kernel: Kernel,
        guard: Guard,
        *,
        reach: Reach,
        snapshot: Callable[[], dict[str, Any]],
        metrics: Callable[[str], tuple[bytes, str]],
        stories: CallTraces,
        server_logs: ServerLogReader,
        traffic: Callable[[], dict[str, Any]],
        emit: Emit,
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
        tap: ConnectionRecorder | None = None,
        new_id: Callable[[], str] = new_plain_id,
        console: Callable[[], Console] | None = None,
        connect: MakeConnectPages | None = None,
    ) -> None:
        """`console` makes the console, `connect` the pages at which callers sign in to servers: each at the first request for it."""
        self.drops = DroppedNotifications()
        self.sessions = SessionTable(sessions or Sessions(), clock, self.drops, new_id)
        self.sessions.on_end = kernel.left
        self.exchanges: Callable[[], Iterable[HttpExchange]] = tuple
        """Gives everything that is being answered now."""
        self.hops: HopSender | None = None
        """Hands over what another replica owns, where there are others."""
        self.is_draining = False
        """Whether load balancers are to send nothing new."""
        self.on_gone: Callable[[str], None] = _ignore
        """Told every subject that may no longer call."""
        self._kernel = kernel
        kernel.join(self.sessions)
        self._guard = guard
        self._generation = 0
        self._holders = guard.holders()
        self._checks = ExchangeTasks(CREDENTIALS, FaultBarrier(emit))
        self._expiry: asyncio.TimerHandle | None = None
        self._expires_at: float | None = None
        self._brake = GuessBrake(emit, clock)
        self._reach = reach
        self._emit = emit
        self._tap = tap
        self._admin = Admin(
            snapshot, metrics, stories, reach, server_logs, traffic, clock, is_draining=lambda: self.is_draining
        )
        self._make_console = console
        self._console: Console | None = None
        self._make_connect = connect
        self._connect: ConnectPages | None = None
        self._modern = ModernHttpHandler(kernel, emit, clock, self.drops)
        self._legacy = LegacyHttpHandler(kernel, self.sessions, emit, clock, self.drops)
        self._await_expiry()

    def admit(self, exchange: HttpExchange) -> bool:
        """Whether the request waits for its body: judged by its head alone. All others are answered here.

        Credentials that take time to check are checked when the body is there: it counts as nobody's until then. A question of the
        console may have a body too.
        """
        head = exchange.head.mcp
        if head is None or head.generation != self._generation or not self._is_served(head.path, head.principal):
            guard, headers = self._guard, exchange.headers
            connect = self._connect_for(exchange)
            if connect is not None and connect.takes_body(exchange):
                return True
            if guard.check_source(headers) is None:
                found = guard.find(exchange)
                if isinstance(found, PendingCheck):
                    return True
                console = self._console_for(exchange)
                if console is not None and console.takes_body(exchange) and isinstance(found, Principal):
                    return True
            exchange.head.mcp = self._route(exchange)
        return exchange.head.mcp is not None

    def handle(self, exchange: HttpExchange) -> None:
        """Answer one exchange, or see that it is answered."""
        head = exchange.head.mcp
        if (
            head is None
            or head.generation != self._generation
            or (head.path is not None and not self._is_served(head.path, head.principal))
        ):
            head = exchange.head.mcp = self._route(exchange)
            if head is None:
                return
        exchange.extra_head = head.extra_head
        if self._tap is not None:
            self._note(exchange)
        body, exchange.body = exchange.body, b""
        if self.hops is not None and self.hops.forward(exchange, head.principal, body):
            return
        self._take(exchange, head, body)

    def serve_forwarded(self, exchange: HttpExchange, claims: HopClaims, body: bytes) -> None:
        """Answer a request that another replica has admitted. Which paths its principal sees is looked up here."""
        exchange.extra_head = b""
        principal, path = claims.principal, None if claims.path == _MCP else claims.path.removeprefix(_SCOPED)
        head = exchange.head.mcp
        if head is None or head.generation != self._generation or not self._is_served(path, principal):
            head = self._mcp(exchange, principal, path)
            if head is None:
                return
            head = exchange.head.mcp = replace(head, peer=claims.peer)
        if self._tap is not None:
            self._note(exchange)
        self._take(exchange, head, body)

    def _take(self, exchange: HttpExchange, head: McpRequestHead, body: bytes, *, is_checked: bool = False) -> None:
        if len(body) > LARGE_BYTES and not is_checked:
            self._take_large(exchange, head, body)
            return
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

    def _take_large(self, exchange: HttpExchange, head: McpRequestHead, body: bytes) -> None:
        """As `_take`, but for a body that is costly to decode: it is checked first, and counted if it is refused."""
        subject = head.principal.key
        failure = self._kernel.check_body(subject, body)
        if failure is None:
            self._take(exchange, head, body, is_checked=True)
        elif failure.kind is Kind.RATE_LIMITED:
            refuse(exchange, self._emit, status_of(exchange, failure, 429), body_rejection(failure, None))
            return
        else:
            refuse(exchange, self._emit, 400, body_rejection(failure, id_of(body)))
        if exchange.is_refused:
            self._kernel.count_refused(subject, len(body))

    def _route(self, exchange: HttpExchange) -> McpRequestHead | None:
        """What a POST to an MCP path says before its body; everything else is answered here."""
        if self._admin.answer_plainly(exchange):
            return None
        refusal = self._guard.check_source(exchange.headers)
        if refusal is not None:
            self._turn_away(exchange, refusal)
            return None
        if (connect := self._connect_for(exchange)) is not None and connect.answer(exchange):
            return None
        if (console := self._console_for(exchange)) is not None and console.answer_anybody(exchange):
            return None
        exchange.extra_head = cors_head(exchange.headers)
        if exchange.method == "OPTIONS":
            self._guard.preflight(exchange)
            return None
        if exchange.path.startswith(_WELL_KNOWN):
            self._well_known(exchange)
            return None
        admitted = self._guard.identify(exchange)
        if isinstance(admitted, PendingCheck):
            self._wait(exchange, admitted)
            return None
        return self._route_as(exchange, admitted)

    def _route_as(self, exchange: HttpExchange, admitted: Principal | AuthError) -> McpRequestHead | None:
        self._note_expiry()
        path = exchange.path
        if isinstance(admitted, Principal):
            exchange.principal = admitted
        if path == "/health":
            self._admin.health(exchange, admitted if isinstance(admitted, Principal) else None)
        elif isinstance(admitted, AuthError):
            self._turn_away(exchange, admitted)
        elif exchange.line is not None and not exchange.line.may_serve(admitted.key):
            self._refuse(exchange, 503, "This client has too many connections at work; try again.", _LATER)
        elif path == _MCP or path.startswith(_SCOPED):
            return self._mcp(exchange, admitted, None if path == _MCP else path.removeprefix(_SCOPED))
        elif self._guard.resource is not None and not self._guard.resource.may_read(admitted):
            self._refuse(exchange, 403, "This needs a scope.", self._guard.resource.scope_refusal(exchange))
        elif (console := self._console_for(exchange)) is not None and console.answer(exchange, admitted):
            return None
        elif not self._admin.answer(exchange, admitted):
            self._refuse(exchange, 404, _NOTHING_HERE)
        return None

    def _console_for(self, exchange: HttpExchange) -> Console | None:
        """The console; None while nobody has asked for a path that may be its own."""
        is_wanted = exchange.path == "/" or exchange.path.startswith(_CONSOLE)
        return self._open_console() if is_wanted else self._console

    def _open_console(self) -> Console | None:
        if self._console is None and self._make_console is not None:
            self._console = self._make_console()
            self._console.on_signed_out = self.check_again
            self._console.credential_end = lambda headers: self._guard.credential_end(headers)
        return self._console

    def _connect_for(self, exchange: HttpExchange) -> ConnectPages | None:
        """The same for the pages at which callers sign in."""
        if self._connect is None and self._make_connect is not None and exchange.path.startswith(_CONNECT):
            console = self._open_console()
            people = None if console is None else console.people
            self._connect = self._make_connect(lambda: self._guard, self._emit, self._brake, people)
        return self._connect

    def _well_known(self, exchange: HttpExchange) -> None:
        """For clients that look for a token, who have none; where there are no identity providers there is nothing to find."""
        resource = self._guard.resource
        metadata = None if resource is None else resource.metadata(exchange)
        if metadata is None:
            self._refuse(exchange, 404, _NOTHING_HERE)
        else:
            self._admin.say(exchange, metadata)

    def _wait(self, exchange: HttpExchange, pending: PendingCheck) -> None:
        """Go on with a request when its credentials have been checked."""

        def give_up(reason: str) -> None:
            if exchange.is_connected:
                self._refuse(exchange, 503, reason, _LATER)

        task = self._checks.start(partial(self._settle, exchange, pending), give_up)
        if task is not None:
            exchange.work = task
            exchange.on_disconnect = partial(_stop, task)

    async def _settle(self, exchange: HttpExchange, pending: PendingCheck) -> None:
        generation = self._generation
        admitted: Principal | AuthError | PendingCheck = await self._guard.settle(exchange, pending)
        if generation != self._generation:  # another guard has its own opinion
            admitted = self._guard.identify(exchange)
        exchange.work = exchange.on_disconnect = None
        if isinstance(admitted, PendingCheck):
            self._refuse(exchange, 503, "The rules for clients have just changed; try again.", _LATER)
            return
        exchange.head.mcp = self._route_as(exchange, admitted)
        if exchange.head.mcp is not None:
            self.handle(exchange)

    def replace_guard(self, guard: Guard) -> None:
        """Apply another guard from now on, to what is open too."""
        before, self._guard = self._guard, guard
        self._check_again(before.forget())

    def check_again(self) -> None:
        """Ask about everything that is open again: what a source of credentials knows has changed."""
        self._check_again(self._guard.forget())

    def close(self) -> None:
        """End every session and what runs in it."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._checks.close()
        if self._connect is not None:
            self._connect.close()
        if self._console is not None:
            self._console.close()
        self._kernel.leave(self.sessions)
        self.sessions.close()

    def _check_again(self, remembered: Collection[Principal] = ()) -> None:
        """End everything that is open under credentials, a Host or an Origin that no longer mean what they did.

        `remembered` were admitted lately, beside those that can be listed.
        """
        guard = self._guard
        self._generation += 1  # so that every known head is checked again at its next request
        holders, self._holders = self._holders, guard.holders()
        self.sessions.end_others(self._is_admitted)
        for exchange in self.exchanges():
            former = exchange.principal if exchange.head.mcp is None else exchange.head.mcp.principal
            if former is not None:
                self._check_exchange(exchange, former)
        gone = {one.key for one in holders.union(remembered) if not self._is_admitted(one)}
        for subject in gone - {one.key for one in self._holders}:
            self.on_gone(subject)
        self._await_expiry()

    def _is_admitted(self, principal: Principal) -> bool:
        return principal in self._holders or self._guard.admits(principal)

    def _check_exchange(self, exchange: HttpExchange, former: Principal) -> None:
        guard, headers = self._guard, exchange.headers
        found = guard.find(exchange) if guard.check_source(headers) is None else None
        if isinstance(found, PendingCheck):
            self._checks.start(partial(self._recheck, exchange, former, found), lambda reason: exchange.end(REVOKED))
        elif found != former:
            exchange.end(REVOKED)

    async def _recheck(self, exchange: HttpExchange, former: Principal, pending: PendingCheck) -> None:
        found = await self._guard.recheck(exchange.headers, pending)
        self._note_expiry()
        if isinstance(found, AuthError) or found.principal != former:
            exchange.end(REVOKED)

    def _note_expiry(self) -> None:
        """A credential that was not known before may expire before all others."""
        at = self._guard.next_expiry()
        if at is not None and (self._expires_at is None or at < self._expires_at):
            self._await_expiry()

    def _await_expiry(self) -> None:
        """Look at everything again when the next token expires. The wall clock may be set, so it is read at least once a minute."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        at = self._expires_at = self._guard.next_expiry()
        if at is not None:
            wait_s = min(max(at - self._guard.wall(), 0.0) + _EXPIRY_SLACK_S, _EXPIRY_LOOK_S)
            self._expiry = asyncio.get_running_loop().call_later(wait_s, self._look_at_expiry)

    def _look_at_expiry(self) -> None:
        if self._guard.next_expiry() != self._expires_at:
            self._check_again()
        else:
            self._await_expiry()

    def _note(self, exchange: HttpExchange) -> None:
        if self._tap is not None:
            exchange.hop = self._tap.requested(exchange.method, exchange.path, exchange.headers, exchange.body)

    def _is_served(self, path: str | None, admitted: Principal) -> bool:
        return path is None or self._reach.is_served(path, admitted)

    def _mcp(self, exchange: HttpExchange, admitted: Principal, path: str | None) -> McpRequestHead | None:
        if not self._is_served(path, admitted):
            rejection = Rejection(
                messages.INVALID_PARAMS, "There is no server at this path.", data=data_of(Kind.UNKNOWN_PATH)
            )
            refuse(exchange, self._emit, 404, rejection)
        elif exchange.method == "POST":
            return self._post(exchange, admitted, path)
        elif self.hops is not None and not exchange.is_forwarded and self.hops.forward(exchange, admitted, b""):
            return None
        elif exchange.method == "GET":
            self._note(exchange)
            may_stream = read_accept(exchange.headers, otherwise=_ANYTHING).stream
            self._legacy.get(exchange, admitted, path, may_stream=may_stream)
        elif exchange.method == "DELETE":
            self._note(exchange)
            self._legacy.delete(exchange, admitted, path)
        else:
            self._refuse(exchange, 405, "Send POST requests here.", _MCP_METHODS)
        return None

    def _post(self, exchange: HttpExchange, admitted: Principal, path: str | None) -> McpRequestHead | None:
        if not has_json(exchange.headers):
            self._refuse(exchange, 415, "Send Content-Type: application/json.")
            return None
        accepts = read_accept(exchange.headers, otherwise=_ONLY_JSON)
        if not (accepts.json or accepts.stream):
            self._refuse(exchange, 406, "Accept application/json and text/event-stream.")
            return None
        return read_mcp_head(
            exchange.headers,
            generation=self._generation,
            principal=admitted,
            peer=exchange.peer,
            path=path,
            accepts=accepts,
            extra_head=exchange.extra_head,
            resource_metadata=b"" if self._guard.resource is None else self._guard.resource.where(exchange),
        )

    def _turn_away(self, exchange: HttpExchange, refusal: AuthError) -> None:
        delay_s = self._brake.note(exchange.peer) if refusal.is_guess else 0.0
        resource, head = self._guard.resource, refusal.head
        if resource is not None and refusal.status == 401:
            head = resource.challenge(exchange, head)
        answer = partial(self._refuse, exchange, refusal.status, refusal.message, head, refusal.reason)
        if delay_s:
            DelayedAnswer(exchange, delay_s, answer)
        else:
            answer()

    def _refuse(self, exchange: HttpExchange, status: int, message: str, head: bytes = b"", reason: str = "") -> None:
        rejection = Rejection(messages.INVALID_REQUEST, message)
        refuse(exchange, self._emit, status, rejection, head, reason=reason)
