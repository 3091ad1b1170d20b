"""What a server asks for when it refuses a request: the `WWW-Authenticate` header (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1). Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_MAX_CHARS: Final = 8192
_SCHEME: Final = re.compile(r"(?:^|,)\s*(bearer|dpop)\s+(?=[a-z_]+\s*=)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r'\s*([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
_MAX_SCOPES: Final = 100


class Challenge(Struct, frozen=True):
    """The parameters that matter of a challenge; each is empty where the server did not send it."""

    resource_metadata: str = ""
    scopes: tuple[str, ...] = ()
    error: str = ""


def read_challenge(header: str) -> Challenge:
    """The challenge in a header. One that can't be read is one without parameters."""
    header = header[:_MAX_CHARS]
    found = _SCHEME.search(header)
    members: dict[str, str] = {}
    at = found.end() if found else len(header)
    while (parameter := _PARAMETER.match(header, at)) is not None:
        quoted, plain = parameter.group(2), parameter.group(3)
        members.setdefault(parameter.group(1).lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = parameter.end()
    return Challenge(
        members.get("resource_metadata", ""), split_scopes(members.get("scope", "")), members.get("error", "")
    )


def split_scopes(text: str) -> tuple[str, ...]:
    """The scopes of a list with blanks (RFC 6749, 3.3), each once, in their order."""
    found = dict.fromkeys(one for one in text.split(" ") if _SCOPE.fullmatch(one))
    return tuple(found)[:_MAX_SCOPES]
