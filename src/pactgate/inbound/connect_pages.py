"""The pages of `/connect`: a caller signs in to a server at a browser, and shows first that it is the caller whom the link is for.

It does so at its identity provider, or with the token or key of its client; a page of another site can do neither for it. The answers of
authorization servers come to `/connect/callback` and count only in the browser that began. `/oauth/client.json` says who the gateway is at
authorization servers. Must not: show what another party wrote, or begin anything for somebody else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, Protocol

from pactgate.config.oauth_client import CALLBACK_PATH, CLIENT_NAME, DOCUMENT_PATH
from pactgate.core.events import Emit
from pactgate.core.failures import GatewayFailure
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.masking import IN_HTML
from pactgate.inbound.auth import Guard
from pactgate.inbound.begin_rate import BeginRate
from pactgate.inbound.browser_pages import browser_of, members, say, send_to, sent_browser, show
from pactgate.inbound.console_sessions import check_page
from pactgate.inbound.console_sign_in import ConsoleSignIn
from pactgate.inbound.credentials import Admission, AuthError
from pactgate.inbound.exchange_tasks import ExchangeTasks, TaskBounds
from pactgate.inbound.guess_brake import DelayedAnswer, GuessBrake
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.oauth.id_tokens import CheckedPerson, PersonCheck, principal_of
from pactgate.inbound.oauth.token_form import TokenRefusedError
from pactgate.protocol.messages import encode_json

MAX_FORM_BYTES: Final = 32 * 1024
_LINK: Final = re.compile(r"/connect/([A-Za-z0-9_-]{43})")
_FORM: Final = """<p>The client <b>{caller}</b> wants to call the server <b>{server}</b> with a sign-in of your own.
Go on only if you are {caller} and asked for this.</p>
<form method="post" autocomplete="off"><p><label>Token or key with which your client calls Pactgate:<br>
<input type="password" name="token" required autofocus size="60"></label></p>
<p><button>Sign in to {server}</button></p></form>"""
_AGAIN: Final = "Call the tool again for another link."
_GONE: Final = f"This link is not good any more: it was used, or ten minutes have passed. {_AGAIN}"
_FOREIGN: Final = "This link is for somebody else. Nothing was stored. Do not open links that others sent you."
_OTHER_BROWSER: Final = (
    "This sign-in was not begun in this browser, or has ended: an answer is good once, within ten minutes. "
    "Nothing was stored. Begin again."
)
_DONE: Final = "You are signed in. You can close this page and go on in your client."
_BAD_TOKEN: Final = "That token or key was not accepted."
_LATER: Final = b"Retry-After: 1\r\n"
_TASKS: Final = TaskBounds(
    component="sign-ins",
    most=64,
    timeout_s=60.0,
    too_many="Too many sign-ins are at work; try again.",
    too_slow="This took too long. Begin again.",
)
"""Of its own: who signs in waits for authorization servers, and nobody's token waits for those."""


