"""Who is signed in to the console: the one-time code, and the sessions of browsers.

A session is two secrets: a cookie that no script can read, and a key that the page keeps for its own origin and sends in the header
`X-Pactgate-Console`. Browsers send a cookie to every port of a host, so the cookie alone opens nothing; a page of another origin can send
neither the header nor, because of `SameSite`, the cookie. A request without the header is none of the console's. Bounded: sessions, and
the time each lasts. Must not: keep a secret other than as its digest; the code of the next sign-in is the exception, because it is shown.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec import Struct

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
    """`is_secure`: browsers reach the gateway by HTTPS, so the cookie is for HTTPS alone."""

    def __init__(self, wall: Callable[[], float], *, is_secure: bool) -> None:
        self.code = secrets.token_urlsafe(32)
        """Signs in once; then there is another one."""
        self._wall = wall
        self.is_secure = is_secure
        self._sessions: dict[bytes, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, exchange: HttpExchange) -> Admission | AuthError | None:
        """Whose session a request of the console belongs to; None where it wants to sign in with a token."""
        headers = exchange.headers
        sent = headers.get("authorization")
        if sent is not None and exchange.path == SESSION_PATH:
            is_code = hmac.compare_digest(sent[0].encode("latin-1"), f"Bearer {self.code}".encode())
            return Admission(OPERATOR, check=check_page) if is_code and len(sent) == 1 else None
        session = self._sessions.get(self._sent(headers))
        if session is None or session.expires_at <= self._wall():
            return SIGNED_OUT
        if not hmac.compare_digest(session.key, _digest(headers[HEADER][0])):
            return SIGNED_OUT
        return Admission(session.principal, session.expires_at, check_page)

    def open(self, principal: Principal, headers: Headers, credential_end: float = math.inf) -> SignedIn:
        """Sign in, until the credential ends. The code is used up with its sign-in. The oldest session of whoever has most makes room."""
        if principal == OPERATOR:
            self.code = secrets.token_urlsafe(32)
        now, token, key = self._wall(), secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions = {digest: one for digest, one in self._sessions.items() if one.expires_at > now}
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[self._spare()]
        end = min(now + SESSION_S, credential_end)
        self._sessions[_digest(token)] = _Session(_digest(key), principal, end)
        return SignedIn(key, self._cookie(headers, token, math.ceil(end - now)))

    def close(self, headers: Headers) -> bytes:
        """Sign out. Returns the header line that removes the cookie."""
        self._sessions.pop(self._sent(headers), None)
        return self._cookie(headers, "", 0)

    def next_expiry(self) -> float | None:
        """The wall clock time at which the next session ends."""
        now = self._wall()
        return min((one.expires_at for one in self._sessions.values() if one.expires_at > now), default=None)

    def _spare(self) -> bytes:
        """The session that makes room: nobody signs others out by signing in often."""
        ((greediest, _),) = Counter(one.principal.key for one in self._sessions.values()).most_common(1)
        return next(digest for digest, one in self._sessions.items() if one.principal.key == greediest)

    def _cookie(self, headers: Headers, value: str, age_s: int) -> bytes:
        secure = "; Secure" if self.is_secure else ""
        line = f"{self._name(headers)}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"
        return f"Set-Cookie: {line}\r\n".encode("latin-1")

    def _sent(self, headers: Headers) -> bytes:
        """The digest of the cookie, which is the name of a session; nothing where there is none."""
        found = sent_cookie(headers, self._name(headers))
        return _digest(found) if found else b""

    def _name(self, headers: Headers) -> str:
        """Gateways on other ports of this host have cookies of their own."""
        port = headers["host"][0].rpartition(":")[2]
        return f"{'__Host-' if self.is_secure else ''}pactgate-{port if port.isdecimal() else 'console'}"


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
