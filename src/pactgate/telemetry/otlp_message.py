"""Encodes spans as OTLP messages (opentelemetry/proto/trace/v1, collector/trace/v1) in protobuf, with the fields that are needed here.

By hand, because a gateway that exports traces should cost its calls little: what is the same for many spans is encoded once. The tests
decode everything with `opentelemetry-proto`. Must not: know what a span is about.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

Value = str | bool | int | float
INTERNAL: Final = 1
SERVER: Final = 2
CLIENT: Final = 3
_TIMES: Final = struct.Struct("<cQcQ")
_DOUBLE: Final = struct.Struct("<d")
_MASK: Final = (1 << 64) - 1


def varint(number: int) -> bytes:
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= _MASK
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """A field that holds bytes, a text or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: Value) -> bytes:
    """A KeyValue as a field `attributes` of a span."""
    return field(9, _key_value(name, value))


def attributes(facts: Mapping[str, Value | None]) -> bytes:
    """Those that are there."""
    return b"".join(attribute(name, value) for name, value in facts.items() if value not in (None, ""))


def link(trace_id: str, span_id: str) -> bytes:
    return field(13, field(1, bytes.fromhex(trace_id)) + field(2, bytes.fromhex(span_id)))


def failed() -> bytes:
    """The status of a span that ended with an error."""
    return field(15, b"\x18\x02")


def span(
    *, trace_id: bytes, span_id: bytes, parent_id: bytes, began_ns: int, ended_ns: int, fixed: bytes, rest: bytes
) -> bytes:
    """A span as a field `spans` of its scope. `fixed` has the name, the kind and the attributes that many spans share."""
    parent = b"\x22\x08" + parent_id if parent_id else b""
    times = _TIMES.pack(b"\x39", began_ns, b"\x41", ended_ns)
    return field(2, b"".join((b"\x0a\x10", trace_id, b"\x12\x08", span_id, parent, times, fixed, rest)))


def name_and_kind(name: str, kind: int) -> bytes:
    return field(5, name.encode()) + bytes((0x30, kind))


def state(text: str) -> bytes:
    return field(3, text.encode()) if text else b""


def resource(facts: Mapping[str, Value]) -> bytes:
    return field(1, b"".join(field(1, _key_value(name, value)) for name, value in facts.items()))


def request(resource_field: bytes, scope_name: str, scope_version: str, spans: Iterable[bytes]) -> bytes:
    """An ExportTraceServiceRequest."""
    scope = field(1, field(1, scope_name.encode()) + field(2, scope_version.encode()))
    return field(1, resource_field + field(2, scope + b"".join(spans)))


def _key_value(name: str, value: Value) -> bytes:
    return field(1, name.encode()) + field(2, _any(value))


def _any(value: Value) -> bytes:
    if isinstance(value, bool):
        return b"\x10" + varint(int(value))
    if isinstance(value, int):
        return b"\x18" + varint(value)
    if isinstance(value, float):
        return b"\x21" + _DOUBLE.pack(value)
    return field(1, value.encode("utf-8", "replace"))
