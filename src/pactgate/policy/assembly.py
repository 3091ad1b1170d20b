"""A result of the ordinary shape (`protocol/simple_result.py`) put together for the caller's era from its own bytes.

Must not: look into its content, or lose anything of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import UNSET, Raw

from pactgate.core.failures import ENVELOPE_KEY
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.simple_result import PlainResult

_REMEMBERED_BYTES: Final = 1024


def parts_for(plain: PlainResult, server_info: bytes, *, is_modern: bool, was_modern: bool) -> list[bytes | Raw]:
    """The result as a caller of an era reads it, up to the beginning of its `_meta`, and what follows there, in pieces to be joined.

    Between the last two belongs what goes first into `_meta`, without a comma after it.
    """
    parts: list[bytes | Raw] = [b'{"content":', plain.content]
    if plain.structured is not UNSET:
        parts += (b',"structuredContent":', plain.structured)
    if plain.is_error is not UNSET:
        parts.append(b',"isError":true' if plain.is_error else b',"isError":false')
    if is_modern or (plain.kind is not UNSET and not was_modern):
        parts.append(b',"resultType":"complete"')
    meta = b"" if plain.meta is UNSET else bytes(plain.meta)
    read = _remembered_meta if len(meta) <= _REMEMBERED_BYTES else _meta_for
    parts += (b',"_meta":{', read(meta, server_info if is_modern else b"", was_modern))
    return parts


def _meta_for(meta: bytes, server_info: bytes, was_modern: bool) -> bytes:
    """The members of `_meta` that stay, after a comma where there are any, and both ends."""
    members = messages.members(meta) if meta.startswith(b"{") else {}
    members.pop(ENVELOPE_KEY, None)
    if server_info:
        members.setdefault(modern.SI, Raw(server_info))
    elif was_modern:
        members = {key: held for key, held in members.items() if not key.startswith(modern.PREFIX)}
    rest = encode_json(members)[1:-1]
    return b",%b}}" % rest if rest else b"}}"


_remembered_meta: Final = lru_cache(maxsize=256)(_meta_for)
