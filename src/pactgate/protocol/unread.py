"""Parts of a message that is refused without being decoded, cut out in one pass and without memory for what is passed over.

Must not: be used on a message that is served; `messages.decode` reads these, with all its checks.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.protocol.messages import id_key


class _Params(Struct, gc=False):
    arguments: Raw | UnsetType = UNSET


class _Request(Struct, gc=False):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


_request: Final = msgspec.json.Decoder(_Request)
_params: Final = msgspec.json.Decoder(_Params)
_TOOL_CALL: Final = b'"tools/call"'


def id_of(data: bytes) -> bytes | None:
    """The id of a request, where it is legible."""
    try:
        raw = _request.decode(data).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return None if isinstance(raw, UnsetType) or id_key(bytes(raw)) is None else bytes(raw)


def arguments_of(data: bytes) -> bytes | None:
    """The arguments of a `tools/call` as they are written; None for every other message."""
    try:
        request = _request.decode(data)
        if isinstance(request.params, UnsetType) or bytes(request.method or b"") != _TOOL_CALL:
            return None
        arguments = _params.decode(request.params).arguments
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return None if isinstance(arguments, UnsetType) else bytes(arguments)
