"""What a recorder must know of a message: whether it is JSON-RPC at all, whether it asks or answers, and its ids.

Nearly every message is one plain ASCII object, which a fast path reads in a single step. All else is read with full checks.
Must not: keep anything.
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
"""Removes secrets from a message."""
_MAX_DEPTH: Final = 150


class ClassifiedMessage(Struct, gc=False):
    """A message or batch. `keys` are the ids of its items, None where an id is not legal; `request_keys` those of requests."""

    data: bytes
    keys: tuple[Key, ...]
    request_keys: tuple[Key, ...] = ()
    method: str = ""
    is_response: bool = True
    expects_response: bool = False


class _Plain(Struct, gc=False):
    id: Any = UNSET
    method: Any = UNSET


class _Item(Struct):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


_plain: Final = msgspec.json.Decoder(_Plain)
_item: Final = msgspec.json.Decoder(_Item)
_batch: Final = msgspec.json.Decoder(list[_Item])


def classify(data: bytes, mask: Mask | None) -> ClassifiedMessage | None:
    """None for data that is not a message. Without `mask` the data is known to hold no secrets."""
    if not data.startswith(b"{") or not data.isascii() or _may_be_deep(data):
        return _classify_any(data, mask)
    try:
        message = _plain.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _classify_any(data, mask)
    key = message.id
    shown = data if mask is None else mask(data)
    if type(key) is not int and (type(key) is not str or not key.strip() or len(key) > messages.MAX_ID_BYTES):
        return _classify_any(data, mask) if key is not UNSET else _without_id(shown, message.method)
    if message.method is UNSET:
        return ClassifiedMessage(shown, (key,))
    method = message.method if type(message.method) is str else ""
    return ClassifiedMessage(shown, (key,), (key,), method, is_response=False, expects_response=True)


def batch_items(data: bytes) -> list[bytes]:
    """The messages of a batch. A single message is its own only item."""
    if data.lstrip()[:1] != b"[":
        return [data]
    return [bytes(item) for item in msgspec.json.decode(data, type=list[Raw])]


def _may_be_deep(data: bytes) -> bool:
    """Whether there are enough brackets to nest too deep. `replace` finds them three times as fast as `count`."""
    if len(data) <= 2 * _MAX_DEPTH:
        return False
    return 2 * len(data) - len(data.replace(b"{", b"")) - len(data.replace(b"[", b"")) > _MAX_DEPTH


def _without_id(data: bytes, method: Any) -> ClassifiedMessage:
    if method is UNSET:
        return ClassifiedMessage(data, (None,))
    return ClassifiedMessage(data, (None,), (), method if type(method) is str else "", is_response=False)


def _method(raw: bytes) -> str:
    name = messages.value(raw)
    return name if isinstance(name, str) else ""


def _classify_any(data: bytes, mask: Mask | None) -> ClassifiedMessage | None:
    try:
        data.decode()
        items = _batch.decode(data) if data.lstrip()[:1] == b"[" else [_item.decode(data)]
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    if not items or check_shape(data, _MAX_DEPTH) is not None:
        return None
    keys = tuple(None if item.id is UNSET else messages.id_key(bytes(item.id)) for item in items)
    has_method = [item.method is not UNSET for item in items]
    first = items[0].method
    return ClassifiedMessage(
        data if mask is None else mask(data),
        keys,
        tuple(key for key, asks in zip(keys, has_method, strict=True) if asks and key is not None),
        "" if first is UNSET else _method(bytes(first)),
        is_response=not any(has_method),
        expects_response=any(asks and item.id is not UNSET for asks, item in zip(has_method, items, strict=True)),
    )
