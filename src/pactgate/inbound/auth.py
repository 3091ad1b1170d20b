"""Who may knock: Host, Origin, credentials, in this order, before anything of the request is read.

Decides on header values as they came, never on a URL put together from them. Credentials are bearer tokens in `Authorization`;
queries and cookies are never looked at. Tokens are kept and compared as digests. Must not: decide what a caller may do.
Host and Origin are checked against forged hosts and DNS rebinding. Enforces decision D18.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from pactgate.config.model import Config
from pactgate.core.values import Principal
from pactgate.inbound.http_exchange import HttpExchange

ANONYMOUS: Final = "anonymous"

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})
_MAX_HOST_CHARS: Final = 261
_MAX_ORIGIN_CHARS: Final = 512
_HOST: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
)
_ORIGIN: Final = re.compile(r"https?://([^/]+)")
_HEADER_LIST: Final = re.compile(r"[A-Za-z0-9-]+(?: ?, ?[A-Za-z0-9-]+)*")
_OUR_HEADERS: Final = (
    "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)


class AuthError(Struct, frozen=True):
    """Why not, and the header lines the answer needs."""

    status: int
    message: str
    head: bytes = b""


_BAD_HOST: Final = AuthError(400, "The request needs exactly one Host header of the form `name` or `name:port`.")
_FOREIGN_HOST: Final = AuthError(421, "This gateway is not known under that Host; add it to listen.allowedHosts.")
_FOREIGN_ORIGIN: Final = AuthError(403, "Web pages of that origin may not call; add it to listen.allowedOrigins.")
_NO_CREDENTIALS: Final = AuthError(401, "Send a token: `Authorization: Bearer ...`.", b"WWW-Authenticate: Bearer\r\n")
_BAD_CREDENTIALS: Final = AuthError(
    401, "That token is not known here.", b'WWW-Authenticate: Bearer error="invalid_token"\r\n'
)


class Guard:
    """`host` is the address bound to, `hosts` and `origins` what the operator allows besides; `tokens` gives (name, roles)."""

    def __init__(
        self,
        *,
        host: str,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        tokens: Mapping[str, tuple[str, frozenset[str]]] | None = None,
        anonymous: bool = False,
    ) -> None:
        named = {name.lower() for name in hosts}
        # Bound to every address without a list of names, no name can be told from a foreign one; a token is required then (D18).
        self._any_host = host in _EVERYWHERE and not named
        own = {f"[{host.lower()}]" if ":" in host else host.lower()} - _EVERYWHERE
        self._hosts = frozenset(_LOOPBACK | own | named)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._callers = {_digest(token): Principal(name, roles) for token, (name, roles) in (tokens or {}).items()}
        self._anonymous = Principal(ANONYMOUS, frozenset()) if anonymous else None
        self._judged_host = lru_cache(maxsize=256)(self._judge_host)
        self._judged_origin = lru_cache(maxsize=256)(self._judge_origin)

    def check_source(self, exchange: HttpExchange) -> AuthError | None:
        """Host and Origin. An allowed Origin is noted on the exchange: every answer to it says so."""
        refusal = self.check_host(exchange)
        if refusal is not None:
            return refusal
        origins = exchange.headers.get("origin")
        if origins is None:
            return None
        origin = origins[0]
        if len(origins) != 1 or len(origin) > _MAX_ORIGIN_CHARS or not self._judged_origin(origin):
            return _FOREIGN_ORIGIN
        exchange.extra_head = (
            b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n"
            b"Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate\r\n" % origin.encode()
        )
        return None

    def check_host(self, exchange: HttpExchange) -> AuthError | None:
        hosts = exchange.headers.get("host")
        if hosts is None or len(hosts) != 1 or len(hosts[0]) > _MAX_HOST_CHARS:
            return _BAD_HOST
        return self._judged_host(hosts[0])

    def identify(self, exchange: HttpExchange) -> Principal | AuthError:
        """Whose token it is. A token that is sent must be good, also where none is needed, unless none can be."""
        sent = exchange.headers.get("authorization")
        if sent is None or not self._callers:
            return self._anonymous or _NO_CREDENTIALS
        scheme, _, token = sent[0].partition(" ")
        if len(sent) != 1 or scheme.lower() != "bearer":
            return _BAD_CREDENTIALS
        return self._callers.get(_digest(token.strip(" ")), _BAD_CREDENTIALS)

    def preflight(self, exchange: HttpExchange) -> None:
        """Answer a browser's question about a request to come; its Origin has been admitted."""
        if not exchange.extra_head:
            exchange.respond(204, b"Allow: GET, POST, DELETE, OPTIONS\r\n")
            return
        asked = exchange.headers.get("access-control-request-headers", [""])[0]
        # Names of mirrored parameters can't be listed beforehand, so what an allowed origin asks for is allowed.
        names = asked if len(asked) <= 1024 and _HEADER_LIST.fullmatch(asked) else _OUR_HEADERS
        head = (
            b"Access-Control-Allow-Methods: GET, POST, DELETE\r\nAccess-Control-Allow-Headers: %b\r\n"
            b"Access-Control-Max-Age: 600\r\n"
        )
        exchange.respond(204, head % names.encode())

    def _judge_host(self, host: str) -> AuthError | None:
        match = _HOST.fullmatch(host)
        if match is None or int(match["port"] or 0) > 65535:
            return _BAD_HOST
        if self._any_host or self._is_allowed(match):
            return None
        return _FOREIGN_HOST

    def _judge_origin(self, origin: str) -> bool:
        if origin.lower() in self._origins:
            return True
        match = _ORIGIN.fullmatch(origin)
        authority = _HOST.fullmatch(match[1]) if match else None
        return authority is not None and int(authority["port"] or 0) <= 65535 and self._is_allowed(authority)

    def _is_allowed(self, authority: re.Match[str]) -> bool:
        """A listed name allows any port, as forwarded ports are common; a listed `name:port` only itself."""
        return authority["name"].lower() in self._hosts or authority[0].lower() in self._hosts


def guard_for(config: Config, generated_token: str | None = None) -> tuple[Guard, tuple[str, ...]]:
    """The guard of a configuration, with a token made for this run if there is one; and every token it knows."""
    tokens = {entry.token: (name, frozenset(entry.roles)) for name, entry in config.auth.tokens.items()}
    if generated_token is not None:
        tokens[generated_token] = ("generated", frozenset())
    listen = config.listen
    guard = Guard(
        host=listen.host,
        hosts=listen.allowed_hosts,
        origins=listen.allowed_origins,
        tokens=tokens,
        anonymous=config.allows_anonymous,
    )
    return guard, tuple(tokens)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
