"""Where credentials are looked up: the interface of a source, and the tokens of the configuration.

A guard asks its sources in order. A source knows its own credentials by their form or digest, and says nothing about others. The guard
remembers what a source admits, by the digest of the token. Must not: keep a token, or wait. A credential about which somebody else has to
be asked is a `PendingCheck`: its request waits, the gateway does not.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from pactgate.core.principal import Principal
from pactgate.inbound.request_head import Headers

if TYPE_CHECKING:
    from pactgate.inbound.http_exchange import HttpExchange


class AuthError(Struct, frozen=True):
    """Why a request is refused, and the header lines its answer needs. `is_guess`: it had credentials, and they were wrong."""

    status: int
    message: str
    head: bytes = b""
    is_guess: bool = False
    reason: str = ""
    """For the log, where it says more than the client is told."""


INVALID_TOKEN: Final = b'WWW-Authenticate: Bearer error="invalid_token"\r\n'
EXPIRED: Final = AuthError(401, "That token has expired.", INVALID_TOKEN)


class Admission(Struct, frozen=True):
    """Whose credential it is, and the wall clock time from which it has to be checked again."""

    principal: Principal
    expires_at: float = math.inf
    check: Callable[[HttpExchange], AuthError | None] | None = None
    """What each request must show beside the credential, which may be used by others otherwise."""
    later_end: float | None = None
    """When the credential itself ends, where that is not when it has to be checked again."""

    @property
    def credential_ends_at(self) -> float:
        return self.expires_at if self.later_end is None else self.later_end


class PendingCheck(Struct, frozen=True):
    """A credential about which somebody else has to be asked. `wait` is bounded and shared by equal requests; it never raises."""

    wait: Callable[[], Awaitable[Admission | AuthError]]


class CredentialSource(Protocol):
    """One kind of credentials. `digest` is the SHA-256 of the token."""

    def find(self, token: str, digest: bytes, headers: Headers) -> Admission | AuthError | PendingCheck | None:
        """Whose token it is; None where it is none of this source."""

    def holders(self) -> Iterable[Principal]:
        """Everybody who may call now, as far as the source can list them. Whoever leaves this list is gone, with all its sessions."""

    def admits(self, principal: Principal) -> bool:
        """Whether a principal that the source can't list could still call, if it had a token."""

    def expiries(self) -> Iterable[float]:
        """The wall clock times at which credentials expire, as far as the source can list them."""


class Credential(Struct, frozen=True):
    """The digest of one token, whose it is, and the wall clock time from which it is refused."""

    digest: bytes
    principal: Principal
    expires_at: float = math.inf


class ConfiguredTokens:
    """The tokens of the configuration (`CredentialSource`)."""

    def __init__(self, credentials: Iterable[Credential], wall: Callable[[], float]) -> None:
        self._credentials = {one.digest: one for one in credentials}
        self._wall = wall

    def __bool__(self) -> bool:
        return bool(self._credentials)

    def find(self, token: str, digest: bytes, headers: Headers) -> Admission | AuthError | None:
        found = self._credentials.get(digest)
        if found is None:
            return None
        return Admission(found.principal, found.expires_at) if found.expires_at > self._wall() else EXPIRED

    def holders(self) -> frozenset[Principal]:
        now = self._wall()
        return frozenset(one.principal for one in self._credentials.values() if one.expires_at > now)

    def admits(self, principal: Principal) -> bool:
        return False

    def expiries(self) -> list[float]:
        return [one.expires_at for one in self._credentials.values() if one.expires_at < math.inf]
