"""The `data` of the errors that an endpoint gives by itself, before a request reaches the kernel.

It has the same facts as the data of a failure of the kernel: `failure_mode`, the code, the party that has to act. The JSON-RPC number
decides the kind; where the number says only that the request is invalid, the HTTP status decides.
Must not: replace data that a refusal already has. Enforces S4/FMT-ERR and S2/MCP-003.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection

INTERNAL: Final = "Internal error."
_MODE: Final = "failure_mode"
_BY_NUMBER: Final = {
    messages.PARSE_ERROR: Kind.PARSE_ERROR,
    messages.METHOD_NOT_FOUND: Kind.METHOD_NOT_FOUND,
    messages.INVALID_PARAMS: Kind.INVALID_PARAMS,
    messages.INTERNAL_ERROR: Kind.INTERNAL,
    messages.HEADER_MISMATCH: Kind.HEADER_MISMATCH,
    messages.UNSUPPORTED_VERSION: Kind.UNSUPPORTED_VERSION,
    messages.MISSING_CLIENT_CAPABILITY: Kind.MISSING_CAPABILITY,
}
_BY_STATUS: Final = {
    401: Kind.UNAUTHENTICATED,
    403: Kind.PERMISSION_DENIED,
    404: Kind.UNKNOWN_PATH,
    413: Kind.LIMIT_EXCEEDED,
    421: Kind.PERMISSION_DENIED,
    429: Kind.RATE_LIMITED,
    431: Kind.LIMIT_EXCEEDED,
    503: Kind.OVERLOADED,
}


def data_of(kind: Kind) -> dict[str, Any]:
    """The facts about a refusal of this kind."""
    return GatewayFailure(kind, "").record()


def with_data(rejection: Rejection, status: int = 0) -> Rejection:
    """The rejection with the facts about its failure, beside the data it already has."""
    held = rejection.data
    if isinstance(held, dict) and _MODE in held:
        return rejection
    facts = dict(_facts(rejection.code, status))
    return Rejection(rejection.code, rejection.message, rejection.id, {**held, **facts} if held else facts)


def encode_refusal(rejection: Rejection, status: int = 0) -> bytes:
    """The whole JSON-RPC error of a refusal."""
    return messages.encode_rejection(with_data(rejection, status))


def encode_internal(id_: bytes | None) -> bytes:
    """The JSON-RPC error for a fault of the gateway outside the kernel."""
    return encode_refusal(Rejection(messages.INTERNAL_ERROR, INTERNAL, id_))


@lru_cache(maxsize=256)
def _facts(number: int, status: int) -> dict[str, Any]:
    kind = _BY_NUMBER.get(number) or _BY_STATUS.get(status, Kind.INVALID_REQUEST)
    return data_of(kind)
