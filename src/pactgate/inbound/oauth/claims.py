"""The checks of an access token's claims (RFC 9068, 4; RFC 7662, 2.2), and the principal that they name.

The same for claims of a verified JWT and those of an introspection. Must not: trust claims that nobody vouched for; the caller sees to it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from pactgate.config.sections.oauth import Issuer
from pactgate.core.display import flat
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.oauth.quirks import ClaimNames
from pactgate.inbound.oauth.token_form import TokenRefusedError

MAX_LISTED: Final = 1000
_MAX_CHARS: Final = 300
_NOT_ACCESS: Final = frozenset({"ID", "Refresh", "Offline", "Logout"})
"""Values of the claim `typ` by which Keycloak tells its other tokens from access tokens."""
_OF_ID_TOKENS: Final = ("nonce", "at_hash", "c_hash", "s_hash")
_BELOW: Final = re.compile(r"(.+?)/((?:v/)?[^/]+)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Granted(Struct, frozen=True):
    """What a good token says."""

    principal: Principal
    expires_at: float | None
    """Its own `exp` with the clock skew; None where it has none."""
    part: str | None
    """What below `/mcp` it is for, where it is not for everything: `files` (a server), `v/desk` (a view)."""
    key_thumbprint: str | None
    """The key that its sender has to prove (RFC 9449, 6)."""


def check_claims(claims: dict[str, Any], issuer: Issuer, names: ClaimNames, now: float) -> Granted:
    """What the claims grant now. Raises `TokenRefusedError`."""
    expires_at = check_times(claims, issuer.clock_skew_ms / 1000, now)
    part = _check_audience(claims.get("aud"), issuer.audiences)
    _check_kind(claims, names)
    thumbprint = _check_binding(claims, issuer)
    return Granted(_principal(claims, issuer, names), expires_at, part, thumbprint)


def check_times(claims: dict[str, Any], skew_s: float, now: float) -> float | None:
    expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is not None and now >= expires + skew_s:
        raise TokenRefusedError(f"it expired {now - expires:.0f} s ago")
    if begins is not None and now < begins - skew_s:
        raise TokenRefusedError(f"it is not valid before {begins - now:.0f} s from now (nbf)")
    if issued is not None and now < issued - skew_s:
        raise TokenRefusedError(f"it was issued {issued - now:.0f} s from now (iat); compare the clocks")
    return None if expires is None else expires + skew_s


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise TokenRefusedError(f"{name} is not a time")
    return float(value)


def _check_audience(audience: Any, accepted: tuple[str, ...]) -> str | None:
    """What the token is for. A token for the gateway is one for each of its servers and views, but not the other way round."""
    named = [audience] if isinstance(audience, str) else audience
    if not isinstance(named, list) or not named or len(named) > MAX_LISTED:
        raise TokenRefusedError("it names no audience (aud)")
    if any(one in accepted for one in named if isinstance(one, str)):
        return None
    for one in named:
        found = _BELOW.fullmatch(one) if isinstance(one, str) else None
        if found is not None and found[1] in accepted:
            return found[2]
    shown = ", ".join(flat(str(one), 80) for one in named[:3])
    raise TokenRefusedError(f"its audience is {shown}, and none of those in `audiences`")


def _check_kind(claims: dict[str, Any], names: ClaimNames) -> None:
    kind = claims.get("typ")
    if isinstance(kind, str) and kind in _NOT_ACCESS:
        raise TokenRefusedError(f"it is a token of the kind {kind}, not an access token")
    if "events" in claims:
        raise TokenRefusedError("it is an event (RFC 8417), not an access token")
    has_scope = any(_claim(claims, name) is not None for name in names.scopes)
    if not has_scope and any(name in claims for name in _OF_ID_TOKENS):
        raise TokenRefusedError("it is an ID token, which tells the client who its user is, not an access token")


def _check_binding(claims: dict[str, Any], issuer: Issuer) -> str | None:
    confirmation = claims.get("cnf")
    if confirmation is None:
        if issuer.dpop == "required":
            raise TokenRefusedError("it is not bound to a key of its client, and `dpop` is required")
        return None
    thumbprint = confirmation.get("jkt") if isinstance(confirmation, dict) else None
    if not isinstance(thumbprint, str):
        raise TokenRefusedError("it is bound to something else than a DPoP key (cnf), which can't be checked here")
    if issuer.dpop == "off":
        raise TokenRefusedError("it is bound to a key of its client, and `dpop` is off")
    return thumbprint


def subject_of(claims: dict[str, Any], names: ClaimNames) -> str:
    """Whom the claims are about."""
    subject = next((found for name in names.subject.split("|") if (found := _claim(claims, name)) is not None), None)
    if not isinstance(subject, str) or not subject or len(subject) > _MAX_CHARS or _CONTROL.search(subject):
        raise TokenRefusedError(f"{names.subject} does not name a subject")
    return subject


def _principal(claims: dict[str, Any], issuer: Issuer, names: ClaimNames) -> Principal:
    subject = subject_of(claims, names)
    client = next((found for name in names.client_id if isinstance(found := _claim(claims, name), str)), "")
    return Principal(
        principal_key(issuer.issuer, subject),
        kind=PrincipalKind.OAUTH,
        issuer=issuer.issuer,
        subject=subject,
        client_id=client[:_MAX_CHARS],
        groups=frozenset(one for name in names.groups for one in _words(claims, name, is_list=True)),
        scopes=frozenset(one for name in names.scopes for one in _words(claims, name, is_list=False)),
    )


def principal_key(issuer: str, subject: str) -> str:
    """Neither part can have a NUL, so no two principals share a key."""
    return f"{issuer}\0{subject}"


def _words(claims: dict[str, Any], name: str, *, is_list: bool) -> list[str]:
    value = _claim(claims, name)
    if isinstance(value, str):
        value = [value] if is_list else value.split(" ")
    words = [one for one in value if isinstance(one, str) and one] if isinstance(value, list) else []
    if len(words) > MAX_LISTED or any(len(one) > _MAX_CHARS for one in words):
        raise TokenRefusedError(
            f"{name} has more than {MAX_LISTED} entries, or one of more than {_MAX_CHARS} characters"
        )
    return words


def _claim(claims: dict[str, Any], name: str) -> Any:
    """A claim by its name, else by a path with dots: names may be URLs, which have dots themselves."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
