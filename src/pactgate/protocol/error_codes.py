"""An error code of one era in the words of the other. What a server said beside its code is never changed. Pure."""

from __future__ import annotations

from typing import Final

from pactgate.protocol import messages
from pactgate.protocol.messages import ErrorReply
from pactgate.protocol.versions import Era

_UNDEFINED: Final = range(-32099, -32022)
"""Reserved by the modern specification and given no meaning: nobody may say them."""


def code_for(reply: ErrorReply, era: Era, method: str) -> int:
    """The code under which a caller of this era understands a server's refusal of `method`."""
    if era is Era.MODERN:
        if reply.code == messages.RESOURCE_NOT_FOUND:
            return messages.INVALID_PARAMS
        return messages.INTERNAL_ERROR if reply.code in _UNDEFINED else reply.code
    is_missing = method == "resources/read" and reply.code == messages.INVALID_PARAMS and _means_not_found(reply)
    return messages.RESOURCE_NOT_FOUND if is_missing else reply.code


def _means_not_found(reply: ErrorReply) -> bool:
    return "not found" in reply.message.lower() or (reply.data is not None and b'"uri"' in reply.data)
