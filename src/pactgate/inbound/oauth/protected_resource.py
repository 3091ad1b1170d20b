"""What the gateway says about itself to clients that look for a token: metadata (RFC 9728) and challenges (RFC 6750, 3).

`/mcp`, `/mcp/{server}` and `/mcp/v/{view}` are resources of their own, so that a token can be for one of them. Must not: name a server that
a client could not have named itself, or read tokens.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from pactgate.config.sections.auth import Auth
from pactgate.config.value_checks import SERVER_ID, SERVER_ID_MAX
from pactgate.core.principal import Principal
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.oauth.proofs import ALGORITHMS
from pactgate.policy.scopes import ScopePolicy

_MCP: Final = "/mcp"
_BELOW: Final = re.compile(rf"(?:v/)?(?=[^/]{{1,{SERVER_ID_MAX}}}$){SERVER_ID[1:]}")
"""A server, or a view."""
_PLAIN: Final = re.compile(r"/[a-z0-9/-]{0,100}")
PATH: Final = "/.well-known/oauth-protected-resource"


class ProtectedResource:
    """`auth.resource` of the settings, or the address that a client used."""

    def __init__(self, auth: Auth) -> None:
        parts = urlsplit(auth.resource or "")
        self._origin = f"{parts.scheme}://{parts.netloc}" if auth.resource else ""
        self._path = parts.path.rstrip("/") if auth.resource else _MCP
        self._issuers = [one.issuer for one in auth.issuers]
        modes = {one.dpop for one in auth.issuers}
        self._has_proofs, self._needs_proofs = modes != {"off"}, modes == {"required"}
        self._read = ScopePolicy(auth.scopes).read

    def url_of(self, exchange: HttpExchange) -> str:
        """The URL of a request, as its client wrote it."""
        path = exchange.path
        return self._origin_of(exchange) + (self._path + path.removeprefix(_MCP) if _is_mcp(path) else path)

    def metadata(self, exchange: HttpExchange) -> dict[str, Any] | None:
        """The document at this path; None where there is none."""
        rest = exchange.path.removeprefix(PATH)
        part = ""
        if rest not in ("", _MCP, self._path):
            below = (rest.removeprefix(f"{path}/") for path in (self._path, _MCP) if rest.startswith(f"{path}/"))
            part = next((one for one in below if _BELOW.fullmatch(one)), "")
            if not part:
                return None
        facts: dict[str, Any] = {
            "resource": self._origin_of(exchange) + self._path + (f"/{part}" if part else ""),
            "authorization_servers": self._issuers,
            # What is needed to begin; more is asked for when a tool needs it.
            "scopes_supported": [self._read.name],
            "bearer_methods_supported": ["header"],
            "resource_name": f"Pactgate: {part}" if part else "Pactgate",
        }
        if self._has_proofs:
            facts["dpop_signing_alg_values_supported"] = list(ALGORITHMS)
        if self._needs_proofs:
            facts["dpop_bound_access_tokens_required"] = True
        return facts

    def where(self, exchange: HttpExchange) -> bytes:
        """The parameter of a challenge that leads to the metadata."""
        path = exchange.path
        rest = self._path + path.removeprefix(_MCP) if _is_mcp(path) and _PLAIN.fullmatch(path) else self._path
        return f'resource_metadata="{self._origin_of(exchange)}{PATH}{rest}"'.encode()

    def challenge(self, exchange: HttpExchange, head: bytes) -> bytes:
        """The header lines of a refusal, with what a client needs to get a token."""
        more = b'%b, scope="%b"' % (self.where(exchange), self._read.name.encode())
        lines = [
            line + (b", " if b"=" in line else b" ") + more if line.startswith(b"WWW-Authenticate:") else line
            for line in head.split(b"\r\n")
        ]
        return b"\r\n".join(lines)

    def may_read(self, principal: Principal) -> bool:
        return self._read.is_held_by(principal)

    def scope_refusal(self, exchange: HttpExchange) -> bytes:
        """The header line for who lacks the scope for what is no tool."""
        return b'WWW-Authenticate: Bearer error="insufficient_scope", scope="%b", %b\r\n' % (
            self._read.name.encode(),
            self.where(exchange),
        )

    def _origin_of(self, exchange: HttpExchange) -> str:
        return self._origin or f"http://{exchange.headers['host'][0]}"


def _is_mcp(path: str) -> bool:
    return path == _MCP or path.startswith(f"{_MCP}/")
