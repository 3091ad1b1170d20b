"""The section `auth`: who may call, and with which tokens.

A holder has a name, roles, and one token or several, each perhaps with a date at which it expires. A token is written as itself or as its
SHA-256 digest. Must not: compare tokens, or read a clock beyond warning about tokens that have expired already.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path, ValueFault, show
from pactgate.config.sections import Folder, Section, doc
from pactgate.config.sections.oauth import Issuer, ProviderUrl, Scopes, check_oauth

HASHED: Final = "sha256:"
"""Begins a token that is written as its digest."""
ANONYMOUS: Final = "anonymous"
"""The subject of clients without a token."""
GENERATED: Final = "generated"
"""The subject of clients with the token that was made for one run."""
LOCAL: Final = "local"
"""The subject of the client on stdio."""
LIBRARY: Final = "library"
"""The subject of the program that holds the gateway."""
RESERVED: Final = frozenset({ANONYMOUS, GENERATED, LOCAL, LIBRARY})
MIN_TOKEN_BITS: Final = 80
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}")
_GENERATE: Final = "Generate one with: openssl rand -hex 32."
_ALPHABETS: Final = (
    (re.compile(r"[0-9]+"), 10),
    (re.compile(r"[0-9a-f]+|[0-9A-F]+"), 16),
    (re.compile(r"[a-z]+|[A-Z]+"), 26),
    (re.compile(r"[0-9a-z]+|[0-9A-Z]+"), 36),
    (re.compile(r"[0-9A-Za-z_-]+"), 64),
)
_VISIBLE_ASCII: Final = 94


def check_token(text: str) -> ValueFault | None:
    """A token, or its digest as `sha256:` and 64 hexadecimal digits."""
    if not text.startswith(HASHED):
        return value_checks.check_token(text)
    if _DIGEST.fullmatch(text.removeprefix(HASHED)):
        return None
    hint = "Make it with: printf %s TOKEN | sha256sum."
    return ValueFault(f"A digest is {HASHED} and 64 hexadecimal digits.", hint)


def token_digest(text: str) -> bytes:
    """The digest of a token as configured, written as itself or as its digest."""
    if text.startswith(HASHED):
        return bytes.fromhex(text.removeprefix(HASHED))
    return hashlib.sha256(text.encode()).digest()


def check_expiry(text: str) -> ValueFault | None:
    if math.isnan(expiry_time(text)):
        hint = "Write the last day it is valid (UTC) as 2026-12-31, or a time as 2026-12-31T18:00:00Z."
        return ValueFault(f"{show(text)} is not a date.", hint)
    return None


def expiry_time(text: str) -> float:
    """The wall clock time from which a token is refused. A date counts to the end of its day, in UTC. NaN when it can't be read."""
    try:
        if "T" not in text:
            day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
            return (day + timedelta(days=1)).timestamp()
        moment = datetime.fromisoformat(text)
        return math.nan if moment.tzinfo is None else moment.timestamp()
    except (ValueError, OverflowError):
        return math.nan


def token_bits(text: str) -> float:
    """How many random bits a token has at most. Repetition and runs such as `aaaa` or `1234` count once."""
    period = (text + text).find(text, 1)
    text = text[:period]
    steps = sum(abs(ord(one) - ord(other)) > 1 for one, other in pairwise(text))
    alphabet = next((size for pattern, size in _ALPHABETS if pattern.fullmatch(text)), _VISIBLE_ASCII)
    return (steps + 1) * math.log2(alphabet)


