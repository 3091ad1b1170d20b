"""API keys as credentials (`CredentialSource`): found by id, compared in constant time.

A key without the form of one, or with a wrong checksum, is refused before anything is looked up. Notes which keys were used, for the file
to say on which day. Must not: read a file, or keep a key.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable

from pactgate.core.api_key import PREFIX, read_id
from pactgate.core.principal import OF_KEYS, Principal, PrincipalKind
from pactgate.inbound.credentials import EXPIRED, INVALID_TOKEN, Admission, AuthError
from pactgate.inbound.request_head import Headers
from pactgate.state.key_file import KeyRing

_NOT_ACCEPTED = AuthError(401, "That API key was not accepted.", INVALID_TOKEN, is_guess=True)


class ApiKeys:
    """The keys of one state of the file; None is a file that does not exist. `used` has the ids of keys that were accepted."""

    def __init__(self, ring: KeyRing | None, wall: Callable[[], float]) -> None:
        self.used: set[str] = set()
        self._wall = wall
        self._pepper = b"" if ring is None else bytes.fromhex(ring.pepper)
        self._keys = {
            key.id: (
                bytes.fromhex(key.digest),
                Admission(_principal(key.name, key.groups, key.roles), _end(key.expires)),
            )
            for key in (() if ring is None else ring.keys)
        }

    def find(self, token: str, digest: bytes, headers: Headers) -> Admission | AuthError | None:
        if not token.startswith(PREFIX):
            return None
        id_ = read_id(token)
        known = None if id_ is None else self._keys.get(id_)
        if id_ is None or known is None:
            return _NOT_ACCEPTED
        expected, admission = known
        if not hmac.compare_digest(expected, hmac.digest(self._pepper, token.encode(), "sha256")):
            return _NOT_ACCEPTED
        if admission.expires_at <= self._wall():
            return EXPIRED
        self.used.add(id_)
        return admission

    def holders(self) -> frozenset[Principal]:
        now = self._wall()
        return frozenset(admission.principal for _, admission in self._keys.values() if admission.expires_at > now)

    def admits(self, principal: Principal) -> bool:
        """Every key can be listed."""
        return False

    def expiries(self) -> list[float]:
        return [admission.expires_at for _, admission in self._keys.values() if admission.expires_at < math.inf]


def _principal(name: str, groups: tuple[str, ...], roles: tuple[str, ...]) -> Principal:
    """The name is the caller: a key that replaces another one is the same."""
    return Principal(
        f"key:{name}",
        kind=PrincipalKind.KEY,
        issuer=OF_KEYS,
        subject=name,
        roles=frozenset(roles),
        groups=frozenset(groups),
    )


def _end(expires: int | None) -> float:
    return math.inf if expires is None else float(expires)
