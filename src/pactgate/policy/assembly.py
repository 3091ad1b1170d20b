"""Assembles the tool result that goes out: the bytes of the server, the members of the client's era, and the envelope in `_meta`.

A simple result is assembled from its parts, any other from its members. Must not: look into content, or drop a member that the era of
the client allows.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw

from pactgate.policy.envelope import merge_meta
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.simple_result import SimpleResult

_COMPLETE: Final = b',"resultType":"complete"'


def assemble(
    simple: SimpleResult | None,
    result: bytes | None,
    envelope: bytes,
    *,
    server_info: bytes,
    is_modern: bool,
    was_modern: bool,
) -> bytes:
    """The result as a caller of an era reads it. `simple` are its parts, if it has the ordinary shape; else `result` are its bytes.

    `is_modern` says what the caller speaks, `was_modern` what the server spoke.
    """
    info = server_info if is_modern else b""
    if simple is None:
        return _assemble_members(messages.members(result or b"{}"), envelope, info, is_modern, was_modern)
    parts: list[bytes | Raw] = [b'{"content":', simple.content]
    if simple.structured is not UNSET:
        parts += (b',"structuredContent":', simple.structured)
    if simple.is_error is not UNSET:
        parts.append(b',"isError":true' if simple.is_error else b',"isError":false')
    if is_modern or (simple.kind is not UNSET and not was_modern):
        parts.append(_COMPLETE)
    meta = None if simple.meta is UNSET else simple.meta
    parts += (b',"_meta":', merge_meta(envelope, meta, info, strip_modern=was_modern), b"}")
    return b"".join(parts)


def _assemble_members(
    members: dict[str, Raw], envelope: bytes, info: bytes, is_modern: bool, was_modern: bool
) -> bytes:
    meta = members.pop("_meta", None)
    if is_modern:
        members.setdefault("resultType", Raw(b'"complete"'))
    elif was_modern:
        members = {name: held for name, held in members.items() if name not in modern.ERA_MEMBERS}
    start = encode_json(members)[:-1]
    return b"%b%b%b}" % (
        start,
        b',"_meta":' if members else b'"_meta":',
        merge_meta(envelope, meta, info, strip_modern=was_modern),
    )
