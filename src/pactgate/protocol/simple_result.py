"""Tool results of the ordinary shape, read once: content, perhaps structured content, and nothing else an era has to be asked about.

A result, or a whole answer with one in it, is taken apart in a single pass over its bytes; its content is not looked into. Anything
with another member is not plain, and left to whoever reads all members. Must not: take for plain what has a member it does not know.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

MAX_PLAIN_ID: Final = 2**53
"""Ids beyond what any client counts to are left to the exact reader."""
_ARRAY: Final = ord("[")
_CONTENT: Final = b'{"content":'
_ONE_TEXT: Final = b'{"content":[{"type":"text",'


class PlainResult(Struct, forbid_unknown_fields=True, gc=False):
    content: Raw
    structured: Raw | UnsetType = msgspec.field(name="structuredContent", default=UNSET)
    is_error: bool | UnsetType = msgspec.field(name="isError", default=UNSET)
    kind: Literal["complete"] | UnsetType = msgspec.field(name="resultType", default=UNSET)
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


class _Answer(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: int
    result: PlainResult


_result: Final = msgspec.json.Decoder(PlainResult)
_answer: Final = msgspec.json.Decoder(_Answer)


def read_plain(result: bytes) -> PlainResult | None:
    """The parts of a result, if it is plain. What is not even JSON is not plain either."""
    try:
        plain = _result.decode(result)
    except msgspec.DecodeError:
        return None
    return plain if memoryview(plain.content)[0] == _ARRAY else None


def is_one_text(result: bytes, plain: PlainResult) -> bool:
    """Whether the content of a result is a single text, as far as that can be told at a glance. Copies nothing."""
    end = len(_CONTENT) + len(plain.content)
    return result.startswith(_ONE_TEXT) and result.find(b"{", len(_ONE_TEXT), end) < 0


def read_plain_answer(text: bytes) -> tuple[int, bytes, PlainResult] | None:
    """Id, result and its parts of a whole answer whose result is plain, written as it mostly is: its members in the usual order and
    without blanks between them."""
    try:
        answer = _answer.decode(text)
    except msgspec.DecodeError:
        return None
    if not 0 <= answer.id <= MAX_PLAIN_ID:
        return None
    start = b'{"jsonrpc":"2.0","id":%d,"result":' % answer.id
    if not text.startswith(start) or not text.endswith(b"}") or memoryview(answer.result.content)[0] != _ARRAY:
        return None
    return answer.id, text[len(start) : -1], answer.result
