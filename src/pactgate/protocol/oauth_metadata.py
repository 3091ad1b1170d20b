"""Where an authorization server publishes what it says of itself (RFC 8414, OpenID Connect Discovery). Pure.

Both directions need it: the gateway as a resource server, and as a client of servers that want a sign-in. Must not: fetch anything.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an issuer may be (RFC 8414, 3.1 and 5; OpenID Connect Discovery, 4)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = (f"{origin}{_AUTHORIZATION_SERVER}{path}", f"{origin}{_OPENID}{path}")
    return (*inserted, f"{origin}{path}{_OPENID}") if path else inserted
