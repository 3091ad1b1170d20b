"""Reads the parts of a signed JWT (RFC 7515, 7519) without believing any of it.

Strict where two readers could disagree: no duplicate members, no padding, no other characters, no parts beyond three. Bounded in size.
Must not: verify anything, or put a part of a token into a message.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Final

from msgspec import Struct

MAX_TOKEN_CHARS: Final = 16 * 1024
_PART: Final = re.compile(r"[A-Za-z0-9_-]*")


class TokenRefusedError(Exception):
    """Why a token is not accepted, for the log. `is_guess`: somebody made it up."""

    def __init__(self, reason: str, *, is_guess: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_guess = is_guess


class SignedToken(Struct, frozen=True):
    """The parts of one token."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def is_jwt(token: str) -> bool:
    """Whether a token has the form of a JWT, signed or not; everything else is opaque."""
    return token.count(".") == 2 and token.startswith("eyJ")


def read_signed(token: str) -> SignedToken:
    if len(token) > MAX_TOKEN_CHARS:
        raise TokenRefusedError(f"it has more than {MAX_TOKEN_CHARS} characters")
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenRefusedError("it does not have the three parts of a JWT", is_guess=True)
    header, claims = (_object(decode_part(part)) for part in parts[:2])
    signed = f"{parts[0]}.{parts[1]}".encode()
    return SignedToken(header=header, claims=claims, signed=signed, signature=decode_part(parts[2]))


def decode_part(text: str) -> bytes:
    """Base64url without padding (RFC 7515, 2). One value has one spelling."""
    if not _PART.fullmatch(text):
        raise TokenRefusedError("a part of it is not base64url", is_guess=True)
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise TokenRefusedError("a part of it is not base64url", is_guess=True) from None
    if encode_part(data) != text:
        raise TokenRefusedError("a part of it is not base64url as it has to be written", is_guess=True)
    return data


def encode_part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _not_json() from None
    if not isinstance(value, dict):
        raise TokenRefusedError("a part of it is not a JSON object", is_guess=True)
    return value


def _not_json() -> TokenRefusedError:
    return TokenRefusedError("a part of it is not JSON", is_guess=True)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise TokenRefusedError("a part of it has a member twice", is_guess=True)
    return members


def _no_constant(name: str) -> None:
    raise _not_json()
