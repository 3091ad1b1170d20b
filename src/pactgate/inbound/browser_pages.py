"""Plain pages for a person who signs in at a browser, and the cookie that binds a sign-in to the browser that began it.

Must not: show what another party wrote other than as text, or know what is signed in to.
"""

from __future__ import annotations

import re
import secrets
from typing import Final
from urllib.parse import parse_qsl

from pactgate.core.masking import IN_HTML
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.request_head import Headers

_COOKIE_S: Final = 600
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


def members(encoded: str) -> dict[str, str]:
    """The members of a query or a form; none of one that has too many."""
    try:
        return dict(parse_qsl(encoded, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}


def say(
    exchange: HttpExchange, status: int, title: str, text: str, head: bytes = b"", *, to_console: bool = False
) -> None:
    link = '\n<p><a href="/console/">Back to the console</a></p>' if to_console else ""
    show(exchange, status, title, f"<p>{text.translate(IN_HTML)}</p>{link}", head)


def show(exchange: HttpExchange, status: int, title: str, body: str, head: bytes = b"") -> None:
    """`body` is HTML already, `title` is text."""
    exchange.respond(status, _HEAD + head, _PAGE.format(title=title.translate(IN_HTML), body=body).encode())


def send_to(exchange: HttpExchange, url: str, cookie: bytes) -> None:
    location = "".join(char for char in url if "!" <= char <= "~")  # no control character reaches a header
    exchange.respond(303, _HEAD + cookie + f"Location: {location}\r\n".encode(), b"")


def sent_cookie(headers: Headers, name: str) -> str:
    """The value of a cookie; empty where there is none."""
    sent = headers.get("cookie", [])
    if len(sent) != 1 or len(sent[0]) > _MAX_COOKIE_CHARS:
        return ""
    from http.cookies import CookieError, SimpleCookie  # only browsers send cookies that count

    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(sent[0])
    except CookieError:
        return ""
    found = cookies.get(name)
    return "" if found is None else found.value


def sent_browser(exchange: HttpExchange, *, is_secure: bool) -> str:
    """The secret of this browser; empty where it has none."""
    found = sent_cookie(exchange.headers, _cookie_name(is_secure=is_secure))
    return found if _SECRET.fullmatch(found) else ""


def browser_of(exchange: HttpExchange, *, is_secure: bool) -> tuple[str, bytes]:
    """The secret of this browser, a new one where it has none, and the header line that keeps it there.

    `Lax`: it has to come along when an authorization server sends the browser back.
    """
    secret = sent_browser(exchange, is_secure=is_secure) or secrets.token_urlsafe(32)
    return secret, _set_cookie(secret, _COOKIE_S, is_secure=is_secure)


def end_browser(*, is_secure: bool) -> bytes:
    """The header line that removes the secret of a browser."""
    return _set_cookie("", 0, is_secure=is_secure)


def _set_cookie(secret: str, age_s: int, *, is_secure: bool) -> bytes:
    secure = "; Secure" if is_secure else ""
    name = _cookie_name(is_secure=is_secure)
    return f"Set-Cookie: {name}={secret}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Lax{secure}\r\n".encode()


def _cookie_name(*, is_secure: bool) -> str:
    return f"{'__Host-' if is_secure else ''}pactgate-connect"