class LinkTicket(Protocol):
    """Whose sign-in to which server a link is for; `issuer` can say who somebody is, where it is not empty."""

    @property
    def server(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def shown(self) -> str: ...

    @property
    def issuer(self) -> str: ...


class SignInLinks(Protocol):
    """The sign-ins of callers. `upstreams/oauth/connect.py` has the ones there are."""

    base: Callable[[], str | None]
    document: Callable[[], str]

    async def find(self, name: str) -> LinkTicket | None:
        """The ticket of a link, which stays good."""

    async def begin(self, name: str, browser: str) -> str:
        """Use the ticket up, for its own caller. Returns the URL of the authorization server. Raises GatewayFailure."""

    async def finish(self, answer: Mapping[str, str], browser: str) -> str | None:
        """Keep the grant of an answer. Returns the server; None for what this browser did not begin. Raises GatewayFailure."""


class ConnectPages:
    """`guard` says whose a token is; `person` asks identity providers who somebody is; `console` takes what was begun at the console."""

    def __init__(
        self,
        sign_ins: SignInLinks,
        person: PersonCheck,
        guard: Callable[[], Guard],
        emit: Emit,
        brake: GuessBrake,
        console: ConsoleSignIn | None = None,
    ) -> None:
        self._sign_ins = sign_ins
        self._person = person
        self._guard = guard
        self._tasks = ExchangeTasks(_TASKS, FaultBarrier(emit))
        self._brake = brake
        self._console = console
        self._begun = BeginRate()

    def close(self) -> None:
        self._tasks.close()

    def takes_body(self, exchange: HttpExchange) -> bool:
        """Whether a request is a form that has to be read whole before it is answered."""
        length = exchange.head.length
        is_form = exchange.method == "POST" and length is not None and length <= MAX_FORM_BYTES
        return is_form and _LINK.fullmatch(exchange.path) is not None

    def answer(self, exchange: HttpExchange) -> bool:
        """Answer a request for one of these pages. Returns whether it was one."""
        path, method = exchange.path, exchange.method
        if path == DOCUMENT_PATH and method in ("GET", "HEAD") and self._sign_ins.document():
            exchange.respond(200, JSON_HEAD, encode_json(self._document()))
            return True
        link = _LINK.fullmatch(path)
        if path == CALLBACK_PATH and method == "GET":
            self._start(exchange, self._take_answer)
        elif link is not None and method == "GET":
            self._start(exchange, partial(self._open, link[1]))
        elif link is not None and self.takes_body(exchange):
            if check_page(exchange) is not None:
                say(exchange, 403, "Refused", "Only the page of this link may do this.")
            else:
                self._start(exchange, partial(self._take_token, link[1]))
        else:
            return False
        return True

    def _document(self) -> dict[str, object]:
        """The gateway as a client of any authorization server (draft-ietf-oauth-client-id-metadata-document)."""
        return {
            "client_id": self._sign_ins.document(),
            "client_name": CLIENT_NAME,
            "redirect_uris": [
                f"{self._sign_ins.base()}{CALLBACK_PATH}",
                "http://127.0.0.1/callback",  # `pactgate login`, at any port (RFC 8252, 7.3)
            ],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }

    def _start(self, exchange: HttpExchange, work: Callable[[HttpExchange], Awaitable[None]]) -> None:
        async def run() -> None:
            try:
                await work(exchange)
            except GatewayFailure as failure:
                say(exchange, 502, "Not signed in", f"{failure.public} {_AGAIN}")
            exchange.work = None

        # A browser that leaves ends nothing: what an authorization server gave would be lost.
        exchange.work = self._tasks.start(run, partial(say, exchange, 503, "Not now", head=_LATER))

    async def _open(self, link: str, exchange: HttpExchange) -> None:
        ticket = await self._sign_ins.find(link)
        if ticket is None:
            say(exchange, 404, "Link expired", _GONE)
        elif not self._person.knows(ticket.issuer):
            body = _FORM.format(caller=ticket.shown.translate(IN_HTML), server=ticket.server.translate(IN_HTML))
            show(exchange, 200, f"Sign in to {ticket.server}", body)
        elif (too_many := self._begun.note(exchange.peer)) is not None:
            say(exchange, 429, "Not now", too_many.why, too_many.head)
        else:
            browser, cookie = browser_of(exchange, is_secure=self._is_secure)
            url = await self._person.begin(ticket.issuer, link, self._callback, browser)
            send_to(exchange, url, cookie)

    async def _take_token(self, link: str, exchange: HttpExchange) -> None:
        """The form of somebody whom no identity provider knows."""
        ticket = await self._sign_ins.find(link)
        if ticket is None:
            say(exchange, 404, "Link expired", _GONE)
            return
        form, exchange.body = exchange.body.decode("utf-8", "replace"), b""
        token = members(form).get("token", "").strip()
        found = await self._guard().find_holder(token)
        if isinstance(found, Admission) and found.check is None:
            await self._begin(exchange, link, ticket, found.principal.key)
            return
        is_guess = isinstance(found, AuthError) and found.is_guess
        refuse = partial(say, exchange, 401, "Not accepted", _BAD_TOKEN)
        delay_s = self._brake.note(exchange.peer) if is_guess else 0.0
        if delay_s:
            DelayedAnswer(exchange, delay_s, refuse)
        else:
            refuse()

    async def _take_answer(self, exchange: HttpExchange) -> None:
        """What a browser brings from an identity provider, or from the authorization server of a server."""
        answer = members(exchange.head.url.partition(b"?")[2].decode("latin-1"))
        browser = sent_browser(exchange, is_secure=self._is_secure)
        if self._console is not None and await self._console.take_answer(exchange, answer, browser, self._guard):
            return
        person = await self._person.finish(answer, browser)
        if person is not None:
            await self._take_person(exchange, person)
            return
        server = await self._sign_ins.finish(answer, browser)
        if server is None:
            say(exchange, 403, "Refused", _OTHER_BROWSER, to_console=self._console is not None)
        else:
            say(exchange, 200, f"Signed in to {server}", _DONE)

    async def _take_person(self, exchange: HttpExchange, person: CheckedPerson) -> None:
        try:
            principal = principal_of(person.id_token, person.issuer, person.client_id, person.nonce, time.time())
        except TokenRefusedError as refusal:
            say(exchange, 403, "Refused", f"Your identity provider's ID token can't be used: {refusal.reason}.")
            return
        ticket = await self._sign_ins.find(person.link)
        if ticket is None:
            say(exchange, 404, "Link expired", _GONE)
        else:
            await self._begin(exchange, person.link, ticket, principal)

    async def _begin(self, exchange: HttpExchange, link: str, ticket: LinkTicket, principal: str) -> None:
        """Send the browser of the right person to the authorization server, and nobody else's anywhere."""
        if principal != ticket.principal:
            say(exchange, 403, "Refused", _FOREIGN)
            return
        browser, cookie = browser_of(exchange, is_secure=self._is_secure)
        send_to(exchange, await self._sign_ins.begin(link, browser), cookie)

    @property
    def _is_secure(self) -> bool:
        return (self._sign_ins.base() or "").startswith("https:")

    @property
    def _callback(self) -> str:
        return f"{self._sign_ins.base()}{CALLBACK_PATH}"