SecretToken = Annotated[
    str, Meta(min_length=1, max_length=500, extra={"expand": True, "secret": True, "check": check_token})
]
Expiry = Annotated[str, Meta(min_length=1, max_length=40, extra={"check": check_expiry})]
ROLES: Final = ("admin",)
"""Every role that something refers to."""
Role = Annotated[str, Meta(max_length=50, pattern="^[a-z][a-z0-9_-]*$")]
TokenName = Annotated[str, Meta(max_length=50, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class TokenValue(NamedTuple):
    """A token as configured: itself or its digest, and from when on it is refused."""

    text: str
    expires_at: float


class RotatingToken(Section, frozen=True, kw_only=True):
    """One of several tokens of a holder."""

    token: Annotated[SecretToken, doc("The token itself, best as `${VARIABLE}`, or its digest, as `sha256:...`.")]
    expires: Annotated[
        Expiry | None, doc("Last day (UTC) or time it is valid: `2026-12-31` or `2026-12-31T18:00:00Z`.")
    ] = None

    def __repr__(self) -> str:
        return f"RotatingToken(expires={self.expires!r})"


class Token(Section, frozen=True, kw_only=True):
    """One holder: its token, or its tokens while they are being replaced, and what it may do."""

    token: Annotated[
        SecretToken | None,
        doc("The token itself, best as `${VARIABLE}` or `${file:/run/secrets/x}`, or its digest, as `sha256:...`."),
    ] = None
    expires: Annotated[
        Expiry | None, doc("Last day (UTC) or time `token` is valid: `2026-12-31` or `2026-12-31T18:00:00Z`.")
    ] = None
    tokens: Annotated[
        tuple[RotatingToken, ...],
        doc(
            "Several tokens instead of `token`, such as an old and a new one while clients change over.", max_length=10
        ),
    ] = ()
    roles: Annotated[tuple[Role, ...], doc("Roles of its holder; `admin` may manage the gateway.", max_length=20)] = ()

    def values(self) -> tuple[TokenValue, ...]:
        """Every token of the holder, expired ones included."""
        given = [
            *([(self.token, self.expires)] if self.token else []),
            *((one.token, one.expires) for one in self.tokens),
        ]
        return tuple(TokenValue(text, math.inf if until is None else expiry_time(until)) for text, until in given)

    def __repr__(self) -> str:
        return f"Token(roles={self.roles!r})"


class Auth(Section, frozen=True, kw_only=True):
    """Who may call. A reload applies it at once, to what is open too."""

    anonymous: Annotated[
        bool | None,
        doc("Whether clients without a token are served. Default: only on loopback, and without tokens."),
    ] = None
    tokens: Annotated[dict[TokenName, Token], doc("Tokens by the name of their holder.", max_length=1000)] = {}
    keys: Annotated[
        Folder | None,
        doc(
            "File of the API keys that `pactgate keys` makes. Default: beside the configuration, with its name and the "
            "ending `.keys`. Where the file exists, or is named here, clients need a token or key."
        ),
    ] = None
    resource: Annotated[
        ProviderUrl | None,
        doc(
            "URL of `/mcp` as clients reach it, such as `https://gateway.example/mcp`; they ask their identity provider "
            "for tokens for it, and browsers open the links of `/connect` beside it. Default: the address of the gateway, where "
            "only this machine can reach it."
        ),
    ] = None
    issuers: Annotated[
        tuple[Issuer, ...], doc("Identity providers (OAuth 2.1) whose access tokens are accepted.", max_length=20)
    ] = ()
    scopes: Scopes = {}


def check_auth(auth: dict[str, Any], given: Any, found: ConfigFindings) -> None:
    """Check holders and their tokens against each other; warn about weak and expired tokens.

    `auth` has the valid values, `given` all of them, because an invalid token is not a missing one.
    """
    check_oauth(auth, given, found)
    holders: dict[str, str] = {}
    for name, holder in auth.get("tokens", {}).items():
        path: Path = ("auth", "tokens", name)
        _check_members(given["tokens"][name], path, found)
        if name in RESERVED:
            found.add(path, f"{show(name)} is the name of clients without a token of their own.", "Choose another.")
        _check_roles(holder.get("roles", ()), path, found)
        entries = [(path, holder), *(((*path, "tokens", at), one) for at, one in enumerate(holder.get("tokens", ())))]
        for place, one in entries:
            if "token" in one:
                _check_one(one, place, holders, name, found)


def _check_roles(roles: Sequence[str], path: Path, found: ConfigFindings) -> None:
    """A role that nothing refers to would let somebody believe that it restricts its holder."""
    for at, role in enumerate(roles):
        if role not in ROLES:
            hint = f"Roles: {', '.join(ROLES)}. A holder without a role may call every tool of every server."
            found.add((*path, "roles", at), f"Nothing refers to the role {show(role)}.", hint, at_value=True)


def _check_members(given: dict[str, Any], path: Path, found: ConfigFindings) -> None:
    has_one, has_several = given.get("token") is not None, bool(given.get("tokens"))
    if has_one and has_several:
        found.add((*path, "tokens"), "token and tokens are both given.", "Put the token into tokens.")
    elif not has_one and not has_several:
        found.add((*path, "token"), "This is missing.", "Add token, or tokens with several.")
    if given.get("expires") is not None and not has_one:
        hint = "Give each entry of tokens its own expires."
        found.add((*path, "expires"), "This has no effect without token.", hint)


def _check_one(one: dict[str, Any], path: Path, holders: dict[str, str], name: str, found: ConfigFindings) -> None:
    text: str = one["token"]
    first = holders.setdefault(token_digest(text).hex(), name)
    if first != name:
        message = f"{show(first)} has the same token."
        found.add((*path, "token"), message, "Give each holder its own.", at_value=True)
    if not text.startswith(HASHED) and token_bits(text) < MIN_TOKEN_BITS:
        found.warn((*path, "token"), "This token can be guessed.", _GENERATE, at_value=True)
    if expiry_time(one.get("expires", "9999-01-01")) <= time.time():
        found.warn(
            (*path, "expires"), "This token has expired.", "Remove it, or replace it by a new one.", at_value=True
        )
