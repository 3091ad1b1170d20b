"""Who is signed in to the console: the one-time code, and the sessions of browsers.

A session is two secrets: a cookie that no script can read, and a key that the page keeps for its own origin and sends in the header
`X-Pactgate-Console`. Browsers send a cookie to every port of a host, so the cookie alone opens nothing; a page of another origin can send
neither the header nor, because of `SameSite`, the cookie. A request without the header is none of the console's. A link signs in with the
code alone, in a scheme of its own: with a token of its author it would sign others in as that. Bounded: sessions, and the time each
lasts. Must not: keep a secret other than as its digest; the code of the next sign-in is the exception, because it is shown.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from pactgate.config.value_checks import is_loopback
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.browser_pages import sent_cookie
from pactgate.inbound.credentials import Admission, AuthError
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.request_head import Headers
from pactgate.policy.access import ADMINISTRATOR

HEADER: Final = "x-pactgate-console"
SESSION_PATH: Final = "/console/session"
OPERATOR: Final = Principal("console:operator", ADMINISTRATOR, PrincipalKind.LOCAL)
"""Whoever has the code has read it where the gateway was started."""
MAX_SESSIONS: Final = 100
SESSION_S: Final = 12 * 3600
SIGNED_OUT: Final = AuthError(
    401, "Sign in to the console: open the link that `pactgate serve` printed, or use a token."
)
_FOREIGN_PAGE: Final = AuthError(403, "Only the console's own page may do this.")


class _Session(Struct, frozen=True):
    key: bytes
    principal: Principal
    expires_at: float


class SignedIn(Struct, frozen=True):
    """What the page gets when it signs in: its key, and the header line with the cookie."""

    key: str
    cookie: bytes


class ConsoleSessions:
    """`is_tls`: the gateway itself is reached by HTTPS. `public` is where browsers reach it, None where nobody said so."""

    def __init__(self, wall: Callable[[], float], *, is_tls: bool, public: Callable[[], str | None]) -> None:
        self.code = secrets.token_urlsafe(32)
        """Signs in once; then there is another one."""
        self._wall = wall
        self._is_tls = is_tls
        self._public = public
        self._sessions: dict[bytes, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, exchange: HttpExchange) -> Admission | AuthError | None:
        """Whose session a request of the console belongs to; None where it wants to sign in with a token."""
        headers = exchange.headers
        sent = headers.get("authorization")
        if sent is not None and exchange.path == SESSION_PATH:
            given = sent[0].partition(" ")[2]  # a link gives it as `Code`, which no token is taken as
            is_code = hmac.compare_digest(given.encode("latin-1"), self.code.encode())
            return Admission(OPERATOR, check=check_page) if is_code and len(sent) == 1 else None
        session = self._sessions.get(_digest(self._sent(headers)[0]))
        if session is None or session.expires_at <= self._wall():
            return SIGNED_OUT
        if not hmac.compare_digest(session.key, _digest(headers[HEADER][0])):
            return SIGNED_OUT
        return Admission(session.principal, session.expires_at, check_page)

    def is_secure(self, headers: Headers) -> bool:
        """Whether the cookie is for HTTPS alone: where browsers reach the gateway by it, themselves or through a proxy. A page at an
        address of its own machine comes through none, and not every browser takes such a cookie there."""
        return self._is_tls or ((self._public() or "").startswith("https:") and not is_local_page(headers))

    def open(
        self, principal: Principal, headers: Headers, credential_end: float = math.inf, *, is_secure: bool
    ) -> SignedIn:
        """Sign in, until the credential ends. The code is used up with its sign-in. The oldest session of whoever has most makes room."""
        if principal == OPERATOR:
            self.code = secrets.token_urlsafe(32)
        now, token, key = self._wall(), secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions = {digest: one for digest, one in self._sessions.items() if one.expires_at > now}
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[self._spare()]
        end = min(now + SESSION_S, credential_end)
        self._sessions[_digest(token)] = _Session(_digest(key), principal, end)
        return SignedIn(key, _cookie(headers, token, math.ceil(end - now), is_secure=is_secure))

    def close(self, headers: Headers) -> bytes:
        """Sign out. Returns the header line that removes the cookie."""
        token, is_secure = self._sent(headers)
        self._sessions.pop(_digest(token), None)
        return _cookie(headers, "", 0, is_secure=is_secure)

    def next_expiry(self) -> float | None:
        """The wall clock time at which the next session ends."""
        now = self._wall()
        return min((one.expires_at for one in self._sessions.values() if one.expires_at > now), default=None)

    def _spare(self) -> bytes:
        """The session that makes room: nobody signs others out by signing in often."""
        ((greediest, _),) = Counter(one.principal.key for one in self._sessions.values()).most_common(1)
        return next(digest for digest, one in self._sessions.items() if one.principal.key == greediest)

    def _sent(self, headers: Headers) -> tuple[str, bool]:
        """The cookie of a session, empty where there is none, and whether it is for HTTPS alone, which a request does not say."""
        for is_secure in (True,) if self._is_tls else (True, False):
            found = sent_cookie(headers, _name(headers, is_secure=is_secure))
            if found:
                return found, is_secure
        return "", self._is_tls


def is_local_page(headers: Headers) -> bool:
    """Whether a page has an address of the browser's own machine. A read does not say which page it is of, so the Host counts."""
    page = headers["origin"][0] if "origin" in headers else f"//{headers['host'][0]}"
    return is_loopback(urlsplit(page).hostname or "")


def _cookie(headers: Headers, value: str, age_s: int, *, is_secure: bool) -> bytes:
    secure = "; Secure" if is_secure else ""
    name = _name(headers, is_secure=is_secure)
    return f"Set-Cookie: {name}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}\r\n".encode(
        "latin-1"
    )


def _name(headers: Headers, *, is_secure: bool) -> str:
    """Gateways on other ports of this host have cookies of their own."""
    port = headers["host"][0].rpartition(":")[2]
    return f"{'__Host-' if is_secure else ''}pactgate-{port if port.isdecimal() else 'console'}"


def check_page(exchange: HttpExchange) -> AuthError | None:
    """Whether a request comes from the console's own page, as the browser says. Browsers tell it of HTTPS and of loopback; elsewhere the
    `Origin` of a write says it."""
    headers = exchange.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return None if site == ["same-origin"] else _FOREIGN_PAGE
    if origin is not None:
        return None if origin[0].partition("://")[2].lower() == headers["host"][0].lower() else _FOREIGN_PAGE
    return None if exchange.method == "GET" else _FOREIGN_PAGE


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
