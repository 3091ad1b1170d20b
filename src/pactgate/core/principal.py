"""The principal: whoever calls, as its credentials say.

Rates, cache, sessions, handles, audit and call history are kept under its `key`, which is made of issuer and subject and never of a token:
a refreshed token is the same caller (D23). What it may do (`roles`, `groups`, `scopes`) is read from the principal of the request at hand,
so a right that was taken away is gone at once. Must not: hold a credential.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

OF_KEYS: Final = "keys"
OF_SOCKET: Final = "socket"
"""The issuers of principals for whom the gateway itself vouches; every other issuer is a URL."""


class PrincipalKind(StrEnum):
    """By what a principal is known."""

    ANONYMOUS = "anonymous"
    LOCAL = "local"
    """It started the gateway, or holds it as a library."""
    TOKEN = "token"
    KEY = "key"
    OAUTH = "oauth"
    SOCKET = "socket"


class Principal(Struct, frozen=True):
    """`scopes` is None where scopes do not limit it: only tokens of an identity provider have them."""

    key: str
    roles: frozenset[str] = frozenset()
    kind: PrincipalKind = PrincipalKind.TOKEN
    issuer: str = ""
    subject: str = ""
    client_id: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] | None = None

    @property
    def shown(self) -> str:
        """The key as people and files see it: a NUL can't stand there, and no issuer has a `#`."""
        return self.key.replace("\0", "#") if self.issuer else self.key
