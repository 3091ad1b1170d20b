"""Builds the body of a request to a REST API from arguments: JSON, forms, text, bytes.

JSON is assembled from the bytes of the client, so that numbers stay as they are. Pure: a multipart boundary is the hash of the parts,
which no part can contain. Must not: send null for an absent argument. Enforces requirement 3.5 for bodies.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

import msgspec
from msgspec import Raw

from pactgate.protocol.messages import encode_json
from pactgate.upstreams.rest.parameter_styles import UnwritableError, text_of

_items: Final = msgspec.json.Decoder(list[Raw])
_UNSAFE_NAME: Final = re.compile(r'[\r\n"\x00]')
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


class EncodedBody(msgspec.Struct, frozen=True):
    """A body and its media type."""

    content_type: str
    data: bytes


def is_json(media_type: str) -> bool:
    return media_type in ("application/json", "text/json") or media_type.endswith("+json")


def from_members(content_type: str, members: Mapping[str, Raw]) -> EncodedBody:
    """A body with these properties."""
    media_type = essence(content_type)
    if media_type == FORM:
        return EncodedBody(content_type, _form(members))
    if media_type == MULTIPART:
        return _multipart(members)
    return EncodedBody(content_type, encode_json(members))


def from_whole(content_type: str, schema: Mapping[str, Any], raw: Raw) -> EncodedBody:
    """A body that is one argument."""
    media_type = essence(content_type)
    if is_json(media_type):
        return EncodedBody(content_type, bytes(raw))
    if media_type in (FORM, MULTIPART):
        if not bytes(raw).startswith(b"{"):
            raise UnwritableError("must be an object to be sent as a form")
        return from_members(content_type, msgspec.json.decode(raw, type=dict[str, Raw]))
    return EncodedBody(content_type, _plain(schema, raw))


def essence(content_type: str) -> str:
    """A media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def _plain(schema: Mapping[str, Any], raw: Raw) -> bytes:
    text = text_of(raw)
    if schema.get("contentEncoding") != "base64" and schema.get("format") not in ("byte", "binary"):
        return text.encode()
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UnwritableError("is not base64, as its schema requires") from None


def _form(members: Mapping[str, Raw]) -> bytes:
    pairs = (f"{quote_plus(name)}={quote_plus(text)}" for name, held in members.items() for text in _texts(held))
    return "&".join(pairs).encode("ascii")


def _texts(raw: Raw) -> list[str]:
    """The strings of one form property: each item of an array by itself, an object as JSON."""
    held = bytes(raw)
    if held == b"null":
        return []
    if held.startswith(b"["):
        return [text for item in _items.decode(raw) for text in _texts(item)]
    return [held.decode()] if held.startswith(b"{") else [text_of(raw)]


def _multipart(members: Mapping[str, Raw]) -> EncodedBody:
    parts: list[bytes] = []
    for name, held in members.items():
        if _UNSAFE_NAME.search(name):
            raise UnwritableError("has a name that is not allowed in a form")
        kind = "Content-Type: application/json\r\n" if bytes(held).startswith(b"{") else ""
        head = f'Content-Disposition: form-data; name="{name}"\r\n{kind}\r\n'
        parts.extend(f"{head}{text}\r\n".encode() for text in _texts(held))
    boundary = hashlib.sha256(b"\x00".join(parts)).hexdigest()[:48].encode()
    body = b"".join(b"--%b\r\n%b" % (boundary, part) for part in parts) + b"--%b--\r\n" % boundary
    return EncodedBody(f"{MULTIPART}; boundary={boundary.decode()}", body)
