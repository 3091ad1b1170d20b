"""Fits an answer into a bound of bytes, counted as they are written (S1/RESP-003, S1/RESP-004, D9).

Texts are cut at a character, the longest first and down to one common length; what can't be cut gives way to a note that says so;
structured content is never cut. Must not: decide what happens to an answer that can't be cut, or look at anything but its bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.display import flat
from pactgate.core.failures import WireError
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

SUFFIX: Final = "... [truncated]"
_FLOOR_BYTES: Final = 256
"""No item is cut below this to make room for those after it: from there on trailing items are left out instead."""
_KIND_CHARS: Final = 60

_items: Final = msgspec.json.Decoder(list[Raw])
_text: Final = msgspec.json.Decoder(str)
_HIGH_SURROGATE: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_SMALL_AND_NEEDED: Final = {
    "content": None,
    "isError": (b"true", b"false"),
    "resultType": (b'"complete"',),
}


class Fitted(Struct, frozen=True, gc=False):
    """An answer within the bound. `original_size_bytes` is there when something was cut or left out, and only then."""

    result: bytes
    is_truncated: bool = False
    original_size_bytes: int | None = None


class TooLarge(Struct, frozen=True, gc=False):
    """An answer that is beyond the bound and can't be cut."""

    original_size_bytes: int


def fit(
    result: bytes, max_bytes: int, *, has_output_schema: bool, suffix: str = SUFFIX, reserve_bytes: int = 0
) -> Fitted | TooLarge:
    """A tool result that takes at most `max_bytes`, with `reserve_bytes` left for what is added to it afterwards."""
    size = len(result)
    if size + reserve_bytes <= max_bytes:
        return Fitted(result)
    try:
        members = messages.members(result)
        content = _items.decode(members["content"])
    except (KeyError, msgspec.DecodeError):
        return TooLarge(size)
    has_failed = bytes(members.get("isError", b"false")) == b"true"
    if "structuredContent" in members or (has_output_schema and not has_failed):
        return TooLarge(size)
    shortened = _Shortening(max_bytes - reserve_bytes, max_bytes, suffix).apply(members, content)
    if shortened is None:
        return TooLarge(size)
    text, is_truncated = shortened
    return Fitted(text, is_truncated, size if is_truncated else None)


