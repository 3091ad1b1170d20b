"""The pages of `/connect`: a caller signs in to a server at a browser, and shows first that it is the caller whom the link is for.

It does so at its identity provider, or with the token or key of its client; a page of another site can do neither for it. The answers of
authorization servers come to `/connect/callback` and count only in the browser that began. `/oauth/client.json` says who the gateway is at
authorization servers. Must not: show what another party wrote, or begin anything for somebody else.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Final, Protocol
from urllib.parse import parse_qsl

from pactgate.config.oauth_client import CALLBACK_PATH, CLIENT_NAME, DOCUMENT_PATH
from pactgate.config.sections.oauth import Issuer
from pactgate.core.failures import GatewayFailure
from pactgate.core.masking import IN_HTML
from pactgate.inbound.auth import Guard
from pactgate.inbound.console_sessions import check_page
from pactgate.inbound.credentials import Admission, AuthError, PendingCheck
from pactgate.inbound.exchange_tasks import ExchangeTasks, TaskBounds
from pactgate.inbound.guess_brake import DelayedAnswer, GuessBrake
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.oauth.id_tokens import principal_of
from pactgate.inbound.oauth.token_form import TokenRefusedError
from pactgate.protocol.messages import encode_json

COOKIE_S: Final = 600
MAX_FORM_BYTES: Final = 32 * 1024
_LINK: Final = re.compile(r"/connect/([A-Za-z0-9_-]{43})")
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_COOKIE_CHARS: Final = 4096
_HEAD: Final = (
    b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
    b"Content-Security-Policy: default-src 'none'; base-uri 'none'; frame-ancestors 'none'\r\nX-Frame-Options: DENY\r\n"
    b"Cross-Origin-Opener-Policy: same-origin\r\n"
    b"Referrer-Policy: same-origin\r\n"  # without any referrer, browsers hide the origin of a form, too
)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pactgate: {title}</title></head><body><main><h1>{title}</h1>
{body}
</main></body></html>
"""
_FORM: Final = """<p>The client <b>{caller}</b> wants to call the server <b>{server}</b> with a sign-in of your own.
Go on only if you are {caller} and asked for this.</p>
<form method="post" autocomplete="off"><p><label>Token or key with which your client calls Pactgate:<br>
<input type="password" name="token" required autofocus size="60"></label></p>
<p><button>Sign in to {server}</button></p></form>"""
_AGAIN: Final = "Call the tool again for another link."
_GONE: Final = f"This link is not good any more: it was used, or ten minutes have passed. {_AGAIN}"
_FOREIGN: Final = "This link is for somebody else. Nothing was stored. Do not open links that others sent you."
_OTHER_BROWSER: Final = "This sign-in was not begun in this browser, or has ended. Nothing was stored."
_DONE: Final = "You are signed in. You can close this page and go on in your client."
_BAD_TOKEN: Final = "That token or key was not accepted."
_LATER: Final = b"Retry-After: 1\r\n"
SIGN_INS: Final = TaskBounds(
    component="sign-ins",
    most=64,
    timeout_s=60.0,
    too_many="Too many sign-ins are at work; try again.",
    too_slow=f"This took too long. {_AGAIN}",
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


class CheckedPerson(Protocol):
    """What an identity provider says of a person, and what it has to fit."""

    @property
    def link(self) -> str: ...

    @property
    def issuer(self) -> Issuer: ...

    @property
    def id_token(self) -> str: ...

    @property
    def client_id(self) -> str: ...

    @property
    def nonce(self) -> str: ...


class PersonCheck(Protocol):
    """Asks identity providers. `upstreams/oauth/person.py` has the one there is."""

    def knows(self, issuer: str) -> bool:
        """Whether people can sign in there."""

    async def begin(self, issuer: str, link: str, redirect_uri: str, browser: str) -> str:
        """The URL at which a person signs in. Raises GatewayFailure."""

    async def finish(self, answer: Mapping[str, str], browser: str) -> CheckedPerson | None:
        """Who it was; None for an answer to something else, or of another browser. Raises GatewayFailure."""


class ConnectPages:
    """`guard` says whose a token is; `person` asks identity providers who somebody is."""

    def __init__(
        self,
        sign_ins: SignInLinks,
        person: PersonCheck,
        guard: Callable[[], Guard],
        checks: ExchangeTasks,
        brake: GuessBrake,
    ) -> None:
        self._sign_ins = sign_ins
        self._person = person
        self._guard = guard
        self._checks = checks
        self._brake = brake

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
                _say(exchange, 403, "Refused", "Only the page of this link may do this.")
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
                _say(exchange, 502, "Not signed in", f"{failure.public} {_AGAIN}")
            exchange.work = None

        # A browser that leaves ends nothing: what an authorization server gave would be lost.
        exchange.work = self._checks.start(run, partial(_say, exchange, 503, "Not now", head=_LATER))

    async def _open(self, link: str, exchange: HttpExchange) -> None:
        ticket = await self._sign_ins.find(link)
        if ticket is None:
            _say(exchange, 404, "Link expired", _GONE)
        elif self._person.knows(ticket.issuer):
            browser, cookie = _browser(exchange, self._is_secure)
            url = await self._person.begin(ticket.issuer, link, self._callback, browser)
            _send_to(exchange, url, cookie)
        else:
            body = _FORM.format(caller=ticket.shown.translate(IN_HTML), server=ticket.server.translate(IN_HTML))
            _show(exchange, 200, f"Sign in to {ticket.server}", body)

    async def _take_token(self, link: str, exchange: HttpExchange) -> None:
        """The form of somebody whom no identity provider knows."""
        ticket = await self._sign_ins.find(link)
        if ticket is None:
            _say(exchange, 404, "Link expired", _GONE)
            return
        form, exchange.body = exchange.body.decode("utf-8", "replace"), b""
        token = _members(form).get("token", "").strip()
        found = self._guard().find_holder(token)
        if isinstance(found, PendingCheck):
            found = await found.wait()
        if isinstance(found, Admission) and found.check is None:
            await self._begin(exchange, link, ticket, found.principal.key)
            return
        is_guess = isinstance(found, AuthError) and found.is_guess
        refuse = partial(_say, exchange, 401, "Not accepted", _BAD_TOKEN)
        delay_s = self._brake.note(exchange.peer) if is_guess else 0.0
        if delay_s:
            DelayedAnswer(exchange, delay_s, refuse)
        else:
            refuse()

    async def _take_answer(self, exchange: HttpExchange) -> None:
        """What a browser brings from an identity provider, or from the authorization server of a server."""
        answer = _members(exchange.head.url.partition(b"?")[2].decode("latin-1"))
        browser = _sent_browser(exchange, self._is_secure)
        person = await self._person.finish(answer, browser)
        if person is not None:
            await self._take_person(exchange, person)
            return
        server = await self._sign_ins.finish(answer, browser)
        if server is None:
            _say(exchange, 403, "Refused", _OTHER_BROWSER)
        else:
            _say(exchange, 200, f"Signed in to {server}", _DONE)

    async def _take_person(self, exchange: HttpExchange, person: CheckedPerson) -> None:
        try:
            principal = principal_of(person.id_token, person.issuer, person.client_id, person.nonce, time.time())
        except TokenRefusedError as refusal:
            _say(exchange, 403, "Refused", f"Your identity provider's ID token can't be used: {refusal.reason}.")
            return
        ticket = await self._sign_ins.find(person.link)
        if ticket is None:
            _say(exchange, 404, "Link expired", _GONE)
        else:
            await self._begin(exchange, person.link, ticket, principal)

    async def _begin(self, exchange: HttpExchange, link: str, ticket: LinkTicket, principal: str) -> None:
        """Send the browser of the right person to the authorization server, and nobody else's anywhere."""
        if principal != ticket.principal:
            _say(exchange, 403, "Refused", _FOREIGN)
            return
        browser, cookie = _browser(exchange, self._is_secure)
        _send_to(exchange, await self._sign_ins.begin(link, browser), cookie)

    @property
    def _is_secure(self) -> bool:
        return (self._sign_ins.base() or "").startswith("https:")

    @property
    def _callback(self) -> str:
        return f"{self._sign_ins.base()}{CALLBACK_PATH}"


def _members(encoded: str) -> dict[str, str]:
    """The members of a query or a form; none of one that has too many."""
    try:
        return dict(parse_qsl(encoded, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}


def _say(exchange: HttpExchange, status: int, title: str, text: str, head: bytes = b"") -> None:
    _show(exchange, status, title, f"<p>{text.translate(IN_HTML)}</p>", head)


def _show(exchange: HttpExchange, status: int, title: str, body: str, head: bytes = b"") -> None:
    """`body` is HTML already, `title` is text."""
    exchange.respond(status, _HEAD + head, _PAGE.format(title=title.translate(IN_HTML), body=body).encode())


def _send_to(exchange: HttpExchange, url: str, cookie: bytes) -> None:
    location = "".join(char for char in url if "!" <= char <= "~")  # no control character reaches a header
    exchange.respond(303, _HEAD + cookie + f"Location: {location}\r\n".encode(), b"")


def _cookie_name(*, is_secure: bool) -> str:
    return f"{'__Host-' if is_secure else ''}pactgate-connect"


def _sent_browser(exchange: HttpExchange, is_secure: bool) -> str:
    """The secret of this browser; empty where it has none."""
    sent = exchange.headers.get("cookie", [])
    if len(sent) != 1 or len(sent[0]) > _MAX_COOKIE_CHARS:
        return ""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(sent[0])
    except CookieError:
        return ""
    found = cookies.get(_cookie_name(is_secure=is_secure))
    return found.value if found is not None and _SECRET.fullmatch(found.value) else ""


def _browser(exchange: HttpExchange, is_secure: bool) -> tuple[str, bytes]:
    """The secret of this browser, a new one where it has none, and the header line that keeps it there.

    `Lax`: it has to come along when an authorization server sends the browser back.
    """
    secret = _sent_browser(exchange, is_secure) or secrets.token_urlsafe(32)
    secure = "; Secure" if is_secure else ""
    name = _cookie_name(is_secure=is_secure)
    return secret, (
        f"Set-Cookie: {name}={secret}; Path=/; Max-Age={COOKIE_S}; HttpOnly; SameSite=Lax{secure}\r\n".encode()
    )
