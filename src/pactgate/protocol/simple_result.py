"""Tool results of the ordinary shape: content, perhaps structured content, and no member an era has to be asked about.

A result, or a whole answer with one in it, is taken apart in one pass; member order and white space do not matter, and the content is
not looked into. A result with any other member is not simple: `messages.members` reads it. Must not: accept a member it does not know.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

_ARRAY: Final = ord("[")
_FRAME_BYTES: Final = len('{"jsonrpc":"2.0","id":,"result":{"content":}}')
_STRUCTURED_BYTES: Final = len(',"structuredContent":')
_ERROR_BYTES: Final = len(',"isError":true')
_NO_ERROR_BYTES: Final = len(',"isError":false')
_KIND_BYTES: Final = len(',"resultType":"complete"')
_META_BYTES: Final = len(',"_meta":')


class SimpleResult(Struct, forbid_unknown_fields=True, gc=False):
    content: Raw
    structured: Raw | UnsetType = msgspec.field(name="structuredContent", default=UNSET)
    is_error: bool | UnsetType = msgspec.field(name="isError", default=UNSET)
    kind: Literal["complete"] | UnsetType = msgspec.field(name="resultType", default=UNSET)
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


class _SimpleAnswer(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: int
    result: SimpleResult


_result: Final = msgspec.json.Decoder(SimpleResult)
_answer: Final = msgspec.json.Decoder(_SimpleAnswer)
_encode: Final = msgspec.json.Encoder().encode


def read_simple(result: bytes) -> SimpleResult | None:
    """The parts of a result, if it is simple. Data that is not JSON is not simple either."""
    try:
        simple = _result.decode(result)
    except msgspec.DecodeError:
        return None
    return simple if memoryview(simple.content)[0] == _ARRAY else None


def read_simple_answer(data: bytes) -> tuple[int, SimpleResult] | None:
    """Id and parts of a whole JSON-RPC answer whose result is simple and has no member twice.

    A repeated member is lost in decoding, so that the parts are shorter than the text; so does white space, which most servers do not
    write. The length takes 0.2 us, whatever the size; only where it differs, the colons of both are counted.
    """
    try:
        answer = _answer.decode(data)
    except msgspec.DecodeError:
        return None
    result = answer.result
    if memoryview(result.content)[0] != _ARRAY:
        return None
    size = len(data) - len(result.content) - len(str(answer.id))
    if size != _FRAME_BYTES and size != _further_bytes(result) and _encode(answer).count(b":") != data.count(b":"):
        return None
    return answer.id, result


def _further_bytes(result: SimpleResult) -> int:
    """How many bytes an answer with these parts takes without white space, but for its id and its content."""
    size = _FRAME_BYTES
    if result.structured is not UNSET:
        size += _STRUCTURED_BYTES + len(result.structured)
    if result.is_error is not UNSET:
        size += _ERROR_BYTES if result.is_error else _NO_ERROR_BYTES
    if result.kind is not UNSET:
        size += _KIND_BYTES
    if result.meta is not UNSET:
        size += _META_BYTES + len(result.meta)
    return size


def encode_simple(simple: SimpleResult) -> bytes:
    """The result as one JSON text; each member as the bytes it arrived as."""
    return _encode(simple)


def size_of(simple: SimpleResult) -> int:
    """How many bytes `encode_simple` gives, at most."""
    size = len(simple.content) + 60
    if simple.structured is not UNSET:
        size += len(simple.structured) + 21
    if simple.meta is not UNSET:
        size += len(simple.meta) + 9
    return size