def fit_facts(facts: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Facts of a failure within a bound: the largest are left out, and how many is said."""
    text = encode_json(facts)
    if len(text) <= max_bytes:
        return facts
    kept = messages.members(text)
    went = _leave_out_largest(kept, max_bytes - len('"leftOut":1000000,'), keep=())
    return {**{name: facts[name] for name in kept}, "leftOut": went}


def fit_error(error: WireError, max_bytes: int, suffix: str = SUFFIX) -> WireError:
    """An error whose message and data together take at most `max_bytes`; the message may have half of them."""
    message = encode_json(error.message)
    data = encode_json(error.data)
    if len(message) + len(data) <= max_bytes:
        return error
    half = max_bytes // 2
    if len(message) > half:
        message = b'"%b"' % _shorten(message[1:-1], half - 2, encode_json(suffix)[1:-1])
    room = max_bytes - len(message)
    kept = fit_facts(error.data, room) if isinstance(error.data, dict) else None
    return WireError(error.code, _text.decode(message), kept if len(encode_json(kept)) <= room else None)


class _Shortening:
    """One answer on its way into `room` bytes."""

    def __init__(self, room: int, max_bytes: int, suffix: str) -> None:
        self._room = room
        self._max_bytes = max_bytes
        self._suffix = encode_json(suffix)[1:-1]
        self._has_cut = False

    def apply(self, members: dict[str, Raw], content: Sequence[Raw]) -> tuple[bytes, bool] | None:
        """The answer as bytes and whether anything was lost; None where not even an empty one has room."""
        members["content"] = Raw(b"[]")
        needed = [name for name, values in _SMALL_AND_NEEDED.items() if _is_one_of(members.get(name), values)]
        if _leave_out_largest(members, self._room // 2, keep=needed):
            self._has_cut = True
        room = self._room - len(encode_json(members))
        if room < 0:
            return None
        pieces = self._fit_items(content, room + 1)
        members["content"] = Raw(b"[%b]" % b",".join(pieces))
        return encode_json(members), self._has_cut

    def _fit_items(self, content: Sequence[Raw], room: int) -> list[bytes]:
        """Each item costs its length and a comma."""
        if sum(map(len, content)) + len(content) <= room:
            return [bytes(item) for item in content]
        items, room, closing = self._drop_trailing(content, room)
        level = _level(items, room)
        texts = {place: _Text.of(item) for place, item in enumerate(items) if len(item) >= level}
        for place, text in texts.items():
            if text is None:
                items[place] = self._note(_kind_of(items[place]), items[place], level - 1)
        level = _level(items, room)  # what the notes need less is given to the texts
        for place, text in texts.items():
            if text is not None and len(items[place]) >= level:
                items[place] = self._cut(text, items[place], level - 1)
        return [item for item in items if item] + closing

    def _drop_trailing(self, content: Sequence[Raw], room: int) -> tuple[list[bytes], int, list[bytes]]:
        """As many items as can keep a readable length, the room for them, and a note about the others where it fits."""
        costs = list(accumulate(min(len(item) + 1, _FLOOR_BYTES) for item in content))
        if costs[-1] <= room or len(content) == 1:
            return [bytes(item) for item in content], room, []
        kept = max(1, bisect_right(costs, room - _FLOOR_BYTES))
        items = [bytes(item) for item in content[:kept]]
        self._has_cut = True
        note = _as_item(f"[{len(content) - kept} more items omitted: the answer may have {self._max_bytes} bytes]")
        if room - len(note) - 1 < _FLOOR_BYTES:
            return items, room, []
        return items, room - len(note) - 1, [note]

    def _cut(self, text: _Text, item: bytes, room: int) -> bytes:
        """The item with its text cut; an item that is large for another reason can only be left out."""
        left = room - len(text.write(b""))
        if left < 0:
            return self._note("an item", item, room)
        if len(text.raw) <= left:
            return text.write(text.raw)
        self._has_cut = True
        return text.write(_shorten(text.raw, left, self._suffix))

    def _note(self, kind: str, item: bytes, room: int) -> bytes:
        """What stands in the place of an item that can't be cut; nothing where not even that has room."""
        self._has_cut = True
        note = _Text.of(_as_item(f"[{kind} of {len(item)} bytes omitted: the answer may have {self._max_bytes} bytes]"))
        assert note is not None
        left = room - len(note.write(b""))
        return b"" if left < 0 else note.write(_shorten(note.raw, left, self._suffix))


class _Text:
    """The text of a content item as JSON wrote it, and the item with another text in its place."""

    __slots__ = ("_item", "_resource", "raw")

    def __init__(self, item: dict[str, Raw], resource: dict[str, Raw] | None, raw: bytes) -> None:
        self._item = item
        self._resource = resource
        self.raw = raw

    @classmethod
    def of(cls, item: bytes) -> _Text | None:
        """The text of a text item or of an embedded resource; None for everything else."""
        try:
            members = messages.members(item)
            kind = bytes(members.get("type", b""))
            resource = messages.members(bytes(members["resource"])) if kind == b'"resource"' else None
            holder = members if kind == b'"text"' else resource or {}
            raw = bytes(holder["text"])
        except (KeyError, msgspec.DecodeError):
            return None
        return cls(members, resource, raw[1:-1]) if raw.startswith(b'"') else None

    def write(self, text: bytes) -> bytes:
        raw = Raw(b'"%b"' % text)
        if self._resource is None:
            return encode_json({**self._item, "text": raw})
        return encode_json({**self._item, "resource": {**self._resource, "text": raw}})


def _level(items: Sequence[bytes], room: int) -> int:
    """The cost down to which the costliest items have to go for all of them to have room."""
    left = len(items)
    for cost in sorted(len(item) + 1 for item in items):
        if cost * left > room:
            return room // left
        room -= cost
        left -= 1
    return room + max(map(len, items)) + 1


def _shorten(text: bytes, room: int, suffix: bytes) -> bytes:
    """A JSON text within `room` bytes, ended by the suffix; where not even that has room, by its beginning."""
    if len(text) <= room:
        return text
    return _start(text, room - len(suffix)) + suffix if room >= len(suffix) else _start(suffix, max(room, 0))


def _start(text: bytes, end: int) -> bytes:
    """The longest start of a longer JSON text up to `end`, never inside a character, an escape or a pair of surrogates."""
    while end > 0 and text[end] & 0xC0 == 0x80:
        end -= 1
    slash = text.rfind(b"\\", max(0, end - 5), end)
    if slash >= 0 and _begins_escape(text, slash):
        length = 6 if text[slash + 1 : slash + 2] == b"u" else 2
        if slash + length > end:
            end = slash
    if end >= 6 and _HIGH_SURROGATE.fullmatch(text, end - 6, end) and _begins_escape(text, end - 6):
        end -= 6
    return text[:end]


def _begins_escape(text: bytes, slash: int) -> bool:
    """Whether this backslash is not itself the second half of an escape."""
    run = slash + 1 - len(text[: slash + 1].rstrip(b"\\"))
    return run % 2 == 1


def _leave_out_largest(members: dict[str, Raw], room: int, keep: Collection[str]) -> int:
    """Take the largest members out of an object until it has room, and say how many went."""
    size = len(encode_json(members))
    went = 0
    for name in sorted((name for name in members if name not in keep), key=lambda name: -len(members[name])):
        if size <= room:
            break
        size -= len(encode_json(name)) + len(members.pop(name)) + 2
        went += 1
    return went


def _is_one_of(held: Raw | None, values: tuple[bytes, ...] | None) -> bool:
    return held is not None and (values is None or bytes(held) in values)


def _kind_of(item: bytes) -> str:
    """What kind of item was left out, in a few words: its MIME type, else its type."""
    try:
        members = messages.members(item)
        if "resource" in members:
            members = {**members, **messages.members(bytes(members["resource"]))}
        return flat(_text.decode(members.get("mimeType") or members["type"]), _KIND_CHARS) or "an item"
    except (KeyError, msgspec.DecodeError):
        return "an item"


def _as_item(text: str) -> bytes:
    return encode_json({"type": "text", "text": text})
