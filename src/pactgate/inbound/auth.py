"""Decides who may call: Host, Origin and credentials, in this order, before the gateway reads anything else of a request.

The guard reads header values as they came, never a URL put together from them. Credentials are bearer tokens in `Authorization`; queries
are ignored, and cookies but for those of the console. Sources say whose a token is; tokens are kept and compared as digests. A reload
makes a new guard. Must not: decide what a caller may do, or wait. The checks of Host and Origin are against forged hosts and DNS
rebinding. Enforces decision D18.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from pactgate.config.model import Config
from pactgate.config.sections.auth import ANONYMOUS, GENERATED, token_digest
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.admissions import AdmissionMemory
from pactgate.inbound.console_sessions import HEADER as CONSOLE_HEADER
from pactgate.inbound.console_sessions import OPERATOR, SIGNED_OUT, ConsoleSessions
from pactgate.inbound.credentials import (
    INVALID_TOKEN,
    Admission,
    AuthError,
    ConfiguredTokens,
    Credential,
    CredentialSource,
    PendingCheck,
)
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.request_head import Headers
from pactgate.inbound.subject_tokens import SubjectTokens

if TYPE_CHECKING:
    from pactgate.inbound.oauth.protected_resource import ProtectedResource

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})
_BEARER: Final = "bearer"
_SCHEMES: Final = frozenset({_BEARER, "dpop"})
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


_BAD_HOST: Final = AuthError(400, "The request needs exactly one Host header of the form `name` or `name:port`.")
_FOREIGN_HOST: Final = AuthError(421, "This gateway is not known under that Host; add it to listen.allowedHosts.")
_FOREIGN_ORIGIN: Final = AuthError(403, "Web pages of that origin may not call; add it to listen.allowedOrigins.")
_FOREIGN_USER: Final = AuthError(403, "This socket is for the user who started the gateway (listen.socketMode).")
_NO_CREDENTIALS: Final = AuthError(
    401, "A token is wanted: `Authorization: Bearer ...`.", b"WWW-Authenticate: Bearer\r\n"
)
_BAD_CREDENTIALS: Final = AuthError(401, "That token was not accepted.", INVALID_TOKEN, is_guess=True)


class Guard:
    """`host` and `port` are the address bound to, `hosts` and `origins` what the operator allows besides.

    `credentials` are the tokens of the configuration, `sources` what is asked about all other tokens, in this order. `users` says who a
    user id at the Unix socket is, None for one that may not call there. `resource` is there where identity providers are.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int | None = None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        credentials: Iterable[Credential] = (),
        sources: Iterable[CredentialSource] = (),
        resource: ProtectedResource | None = None,
        anonymous: bool = False,
        users: Callable[[int], Principal | None] | None = None,
        console: ConsoleSessions | None = None,
        tokens: SubjectTokens | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`tokens` are told the access tokens that servers need, too."""
        named = {name.lower() for name in hosts}
        is_everywhere = host in _EVERYWHERE and not named
        # Bound to every address without a list of names, a foreign name can't be told from one of ours. That is no danger where a token
        # is required, which a page that rebinds its name does not have (D18). Elsewhere only addresses are taken: they can't be rebound.
        self._any_host = is_everywhere and not anonymous
        self._any_address = is_everywhere
        own = {f"[{host.lower()}]" if ":" in host else host.lower()} - _EVERYWHERE
        self._hosts = frozenset(_LOOPBACK | own | named)
        self._port = port
        self._origins = frozenset(origin.lower() for origin in origins)
        configured = ConfiguredTokens(credentials, wall)
        self._sources: tuple[CredentialSource, ...] = (*([configured] if configured else []), *sources)
        self._tokens = tokens
        self.resource = resource
        self._known = AdmissionMemory(at for source in self._sources for at in source.expiries())
        self._anonymous = Principal(ANONYMOUS, kind=PrincipalKind.ANONYMOUS) if anonymous else None
        self._users = users
        self._console = console
        self.wall = wall
        self._judged_host = lru_cache(maxsize=256)(self._judge_host)
        self._judged_origin = lru_cache(maxsize=256)(self._judge_origin)

    # -- where a request comes from

    def check_source(self, headers: Headers) -> AuthError | None:
        """Check Host and Origin."""
        refusal = self.check_host(headers)
        if refusal is not None:
            return refusal
        origins = headers.get("origin")
        if origins is None:
            return None
        if len(origins) != 1 or len(origins[0]) > _MAX_ORIGIN_CHARS:
            return _FOREIGN_ORIGIN
        return None if self._judged_origin(origins[0], headers["host"][0]) else _FOREIGN_ORIGIN

    def check_host(self, headers: Headers) -> AuthError | None:
        hosts = headers.get("host")
        if hosts is None or len(hosts) != 1 or len(hosts[0]) > _MAX_HOST_CHARS:
            return _BAD_HOST
        return self._judged_host(hosts[0])

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

    # -- whose request it is

    def identify(self, exchange: HttpExchange) -> Principal | AuthError | PendingCheck:
        """Whose request it is, now. A token that is sent must be good, also where none is needed, unless none can be."""
        found = self._find(exchange)
        return _check(found, exchange) if isinstance(found, Admission) else found

    async def settle(self, exchange: HttpExchange, pending: PendingCheck) -> Principal | AuthError:
        """Whose request it is, when the one who had to be asked has answered."""
        found = await self.recheck(exchange.headers, pending)
        return _check(found, exchange) if isinstance(found, Admission) else found

    async def recheck(self, headers: Headers, pending: PendingCheck) -> Admission | AuthError:
        """The same without what a request must show beside its credentials."""
        found = await pending.wait()
        token = _token(headers)
        if isinstance(found, Admission) and token is not None:
            self._known.put(_digest(token), found, self.wall())
            self._note(found, token)
        return found

    def _note(self, found: Admission, token: str) -> None:
        if self._tokens is not None:
            self._tokens.note(found.principal, token)

    def find(self, exchange: HttpExchange) -> Principal | AuthError | PendingCheck:
        """Whose credentials these are, now, without what a request must show beside them."""
        found = self._find(exchange)
        return found.principal if isinstance(found, Admission) else found

    def holders(self) -> frozenset[Principal]:
        """Everybody who can be listed and may call now."""
        listed = {one for source in self._sources for one in source.holders()}
        return frozenset(listed if self._anonymous is None else {*listed, self._anonymous})

    def admits(self, principal: Principal) -> bool:
        """Whether a principal that can't be listed may still call, if it has a token."""
        if principal.kind is PrincipalKind.SOCKET:
            return self._users is not None and self._users(int(principal.subject)) == principal
        return any(source.admits(principal) for source in self._sources)

    def next_expiry(self) -> float | None:
        """The wall clock time at which the next token expires or has to be checked again."""
        ends = [self._known.next_expiry(self.wall()), None if self._console is None else self._console.next_expiry()]
        return min((end for end in ends if end is not None), default=None)

    def forget(self) -> set[Principal]:
        """Forget every token that was admitted, so that the sources are asked again. Returns whose they were."""
        return self._known.clear()

    def _find(self, exchange: HttpExchange) -> Admission | Principal | AuthError | PendingCheck:
        headers = exchange.headers
        if self._console is not None and CONSOLE_HEADER in headers:
            return self._find_console(self._console, exchange)
        if "authorization" not in headers or not self._sources:
            if exchange.user is not None and self._users is not None:
                return self._users(exchange.user) or _FOREIGN_USER
            return self._anonymous or _NO_CREDENTIALS
        return self._find_token(headers)

    def _find_console(
        self, console: ConsoleSessions, exchange: HttpExchange
    ) -> Admission | Principal | AuthError | PendingCheck:
        """Whose console it is. A session ends with the credential it was opened with."""
        found = console.find(exchange)
        if found is None:
            return self._find_token(exchange.headers)
        if isinstance(found, AuthError) or found.principal == OPERATOR:
            return found
        one = found.principal
        return found if any(one in source.holders() or source.admits(one) for source in self._sources) else SIGNED_OUT

    def _find_token(self, headers: Headers) -> Admission | AuthError | PendingCheck:
        token = _token(headers)
        return _BAD_CREDENTIALS if token is None else self._find_holder(token, headers)

    async def find_holder(self, token: str) -> Admission | AuthError:
        """Whose token somebody shows who does not call with it."""
        found = self._find_holder(token, {})
        return (
            await self.recheck({"authorization": [f"Bearer {token}"]}, found)
            if isinstance(found, PendingCheck)
            else found
        )

    def credential_end(self, headers: Headers) -> float:
        """The wall clock time at which the token of a request that was admitted just now ends."""
        token = _token(headers)
        known = None if token is None else self._known.get(_digest(token), self.wall())
        return math.inf if known is None else known.credential_ends_at

    def _find_holder(self, token: str, headers: Headers) -> Admission | AuthError | PendingCheck:
        digest, now = _digest(token), self.wall()
        known = self._known.get(digest, now)
        if known is not None:
            self._note(known, token)
            return known
        for source in self._sources:
            found = source.find(token, digest, headers)
            if isinstance(found, Admission):
                self._known.put(digest, found, now)
                self._note(found, token)
            if found is not None:
                return found
        return _BAD_CREDENTIALS

    # -- what headers mean

    def _judge_host(self, host: str) -> AuthError | None:
        match = _HOST.fullmatch(host)
        if match is None or int(match["port"] or 0) > 65535:
            return _BAD_HOST
        if self._any_host or self._is_allowed(match) or (self._any_address and _is_address(match["name"])):
            return None
        return _FOREIGN_HOST

    def _judge_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may call: a listed one, or one of our own address and port.

        Our own is also the one a page of ours has behind a forwarded port or a proxy: the Host of its own requests.
        """
        if origin.lower() in self._origins:
            return True
        match = _ORIGIN.fullmatch(origin)
        authority = _HOST.fullmatch(match[1]) if match else None
        if authority is None or int(authority["port"] or 0) > 65535 or not self._is_allowed(authority):
            return False
        default = 443 if origin.startswith("https:") else 80
        return authority[0].lower() == host.lower() or int(authority["port"] or default) == self._port

    def _is_allowed(self, authority: re.Match[str]) -> bool:
        """A listed name allows any port, as forwarded ports are common; a listed `name:port` only itself."""
        return authority["name"].lower() in self._hosts or authority[0].lower() in self._hosts


def cors_head(headers: Headers) -> bytes:
    """Header lines that every answer to a page of an admitted origin carries."""
    origins = headers.get("origin")
    if origins is None:
        return b""
    return (
        b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n"
        b"Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate\r\n" % origins[0].encode()
    )


def credentials_of(config: Config, generated_token: str | None = None) -> list[Credential]:
    """The tokens of a configuration, and the one that was made for this run, if it is needed."""
    credentials = [
        Credential(token_digest(value.text), Principal(name, frozenset(entry.roles)), value.expires_at)
        for name, entry in config.auth.tokens.items()
        for value in entry.values()
    ]
    if generated_token is not None and config.needs_token:
        credentials.append(Credential(token_digest(generated_token), Principal(GENERATED)))
    return credentials


def _token(headers: Headers) -> str | None:
    """The access token of a request, if it has exactly one."""
    sent = headers["authorization"]
    scheme, _, token = sent[0].partition(" ")
    return token.strip(" ") if len(sent) == 1 and scheme.lower() in _SCHEMES else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _check(found: Admission, exchange: HttpExchange) -> Principal | AuthError:
    if found.check is not None:
        return found.check(exchange) or found.principal
    # A token that is not bound to a key must not look as if it were (RFC 9449, 7.2).
    return found.principal if exchange.headers["authorization"][0][:6].lower() == _BEARER else _BAD_CREDENTIALS


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
