"""What a recorder must know of a message: is it one at all, does it ask or answer, and with which id.

Nearly every message is one plain object, which is read in a single step; all else is read with care. Must not: keep anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.protocol import messages
from pactgate.protocol.json_limits import check_shape

Key = str | int | None
Mask = Callable[[bytes], bytes]
"""Takes secrets out of a message."""
_MAX_DEPTH: Final = 150


class MessageKind(Struct, gc=False):
    """One message or batch. `keys` has the id of each part, None for what is no legal id; `asked` those of the requests."""

    text: bytes
    keys: tuple[Key, ...]
    asked: tuple[Key, ...] = ()
    method: str = ""
    is_answer: bool = True
    wants_answer: bool = False


class _Plain(Struct, gc=False):
    id: Any = UNSET
    method: Any = UNSET


class _Part(Struct):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


_plain: Final = msgspec.json.Decoder(_Plain)
_one: Final = msgspec.json.Decoder(_Part)
_many: Final = msgspec.json.Decoder(list[_Part])


def classify(text: bytes, mask: Mask | None) -> MessageKind | None:
    """None for what is no message. Without `mask` there are no secrets in it."""
    if not text.startswith(b"{") or not text.isascii() or text.count(b"{") + text.count(b"[") > _MAX_DEPTH:
        return _look_with_care(text, mask)
    try:
        part = _plain.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _look_with_care(text, mask)
    key = part.id
    shown = text if mask is None else mask(text)
    if type(key) is not int and (type(key) is not str or not key.strip() or len(key) > messages.MAX_ID_BYTES):
        return _look_with_care(text, mask) if key is not UNSET else _without_id(shown, part.method)
    if part.method is UNSET:
        return MessageKind(shown, (key,))
    method = part.method if type(part.method) is str else ""
    return MessageKind(shown, (key,), (key,), method, False, True)


def batch_items(text: bytes) -> list[bytes]:
    """The messages of a batch; of a single message itself."""
    if text.lstrip()[:1] != b"[":
        return [text]
    return [bytes(part) for part in msgspec.json.decode(text, type=list[Raw])]


def _without_id(text: bytes, method: Any) -> MessageKind:
    if method is UNSET:
        return MessageKind(text, (None,))
    return MessageKind(text, (None,), (), method if type(method) is str else "", is_answer=False)


def _method(raw: bytes) -> str:
    name = messages.value(raw)
    return name if isinstance(name, str) else ""


def _look_with_care(text: bytes, mask: Mask | None) -> MessageKind | None:
    try:
        text.decode()
        parts = _many.decode(text) if text.lstrip()[:1] == b"[" else [_one.decode(text)]
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    if not parts or check_shape(text, _MAX_DEPTH) is not None:
        return None
    keys = tuple(None if part.id is UNSET else messages.id_key(bytes(part.id)) for part in parts)
    asking = [part.method is not UNSET for part in parts]
    first = parts[0].method
    return MessageKind(
        text if mask is None else mask(text),
        keys,
        tuple(key for key, asks in zip(keys, asking, strict=True) if asks and key is not None),
        "" if first is UNSET else _method(bytes(first)),
        is_answer=not any(asking),
        wants_answer=any(asks and part.id is not UNSET for asks, part in zip(asking, parts, strict=True)),
    )
