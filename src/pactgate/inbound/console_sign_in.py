"""People sign in to the console at an identity provider: the browser is sent there, and comes back to `/connect/callback`.

The session is that of the access token which the provider gives for this gateway: its principal, its rights, and no longer than it lasts.
The token passes the checks of every other one; the ID token shows that it belongs to this sign-in. Bounded: sign-ins that begin at a
time and at one address, and those that wait for their answer. Must not: send a browser anywhere but to the provider and to the console.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from pactgate.config.oauth_client import CALLBACK_PATH
from pactgate.config.sections.auth import Auth
from pactgate.config.value_checks import is_loopback
from pactgate.core.events import ConsoleOpened, Emit, RequestRefused
from pactgate.core.failures import GatewayFailure
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.inbound.auth import Guard
from pactgate.inbound.begin_rate import BeginRate
from pactgate.inbound.browser_pages import browser_of, end_browser, say, send_to
from pactgate.inbound.console_sessions import ConsoleSessions, is_local_page
from pactgate.inbound.credentials import Admission, AuthError
from pactgate.inbound.exchange_tasks import ExchangeTasks, TaskBounds
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.oauth.id_tokens import CheckedPerson, PersonCheck, principal_of
from pactgate.inbound.oauth.token_form import TokenRefusedError
from pactgate.inbound.replies import refuse
from pactgate.inbound.request_head import Headers
from pactgate.policy.scopes import ScopePolicy
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection, encode_json

MAX_PENDING: Final = 1000
"""Sign-ins that wait for their answer; the oldest make room."""
_TASKS: Final = TaskBounds(
    component="console sign-in",
    most=16,
    timeout_s=15.0,
    too_many="Too many people are signing in; try again.",
    too_slow="The identity provider did not answer in time; try again.",
)
_HEAD: Final = JSON_HEAD + b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_LATER: Final = b"Retry-After: 5\r\n"
_NO_WAY_BACK: Final = (
    "The provider can't send you back here: `auth.resource` has to say where browsers reach the gateway."
)
_NOT_ACCEPTED: Final = (
    "The provider knows you, but the gateway does not accept what it gave: {why} The log of the gateway says more."
)


class _NotAcceptedError(Exception):
    """What the provider gave opens nothing here. `reason` is for the log."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason or message


