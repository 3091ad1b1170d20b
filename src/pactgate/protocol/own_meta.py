"""Members of `_meta` under the gateway's own prefix, which no server may set: removed from what a server sends.

A client reads `dev.pactgate/...` as the gateway's word, so a server must not be able to write it. The search is on bytes and cheap; only a
message that may hold such a name is taken apart. Must not: change structured content, schemas, arguments or texts, which are not ours to
read.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import UNSET, Raw

from pactgate.protocol import messages
from pactgate.protocol.json_limits import may_repeat_key
from pactgate.protocol.lone_surrogates import replace_lone_surrogates
from pactgate.protocol.messages import ErrorReply, InvalidAnswer, Message, Rejection, Response, encode_json
from pactgate.protocol.simple_result import SimpleResult

PREFIX: Final = "dev.pactgate/"
NAME: Final = b"dev.pactgate"
ESCAPE: Final = b"\\u00"
"""Begins every other spelling of an ASCII letter in a JSON string."""
_SEARCHED_BYTES: Final = 4096
"""Up to here searching a message costs less than a look at its parts."""
_FIRST_ITEM: Final = 1
"""Where the first item of an array begins."""
_MAX_DEPTH: Final = 12
"""Deeper than any `_meta` of the specification."""
_ERROR_DATA_DEPTH: Final = 2
_NOT_OURS: Final = frozenset({"structuredContent", "inputSchema", "outputSchema", "arguments", "requestedSchema"})
_items: Final = msgspec.json.Decoder(list[Raw])
_spelt: Final = re.compile(
    b"".join(rb"(?:%b|\\u00%02x)" % (re.escape(bytes([code])), code) for code in NAME), re.IGNORECASE
)
"""The name in any spelling a JSON string allows."""


def decode_without_own_meta(frame: bytes) -> Message | InvalidAnswer | Rejection:
    """As `decode_from_upstream`. Removing members reads the others in one way, so an answer with a key twice is refused here.

    A message that can't be read because of half a surrogate pair is read with U+FFFD in its place: better than to lose all of it.
    """
    message = messages.decode_from_upstream(frame)
    if isinstance(message, Rejection):
        mended = replace_lone_surrogates(frame)
        return message if mended is frame else decode_without_own_meta(mended)
    if len(frame) <= _SEARCHED_BYTES:
        if NAME not in frame and ESCAPE not in frame:
            return message
    elif isinstance(message, Response) and message.simple is not None and not _may_hold_in(message.simple):
        return message
    cleaned = without_own_meta(frame)
    if cleaned is not frame:
        message = messages.decode_from_upstream(cleaned)
    if cleaned is frame or not isinstance(message, Response | ErrorReply) or message.key is None:
        return message
    return InvalidAnswer(message.key, messages.REPEATED) if may_repeat_key(frame) else message


def without_own_meta(frame: bytes) -> bytes:
    """A message of a server without `_meta` members under our prefix, and without such members in the data of an error.

    The very same bytes where there are none, and where the message is not JSON.
    """
    if not _may_hold(frame):
        return frame
    try:
        return _object(frame, 0)
    except (msgspec.DecodeError, RecursionError):
        return frame


def _may_hold_in(simple: SimpleResult) -> bool:
    """Whether the parts of a result may have such members. Most have one item of content without an object in it.

    A search for one byte costs less than a search for our name in all spellings.
    """
    is_meta_clean = simple.meta is UNSET or not _may_hold(bytes(simple.meta))
    return not (is_meta_clean and bytes(simple.content).rfind(b"{") <= _FIRST_ITEM)


def _may_hold(data: bytes) -> bool:
    return NAME in data or (ESCAPE in data and _spelt.search(data) is not None)


def _object(data: bytes, depth: int, name: str = "", *, drops_own: bool = False) -> bytes:
    members = messages.members(data)
    kept = {key: held for key, held in members.items() if not (drops_own and key.startswith(PREFIX))}
    is_changed = len(kept) < len(members)
    for key, held in kept.items():
        before = bytes(held)
        after = before if key in _NOT_OURS else _value(key, before, depth + 1, parent=name)
        if after is not before:
            kept[key] = Raw(after)
            is_changed = True
    return encode_json(kept) if is_changed else data


def _value(name: str, data: bytes, depth: int, *, parent: str) -> bytes:
    """One member, or one item of an array: the very same bytes where nothing in it is ours."""
    if depth > _MAX_DEPTH or data[:1] not in (b"{", b"[") or not _may_hold(data):
        return data
    if data[:1] == b"{":
        is_error_data = depth == _ERROR_DATA_DEPTH and (parent, name) == ("error", "data")
        return _object(data, depth, name, drops_own=name == "_meta" or is_error_data)
    items = [bytes(item) for item in _items.decode(data)]
    cleaned = [_value("", item, depth + 1, parent=name) for item in items]
    if all(after is item for after, item in zip(cleaned, items, strict=True)):
        return data
    return encode_json([Raw(item) for item in cleaned])