class ConsoleSignIn:
    """`base` is where browsers reach the gateway; None where they can't be sent back."""

    def __init__(
        self,
        person: PersonCheck,
        sessions: ConsoleSessions,
        emit: Emit,
        *,
        auth: Callable[[], Auth],
        base: Callable[[], str | None],
    ) -> None:
        self._person = person
        self._sessions = sessions
        self._emit = emit
        self._auth = auth
        self._base = base
        self._begun = BeginRate()
        self._tasks = ExchangeTasks(_TASKS, FaultBarrier(emit))

    def issuers(self, headers: Headers) -> list[str]:
        """Where people at a page can sign in."""
        base = self._base()
        if base is None or _is_elsewhere(base, headers):
            return []
        return [one.issuer for one in self._auth().issuers if one.login is not None]

    def begin(self, exchange: HttpExchange, issuer: str) -> None:
        """Tell the page of the console where to go. Only the page itself may ask."""
        base, auth = self._base(), self._auth()
        settings = next((one for one in auth.issuers if one.issuer == issuer), None)
        login = None if settings is None else settings.login
        if base is None or settings is None or login is None:
            self._refuse(exchange, 404, "Nobody can sign in there now; load the page again.")
        elif _is_elsewhere(base, exchange.headers):
            self._refuse(exchange, 400, _NO_WAY_BACK)
        elif exchange.headers.get("origin") != [_origin_of(base)]:  # the cookie would not come along with the answer
            self._refuse(exchange, 400, f"Open the console at {base}/console/ to sign in this way.")
        elif (too_many := self._begun.note(exchange.peer)) is not None:
            self._refuse(exchange, 429, too_many.why, too_many.head)
        else:
            browser, cookie = browser_of(exchange, is_secure=self._is_secure)
            url = partial(
                self._person.begin,
                issuer,
                "",
                f"{base}{CALLBACK_PATH}",
                browser,
                # Entra refuses the parameter (AADSTS9010010): there the names of scopes say what a token is for.
                resource="" if settings.quirks == "entra" else auth.resource or f"{base}/mcp",
                scopes=login.scopes or (ScopePolicy(auth.scopes).read.name,),
            )
            give_up = partial(self._refuse, exchange, 503, head=_LATER)
            exchange.work = self._tasks.start(partial(self._answer, exchange, url, cookie), give_up)

    async def take_answer(
        self, exchange: HttpExchange, answer: Mapping[str, str], browser: str, guard: Callable[[], Guard]
    ) -> bool:
        """Open a session for whom a browser brings from a provider. Returns whether this browser began it here."""
        say_why = partial(say, exchange, head=end_browser(is_secure=self._is_secure), to_console=True)
        try:
            person = await self._person.finish(answer, browser)
        except GatewayFailure as failure:
            say_why(502, "Not signed in", failure.public)
            return True
        if person is None:
            return False
        try:
            admission = await _admitted(person, guard())
        except _NotAcceptedError as refusal:
            target = f"{exchange.method} {exchange.path}"
            reason = f"sign-in to the console: {refusal.reason}"
            self._emit(RequestRefused(refusal.status, messages.INVALID_REQUEST, reason, exchange.peer, target))
            say_why(refusal.status, "Not signed in", _NOT_ACCEPTED.format(why=refusal))
            return True
        principal = admission.principal
        signed_in = self._sessions.open(
            principal, exchange.headers, admission.credential_ends_at, is_secure=self._is_secure
        )
        self._emit(ConsoleOpened(principal.shown, exchange.peer))
        # The key is of no use without the cookie, so a link with a key of somebody else signs nobody in.
        cookies = signed_in.cookie + end_browser(is_secure=self._is_secure)
        send_to(exchange, f"/console/#key={signed_in.key}", cookies)
        return True

    def close(self) -> None:
        self._tasks.close()

    async def _answer(self, exchange: HttpExchange, url: Callable[[], Awaitable[str]], cookie: bytes) -> None:
        try:
            body = encode_json({"url": await url()})
        except GatewayFailure as failure:
            self._refuse(exchange, 502, failure.public)
        else:
            exchange.respond(200, _HEAD + cookie, body)
        exchange.work = None

    @property
    def _is_secure(self) -> bool:
        return (self._base() or "").startswith("https:")

    def _refuse(self, exchange: HttpExchange, status: int, message: str, head: bytes = b"") -> None:
        refuse(exchange, self._emit, status, Rejection(messages.INVALID_REQUEST, message), head)


async def _admitted(person: CheckedPerson, guard: Guard) -> Admission:
    """Whom the access token admits, as if its holder had sent it; the ID token has to be about the same. Raises _NotAcceptedError."""
    try:
        key = principal_of(person.id_token, person.issuer, person.client_id, person.nonce, time.time())
    except TokenRefusedError as refusal:
        raise _NotAcceptedError(403, f"The ID token can't be used: {refusal.reason}.") from None
    found = await guard.find_holder(person.access_token)
    if isinstance(found, AuthError):
        raise _NotAcceptedError(503 if found.status == 503 else 403, found.message, found.reason)
    if found.check is not None:
        raise _NotAcceptedError(403, "The access token is for a part of the gateway only, or bound to a key.")
    if found.principal.key != key:
        raise _NotAcceptedError(403, "The access token and the ID token are about different people.")
    if guard.resource is not None and not guard.resource.may_read(found.principal):
        raise _NotAcceptedError(403, "The access token lacks the scope that allows to read.")
    return found


def _is_elsewhere(base: str, headers: Headers) -> bool:
    """Whether browsers can be sent back to the gateway's own machine only, and this page is not of there: there is a proxy between."""
    return is_loopback(urlsplit(base).hostname or "") and not is_local_page(headers)


def _origin_of(base: str) -> str:
    """As browsers write it: without the port that goes without saying."""
    parts = urlsplit(base.lower())
    default = ":443" if parts.scheme == "https" else ":80"
    return f"{parts.scheme}://{parts.netloc.removesuffix(default)}"
